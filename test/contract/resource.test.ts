import { expect, it } from 'vitest';
import { KNOWN_KINDS } from '../../src/contract/define-kind.js';
import { defineCrd } from '../../src/contract/define-crd.js';
import { groupKind, guessPlural } from '../../src/contract/resource.js';

/** As the API server serves them, of whatever `checkType` names. */
const SERVED = [
  ...['clusterrolebindings', 'clusterroles', 'configmaps', 'controllerrevisions', 'cronjobs', 'daemonsets'],
  ...['deployments', 'endpoints', 'endpointslices', 'events', 'gateways', 'horizontalpodautoscalers'],
  ...['httproutes', 'ingresses', 'jobs', 'leases', 'limitranges', 'namespaces', 'networkpolicies', 'nodes'],
  ...['persistentvolumeclaims', 'persistentvolumes', 'poddisruptionbudgets', 'pods', 'podtemplates'],
  ...['replicasets', 'replicationcontrollers', 'resourcequotas', 'rolebindings', 'roles', 'secrets'],
  ...['serviceaccounts', 'services', 'statefulsets', 'storageclasses'],
];

it('guesses the plural of every kind that it advises', () => {
  expect(KNOWN_KINDS.map(guessPlural).sort()).toEqual(SERVED);
});

it.each([
  ['Key', 'keys'],
  ['Display', 'displays'],
  ['Proxy', 'proxies'],
  ['Mailbox', 'mailboxes'],
  ['Switch', 'switches'],
  ['Mesh', 'meshes'],
  ['Path', 'paths'],
])('guesses the plural of %s as tools that generate CRDs do, also for a CRD', (kind, plural) => {
  expect(guessPlural(kind)).toBe(plural);
  const spec = { type: 'object', properties: {} } as const;
  expect(defineCrd({ group: 'web.example.com', kind, description: 'Any.', spec }).spec.names.plural).toBe(
    plural,
  );
});

it('names a type by group and kind, whatever its version', () => {
  expect(groupKind({ apiVersion: 'apps/v1', kind: 'Deployment' })).toBe('Deployment.apps');
  expect(groupKind({ apiVersion: 'apps/v1beta1', kind: 'Deployment' })).toBe('Deployment.apps');
  expect(groupKind({ apiVersion: 'v1', kind: 'Service' })).toBe('Service');
});
