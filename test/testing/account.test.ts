import { expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import type { Cluster, Place } from '../../src/testing/cluster.js';
import { installCrd } from '../../src/testing/account.js';
import { sound } from '../scenarios/planted/sound.js';

/** One that takes everything, and knows what is there. */
function willing(send?: (there: ReadonlySet<string>) => unknown) {
  const there = new Set<string>();
  const made: string[] = [];
  const cluster = {
    apply: (type: Place['type'], { metadata }: AnyObject) => {
      there.add(`${type.kind} ${metadata.name}`);
      made.push(`${type.kind} ${metadata.name}`);
      return Promise.resolve({});
    },
    list: () => Promise.resolve([]),
    create: () => Promise.resolve({ status: { allowed: true } }),
    send: () => Promise.resolve(send?.(there) ?? { status: 201, body: {} }),
    delete: ({ type, name }: Place) => {
      if (!there.delete(`${type.kind} ${name}`)) throw new Error(`There is no ${type.kind} ${name}`);
      return Promise.resolve();
    },
  };
  return { cluster: cluster as unknown as Cluster, there, made };
}

test('of a kind that is made known, nothing but its CRD stays, also where two tests do it at once', async () => {
  const { cluster, there, made } = willing();

  await Promise.all([installCrd(cluster, sound), installCrd(cluster, sound)]);

  expect([...there]).toEqual(['CustomResourceDefinition planteds.planted.example.com']);
  expect(made.filter((name) => name.startsWith('ClusterRole'))).toHaveLength(4);
});

test('kinds are made known at once: admission looks for new ones every half minute only', async () => {
  const other = { ...sound, crd: { ...sound.crd, metadata: { name: 'others.planted.example.com' } } };
  const { cluster } = willing((there) => {
    if (!there.has(`CustomResourceDefinition ${other.crd.metadata.name}`))
      throw new Error('The first is waited for before the second one is installed');
  });

  await expect(installCrd(cluster, sound, other)).resolves.toBeUndefined();
});
