import { expect, it } from 'vitest';
import { groupKind, resourceType } from '../../src/contract/resource.js';

it.each([
  ['Deployment', 'deployments'],
  ['Service', 'services'],
  ['Ingress', 'ingresses'],
  ['NetworkPolicy', 'networkpolicies'],
  ['Endpoints', 'endpoints'],
  ['EndpointSlice', 'endpointslices'],
  ['StorageClass', 'storageclasses'],
  ['CSIDriver', 'csidrivers'],
])('guesses the plural of %s', (kind, plural) => {
  expect(resourceType({ apiVersion: 'v1', kind })).toEqual({
    apiVersion: 'v1',
    kind,
    plural,
    namespaced: true,
  });
});

it('takes what the author says', () => {
  const props = { apiVersion: 'a.io/v1', kind: 'Gateway', plural: 'gateways', namespaced: false };
  expect(resourceType(props)).toEqual(props);
});

it('names a type by group and kind, whatever its version', () => {
  expect(groupKind({ apiVersion: 'apps/v1', kind: 'Deployment' })).toBe('Deployment.apps');
  expect(groupKind({ apiVersion: 'apps/v1beta1', kind: 'Deployment' })).toBe('Deployment.apps');
  expect(groupKind({ apiVersion: 'v1', kind: 'Service' })).toBe('Service');
});
