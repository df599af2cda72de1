import { expect, test } from 'vitest';
import { DriftedField, NotBack } from '../../src/testing/sweep/drift.js';
import type { Trial } from '../../src/testing/sweep/trial.js';

const settings = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' } };
const withColor = (color: string) => ({ ...settings, data: { color } });

/** Its wait runs out at once. */
function fieldOf(answer: () => object): DriftedField {
  const get = (): Promise<object> => Promise.resolve().then(answer);
  const trial = {
    stand: { types: [], settleMilliseconds: 0, cluster: { get } },
    ...{ namespace: 'sweep-1', pace: { scaled: () => -1 }, scene: { isShared: () => false } },
  };
  return new DriftedField(trial as unknown as Trial, settings, ['data', 'color'], {});
}

test('a field that is as before is back', async () => {
  expect(await fieldOf(() => withColor('red')).isBack('red')).toBe(true);
});

test('a field that stays as somebody has set it is not, once the wait has run out', async () => {
  await expect(fieldOf(() => withColor('blue')).isBack('red')).rejects.toBeInstanceOf(NotBack);
});

test('an API server that does not answer says nothing of the field', async () => {
  const unreachable = (): never => {
    throw new Error('connect ECONNREFUSED');
  };

  const error: unknown = await fieldOf(unreachable)
    .isBack('red')
    .catch((reason: unknown) => reason);

  expect(error).not.toBeInstanceOf(NotBack);
  expect(error).toMatchObject({ message: expect.stringMatching(/ECONNREFUSED/) as string });
});
