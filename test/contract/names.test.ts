import { expect, it } from 'vitest';
import * as names from '../../src/contract/names.js';

const KIND = { apiVersion: 'kosmos.io/v1', kind: 'AppService' };

it('keeps the names that are promised', () => {
  expect(names.APPLIED_HASH_ANNOTATION).toBe('reconstruct.kosmos.io/applied-hash');
  expect(names.ADOPT_BY_ANNOTATION).toBe('reconstruct.kosmos.io/adopt-by');
  expect(names.childrenFieldManager('AppService')).toBe('appservice-controller');
  expect(names.statusFieldManager('AppService')).toBe('appservice-status');
  expect(names.selectorLabels(KIND, 'web')).toEqual({ 'kosmos.io/appservice': 'web' });
  const spec = { group: 'kosmos.io', names: { kind: 'AppService', plural: 'appservices' } };
  const crd = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', spec };
  expect(names.selectorLabels(crd, 'web')).toEqual({ 'kosmos.io/appservice': 'web' });
  expect(names.childLabels(KIND, 'web')).toEqual({
    app: 'web',
    'app.kubernetes.io/managed-by': 'reconstruct',
    'app.kubernetes.io/name': 'web',
    'kosmos.io/appservice': 'web',
  });
});
