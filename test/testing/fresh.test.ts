import { expect, test } from 'vitest';
import { fresh } from '../../src/testing/sweep/convergence.js';
import { SpecRefused } from '../../src/testing/sweep/trial.js';
import type { Sample, Stand } from '../../src/testing/sweep/stand.js';

const sample: Sample = { spec: { image: 'one:1' } };

/** A cluster in which a trial gets no further than its first namespace. */
function standWhere(makeNamespace: () => Promise<string>): Stand {
  return { cluster: { makeNamespace }, removes: [] } as unknown as Stand;
}

test('an expected state that a busy machine kept from being found is looked for again', async () => {
  let tries = 0;
  const stand = standWhere(() => Promise.reject(new Error(`Still so after 30 s: ${++tries}`)));

  await expect(fresh(stand, sample)).rejects.toThrow('30 s: 1');
  await expect(fresh(stand, sample)).rejects.toThrow('30 s: 2');
});

test('it is looked for once where several ask at a time, and where the spec is refused', async () => {
  let tries = 0;
  const stand = standWhere(() => Promise.reject(new SpecRefused(`no: ${++tries}`)));

  await Promise.all([1, 2].map(() => expect(fresh(stand, sample)).rejects.toThrow('no: 1')));
  await expect(fresh(stand, sample)).rejects.toThrow('no: 1');
});
