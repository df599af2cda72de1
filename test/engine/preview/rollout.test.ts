import { expect, test } from 'vitest';
import { isFixed, rollsPods } from '../../../src/engine/preview/rollout.js';

test.each([
  ['apps/v1', 'Deployment', '.spec.template.spec.containers[name="web"].image', true],
  ['apps/v1', 'StatefulSet', '.spec.template.metadata.annotations["example.com/checksum"]', true],
  ['apps/v1', 'DaemonSet', '.spec.template', true],
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
