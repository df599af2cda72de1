import { expect, it } from 'vitest';
import { requireReady } from '../../src/testing/checks.js';
import type { Trial } from '../../src/testing/trial.js';

const stalledFor = (reason: string): Trial => {
  const conditions = [{ type: 'Stalled', status: 'True', reason, message: 'a reference is broken' }];
  return { settled: () => Promise.resolve({ status: { conditions } }) } as unknown as Trial;
};

it.each([
  ['ReferenceNotFound', '; return what it refers to from `surroundings`'],
  ['ReferenceNotPermitted', '; return a ReferenceGrant from `surroundings`'],
  ['Invalid', ''],
])('a sample that is stalled for %s says what the sweep lacks', async (reason, hint) => {
  const what = `Stalled is True (${reason}: a reference is broken)${hint}`;
  await expect(requireReady(stalledFor(reason))).rejects.toThrow(new Error(what));
});
