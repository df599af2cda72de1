import { expect, test } from 'vitest';
import { several, shortest } from '../../src/testing/sweep/outcome.js';

test('when one fails, those that have begun are waited for, and nothing further is begun', async () => {
  const begun: number[] = [];
  const ended: number[] = [];
  const { promise: gate, resolve: open } = Promise.withResolvers<undefined>();
  let isOver = false;
  const all = several(
    [1, 2, 3, 4],
    async (item) => {
      begun.push(item);
      if (item === 1) throw new Error('the first');
      await gate;
      ended.push(item);
    },
    2,
  ).finally(() => (isOver = true));
  const told = expect(all).rejects.toThrow('the first');

  await new Promise((resolve) => setImmediate(resolve));
  expect(isOver).toBe(false);
  open(undefined);
  await told;

  expect([begun, ended]).toEqual([[1, 2], [2]]);
});

test('a failure of another trial is the same, whatever the trial was called and how long it waited', () => {
  const failure = (name: string, seconds: number) => ({
    what: `Still so after ${seconds} s: ConfigMap ${name} is missing`,
    sequence: [name],
  });
  const failures = [failure('swept-00001', 12), failure('swept-00002', 10.43), failure('other', 12)];

  expect(shortest(failures)).toEqual([failures[2], failures[0]]);
});

test('results come in the order of the items', async () => {
  expect(await several([3, 1, 2], (item) => Promise.resolve(item * 2), 2)).toEqual([6, 2, 4]);
});
