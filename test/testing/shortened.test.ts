import { expect, test } from 'vitest';
import type { Failure } from '../../src/testing/report.js';
import type { Walk } from '../../src/testing/walk.js';
import { shortened } from '../../src/testing/walk-check.js';

const until: Walk = [{ size: 1 }, { size: 2 }, { size: 3 }];
const wrong: Failure = {
  what: 'ConfigMap <name>.data is {"size":"2"} instead of {}',
  sequence: ['as found'],
};
const elsewhere: Failure = { what: 'Deployment <name>.spec is 1 instead of 2', sequence: ['elsewhere'] };

const again = (specs: Walk): Failure => ({ ...wrong, sequence: specs.map((spec) => JSON.stringify(spec)) });
const noted = {
  ...wrong,
  what: `${wrong.what}; it did not come again when the same edits were made once more`,
};

/** @param goesWrong what comes of a walk */
async function toldBy(goesWrong: (specs: Walk, isHasty: boolean) => readonly Failure[]) {
  const walked: string[] = [];
  const failures = await shortened(
    { failures: [wrong], until },
    {
      walk: (specs, isHasty) => {
        walked.push(`${specs.length} ${isHasty ? 'hasty' : 'patient'}`);
        return Promise.resolve(goesWrong(specs, isHasty));
      },
      isValid: () => true,
      // Only the length counts here.
      hasTime: () => walked.length < 1,
    },
  );
  return { failures, last: walked.at(-1) };
}

test('the shortest walk that goes wrong in the same place is reported, as it goes wrong when there is time', async () => {
  const { failures, last } = await toldBy((specs) => [again(specs)]);

  expect(failures).toEqual([again([{ size: 2 }, { size: 3 }])]);
  expect(last).toBe('2 patient');
});

test('what does not come again is a failure all the same, and that is said', async () => {
  const { failures, last } = await toldBy(() => []);

  expect(failures).toEqual([noted]);
  expect(last).toBe('3 patient');
});

test('what comes again in a trial of another name, after another time, has come again', async () => {
  const restless = (name: string, seconds: number): Failure => ({
    what: `Still so after ${seconds} s: The operator doesn't come to rest; its last writes: PATCH configmaps/${name}`,
    sequence: [name],
  });
  const failures = await shortened(
    { failures: [restless('trial-00001', 30)], until },
    {
      walk: () => Promise.resolve([restless('trial-00002', 41.25)]),
      isValid: () => true,
      hasTime: () => true,
    },
  );

  expect(failures).toEqual([restless('trial-00002', 41.25)]);
});

test('what goes wrong elsewhere then is reported as well', async () => {
  const { failures } = await toldBy(() => [elsewhere]);

  expect(failures).toEqual([noted, elsewhere]);
});
