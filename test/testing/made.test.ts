import { expect, test } from 'vitest';
import { resourceType } from '../../src/contract/resource.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import {
  isMadeBy,
  madeBy,
  removedBy,
  settleMilliseconds,
  ANY_SITE,
  contextOf,
} from '../../src/testing/sweep/stand.js';
import { sound } from '../scenarios/planted/sound.js';
import { withIngressNginx } from '../scenarios/support/stream-ingress-swept.js';

const configMaps = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });
const services = resourceType({ apiVersion: 'v1', kind: 'Service' });
const nothing = contextOf({});

test('what a kind owns may be in any namespace, and is its own', () => {
  const made = madeBy(sound, nothing);

  expect(made.map(({ type }) => type.kind)).toEqual(['ConfigMap', 'Deployment']);
  expect(made.filter(({ namespaces }) => namespaces)).toEqual([]);
  expect(removedBy(sound, nothing)).toEqual([]);
  expect(settleMilliseconds(sound, nothing)).toBe(0);
});

test('what a kind shares is where its flags say, and of that name alone', () => {
  const context = contextOf(withIngressNginx(ANY_SITE));
  const shared = { namespaces: [ANY_SITE.elsewhere] };

  expect(madeBy(streamIngress, context)).toEqual([
    { ...shared, type: services, name: 'ingress-nginx-controller', isCreated: false },
    { ...shared, type: configMaps, name: 'tcp-services', isCreated: true },
    { ...shared, type: configMaps, name: 'udp-services', isCreated: true },
  ]);
  expect(settleMilliseconds(streamIngress, context)).toBe(1000);
});

test('what a kind deletes and never applies is others’', () => {
  expect(madeBy(jobWatcher, nothing)).toEqual([]);
  expect(removedBy(jobWatcher, nothing)).toEqual([resourceType({ apiVersion: 'batch/v1', kind: 'Job' })]);
});

test.each([
  ['shop', 'web', 'ConfigMap', true],
  ['shop', 'other', 'ConfigMap', false],
  ['elsewhere', 'web', 'ConfigMap', false],
  ['shop', 'web', 'Secret', false],
])('a shared object is known by namespace, name and type: %s/%s, a %s', (namespace, name, kind, expected) => {
  const made = { type: configMaps, namespaces: ['shop'], name: 'web', isCreated: true };

  expect(isMadeBy(made, { apiVersion: 'v1', kind, metadata: { namespace, name } })).toBe(expected);
});
