import { expect, test } from 'vitest';
import { Random } from '../../src/testing/random.js';
import { sweptOf } from '../../src/testing/sweep/stand.js';
import type { Stand } from '../../src/testing/sweep/stand.js';
import { walk } from '../../src/testing/sweep/walk.js';
import { sound } from '../scenarios/planted/sound.js';

test('a walk in which nothing may be edited is told as not applicable, and begins no trial', async () => {
  const swept = sweptOf({ kind: sound, samples: [{ spec: { image: 'one:1' } }] });
  // No cluster is asked, so that there needn't be one.
  const stand = {
    ...{ ...swept, random: new Random(1), keepsEarlier: () => false },
    notWalked: ['image', 'color', 'parts'],
  } as unknown as Stand;

  expect(await walk(stand)).toEqual({
    ...{ tried: '', failures: [], notApplicable: 'nothing of its spec can be edited' },
  });
});
