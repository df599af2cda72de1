import { expect, test } from 'vitest';
import type { AnyObject } from '../../../src/contract/object.js';
import { resourceType } from '../../../src/contract/resource.js';
import { compareRendered, isFixed, rollsPods } from '../../../src/engine/preview/rollout.js';

test.each([
  ['apps/v1', 'Deployment', '.spec.template.spec.containers[name="web"].image', true],
  ['apps/v1', 'StatefulSet', '.spec.template.metadata.annotations["example.com/checksum"]', true],
  ['apps/v1', 'DaemonSet', '.spec.template', true],
  ['apps/v1', 'Deployment', '.spec.selector.matchLabels.app', true],
  ['apps/v1', 'Deployment', '.metadata.name', true],
  ['apps/v1', 'Deployment', '.metadata.namespace', false],
  ['apps/v1', 'Deployment', '.spec.replicas', false],
  ['batch/v1', 'CronJob', '.spec.jobTemplate.spec.template.spec.containers[name="web"].image', false],
  ['example.com/v1', 'Deployment', '.spec.template.spec', false],
])('pods are replaced: %s %s %s: %s', (apiVersion, kind, path, expected) => {
  expect(rollsPods({ apiVersion, kind }, path)).toBe(expected);
});

const metadata = { name: 'a', namespace: 'default' };

test.each([
  ['apps/v1', 'Deployment', '.spec.selector.matchLabels.app', true],
  ['apps/v1', 'Deployment', '.spec.strategy.type', false],
  ['apps/v1', 'StatefulSet', '.spec.serviceName', true],
  ['apps/v1', 'StatefulSet', '.spec.volumeClaimTemplates[0].spec.resources.requests.storage', true],
  ['apps/v1', 'StatefulSet', '.spec.template.spec.containers[0].image', false],
  ['batch/v1', 'Job', '.spec.template.spec.containers[0].image', true],
  ['v1', 'PersistentVolumeClaim', '.spec.resources.requests.storage', false],
  ['v1', 'PersistentVolumeClaim', '.spec.storageClassName', true],
  ['example.com/v1', 'Deployment', '.spec.selector', false],
])('a change in place is refused: %s %s %s: %s', (apiVersion, kind, path, expected) => {
  expect(isFixed({ apiVersion, kind, metadata }, { path, after: 'x' })).toBe(expected);
});

test('what is refused may depend on the object', () => {
  const service = { apiVersion: 'v1', kind: 'Service', metadata };
  const sealed = { apiVersion: 'v1', kind: 'ConfigMap', metadata, immutable: true };
  expect(isFixed(service, { path: '.spec.clusterIP', before: '10.0.0.1', after: 'None' })).toBe(true);
  expect(isFixed(service, { path: '.spec.clusterIP', before: 'None' })).toBe(false);
  expect(isFixed(sealed, { path: '.data.a', after: 'x' })).toBe(true);
  expect(isFixed({ ...sealed, immutable: false }, { path: '.data.a', after: 'x' })).toBe(false);
});

const deployment = (name: string, spec: object): AnyObject => ({
  ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'shop' } },
  spec,
});
const type = resourceType({ apiVersion: 'apps/v1', kind: 'Deployment' });

test('what was rendered is compared with what is rendered, object by object', () => {
  const before = [
    deployment('same', { replicas: 1 }),
    deployment('other', { replicas: 1 }),
    deployment('gone', {}),
    deployment('fixed', { selector: { matchLabels: { app: 'a' } } }),
  ];
  const after = [
    deployment('same', { replicas: 1 }),
    deployment('other', { replicas: 2 }),
    deployment('new', {}),
    deployment('fixed', { selector: { matchLabels: { app: 'b' } } }),
  ];
  const found = compareRendered(before, after, () => undefined);
  expect(found.map(({ ref, action, error }) => [ref.name, action, error?.reason])).toEqual([
    ['same', 'unchanged', undefined],
    ['other', 'changed', undefined],
    ['new', 'created', undefined],
    ['fixed', 'failed', 'ImmutableField'],
    ['gone', 'deleted', undefined],
  ]);
  const [recreated] = compareRendered([before[3]!], [after[3]!], () => ({ recreate: true }));
  expect(recreated).toMatchObject({ action: 'recreated', before: before[3], after: after[3] });
});

const claim = (name: string, storage = '1Gi') => ({ metadata: { name }, spec: { storage } });
const claims = (...volumeClaimTemplates: unknown[]) => ({ volumeClaimTemplates });

test.each([
  ['a claim changes', claims(claim('a', '2Gi')), true],
  ['the template changes, too', { ...claims(claim('a', '2Gi')), template: {} }, false],
  [
    'a claim gets a class, and the template changes',
    { ...claims({ ...claim('a'), class: 'a' }), template: {} },
    false,
  ],
  [
    'a claim is added, which no running pod can mount',
    { ...claims(claim('a'), claim('b')), template: {} },
    true,
  ],
  ['a claim is added, and the selector changes', { ...claims(claim('a'), claim('b')), selector: {} }, false],
  ['a claim goes', { ...claims(), template: {} }, false],
  ['the selector changes', { ...claims(claim('a')), selector: {} }, false],
])('of what is recreated without what it owns, pods stay: %s', (_, spec, keepsPods) => {
  const [was, is] = [claims(claim('a')), spec].map((one) => ({
    ...deployment('a', one),
    kind: 'StatefulSet',
  }));
  const [found] = compareRendered([was!], [is!], () => ({ recreate: 'orphan' }));
  expect([found?.action, found?.keepsPods]).toEqual(['recreated', keepsPods]);
});

test('what stays as it was created does not change', () => {
  const createOnly = { ...type, createOnly: ['.spec.replicas', '.spec.paused'] };
  const [kept] = compareRendered(
    [deployment('a', { replicas: 1 })],
    [deployment('a', { replicas: 2, paused: true })],
    () => createOnly,
  );
  expect(kept).toMatchObject({ action: 'unchanged' });
});
