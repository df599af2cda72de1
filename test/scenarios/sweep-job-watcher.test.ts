import { expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { formatReport, sweep } from '../../src/testing/sweep.js';
import { jobWatcherSamples, withJobs } from './support/job-watcher-swept.js';
import { triedFor, verdictsOf } from './support/verdicts.js';

const options = {
  ...{ sandbox: openSandbox(inject('sandbox')), seed: 7 },
  // What a run may delete depends on what is due by the time of it.
  ...{ surroundings: withJobs, notWalked: ['limits'] },
};

test('JobWatcher passes its sweep, over Jobs that belong to others', async () => {
  const report = await sweep(jobWatcher, jobWatcherSamples, options);

  console.log(formatReport(report));
  expect(verdictsOf(report), formatReport(report)).toEqual({
    'list keys': 'held',
    rendering: 'it renders no objects',
    settling: 'held',
    ownership: 'it makes no objects',
    collisions: 'held',
    status: 'held',
    drift: 'it makes no objects',
    kills: 'held',
    events: 'held',
    walk: 'held',
  });
  expect(triedFor(report, 'walk')).toMatch(
    /left out: limits; .*others' objects: \d{2,} deleted, \d{2,} left$/,
  );
});
