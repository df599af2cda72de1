import { expect, test } from 'vitest';
import type { Cluster } from '../../src/testing/cluster.js';
import { requireCollected } from '../../src/testing/sweep/sweep.js';
import { plantedSamples } from '../scenarios/planted/crd.js';
import { sound } from '../scenarios/planted/sound.js';

test('a namespace in which nothing is collected goes all the same', async () => {
  const sent: string[] = [];
  const cluster = {
    makeNamespace: (purpose: string) => Promise.resolve(`${purpose}-1`),
    create: () => Promise.reject(new Error('answered 500')),
    send: (method: string, path: string) => {
      sent.push(`${method} ${path}`);
      return Promise.resolve({ status: 200 });
    },
  } as unknown as Cluster;

  await expect(requireCollected(cluster, sound, plantedSamples)).rejects.toThrow('answered 500');

  expect(sent).toEqual(['DELETE /api/v1/namespaces/sweep-1']);
});
