import { expect, it, test } from 'vitest';
import { defineCrd } from '../../src/author/define-crd.js';
import * as definition from '../../src/author/definition.js';
import * as names from '../../src/contract/names.js';
import { groupKind, guessPlural } from '../../src/contract/resource.js';
import { suggest } from '../../src/values/suggest.js';

const KIND = { apiVersion: 'kosmos.io/v1', kind: 'AppService' };

it('keeps the names that are promised', () => {
  expect(names.APPLIED_HASH_ANNOTATION).toBe('reconstruct.kosmos.io/applied-hash');
  expect(names.ADOPT_BY_ANNOTATION).toBe('reconstruct.kosmos.io/adopt-by');
  expect(names.childrenFieldManager('AppService')).toBe('appservice-controller');
  expect(names.statusFieldManager('AppService')).toBe('appservice-status');
  const spec = { group: 'kosmos.io', names: { kind: 'AppService', plural: 'appservices' } };
  const crd = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', spec };
  for (const kind of [KIND, crd])
    expect(names.selectorLabels(kind, 'web')).toEqual({ 'kosmos.io/appservice': 'web' });
  expect(names.childLabels(KIND, 'web')).toEqual({
    app: 'web',
    'app.kubernetes.io/managed-by': 'reconstruct',
    'app.kubernetes.io/name': 'web',
    'kosmos.io/appservice': 'web',
  });
});

const long = (length: number): string => 'a'.repeat(length);

test.each<[check: `is${'Label' | 'Group' | 'Kind' | 'KubernetesGroup'}`, right: unknown[], wrong: unknown[]]>(
  [
    ['isLabel', ['a', 'web-1', long(63)], ['', 'A', '1a', 'a-', 'a.b', long(64), 1, undefined]],
    [
      'isGroup',
      ['example.com', '1.example.com', `${long(63)}.com`],
      [
        'apps',
        'Web.example.com',
        'a..b',
        '-a.b',
        'a.b.',
        `${long(64)}.com`,
        `${long(62)}.`.repeat(4) + 'comm',
        7,
      ],
    ],
    [
      'isKubernetesGroup',
      ['k8s.io', 'networking.k8s.io', 'kubernetes.io'],
      ['cluster.x-k8s.io', 'k8s.io.example.com'],
    ],
    ['isKind', ['A', 'HTTPRoute', 'V2'], ['a', 'A-b', `A${long(63)}`, '', 1]],
  ],
)('%s takes %j and not %j', (check, right, wrong) => {
  const judge = definition[check] as (name: unknown) => boolean;
  expect(right.filter((name) => !judge(name))).toEqual([]);
  expect(wrong.filter(judge)).toEqual([]);
});

/** As the API server serves them. */
const SERVED = `
  clusterrolebindings clusterroles configmaps controllerrevisions cronjobs daemonsets deployments endpoints
  endpointslices events gateways horizontalpodautoscalers httproutes ingresses jobs leases limitranges namespaces
  networkpolicies nodes persistentvolumeclaims persistentvolumes poddisruptionbudgets pods podtemplates replicasets
  replicationcontrollers resourcequotas rolebindings roles secrets serviceaccounts services statefulsets storageclasses
`
  .trim()
  .split(/\s+/);

const KINDS = `
  ClusterRoleBinding ClusterRole ConfigMap ControllerRevision CronJob DaemonSet Deployment Endpoints
  EndpointSlice Event Gateway HorizontalPodAutoscaler HTTPRoute Ingress Job Lease LimitRange Namespace
  NetworkPolicy Node PersistentVolumeClaim PersistentVolume PodDisruptionBudget Pod PodTemplate ReplicaSet
  ReplicationController ResourceQuota RoleBinding Role Secret ServiceAccount Service StatefulSet StorageClass
`
  .trim()
  .split(/\s+/);

it('guesses the plural of every kind of Kubernetes itself', () => {
  expect(KINDS.map(guessPlural)).toEqual(SERVED);
});

test.each([
  'Key keys',
  'Display displays',
  'Proxy proxies',
  'Mailbox mailboxes',
  'Switch switches',
  'Mesh meshes',
])('a plural as tools that generate CRDs form it: %s', (pair) => {
  const [kind = '', plural] = pair.split(' ');
  const spec = { type: 'object', properties: {} } as const;
  const crd = defineCrd({ group: 'web.example.com', kind, description: 'Any.', spec });
  expect(crd.spec.names.plural).toBe(plural);
});

test.each([
  ['apps/v1', 'Deployment', 'Deployment.apps'],
  ['apps/v1beta1', 'Deployment', 'Deployment.apps'],
  ['v1', 'Service', 'Service'],
])('%s %s is named %s, whatever its version', (apiVersion, kind, name) => {
  expect(groupKind({ apiVersion, kind })).toBe(name);
});

test.each([
  ['imge', 'image'],
  ['imgae', 'image'],
  ['IMAGE', 'image'],
  ['protcol', 'protocol'],
  ['targetport', 'targetPort'],
  ['ab', undefined],
  ['replicas', undefined],
])('%s is taken for %s', (word, expected) => {
  expect(suggest(word, ['image', 'protocol', 'targetPort', 'size'])).toBe(expected);
});
