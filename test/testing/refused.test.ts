import { expect, test } from 'vitest';
import { refusable, unlessRefused } from '../../src/testing/sweep/trial.js';

const refusal = () => Promise.reject(new Error('The API server answered 422: port is invalid'));

test('a custom resource that is refused is no failure', async () => {
  expect(await unlessRefused(() => refusable(refusal()))).toBe(undefined);
});

test.each<[what: string, act: () => Promise<void>, message: RegExp]>([
  ['an object of the surroundings that is refused', refusal, /answered 422/],
  ['another answer', () => refusable(Promise.reject(new Error('answered 500'))), /answered 500/],
])('%s is one', async (_what, act, message) => {
  await expect(unlessRefused(act)).rejects.toThrow(message);
});
