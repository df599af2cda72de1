import { expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import type { Cluster, Place } from '../../src/testing/cluster.js';
import { installCrd } from '../../src/testing/account.js';
import { sound } from '../scenarios/planted/sound.js';

/** Cluster that takes everything, and knows what is there. @param late number of looks before discovery has what is there */
function willing(late = 0) {
  const there = new Set<string>();
  const asked: string[] = [];
  const cluster = {
    apply: (type: Place['type'], { metadata }: AnyObject) => {
      there.add(`${type.kind} ${metadata.name}`);
      return Promise.resolve({});
    },
    list: () => Promise.resolve([]),
    send: (_method: string, path: string) => {
      asked.push(path);
      const looks = asked.filter((each) => each === '/apis').length;
      const resources = looks > late ? [{ resource: 'planteds' }] : [];
      const group = { metadata: { name: 'planted.example.com' }, versions: [{ version: 'v1', resources }] };
      const message = "an ownerReference refers to a resource you can't set finalizers on";
      return Promise.resolve({ status: 403, body: { items: [group], message } });
    },
  };
  return { cluster: cluster as unknown as Cluster, there, asked };
}

test('of a kind that is made known, nothing but its CRD stays, also where two tests do it at once', async () => {
  const { cluster, there } = willing();

  await Promise.all([installCrd(cluster, sound), installCrd(cluster, sound)]);

  expect([...there]).toEqual(['CustomResourceDefinition planteds.planted.example.com']);
});

test('admission is asked once all kinds are in discovery: what it lacks then, it lacks for half a minute', async () => {
  const other = { ...sound, crd: { ...sound.crd, metadata: { name: 'others.planted.example.com' } } };
  const { cluster, there, asked } = willing(5);

  await installCrd(cluster, sound, other);

  const looks = asked.filter((path) => path === '/apis').length;
  expect(there.size).toBe(2);
  expect(looks).toBeGreaterThan(5);
  expect(asked.slice(looks)).toEqual(Array(2).fill('/api/v1/namespaces/default/configmaps'));
});
