import { beforeAll, expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { fieldChanges } from '../../src/engine/preview/fields.js';
import { isFixed } from '../../src/engine/preview/rollout.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
let namespace: string;

beforeAll(async () => {
  namespace = await cluster.makeNamespace('fixed');
});

type Fields = Readonly<Record<string, unknown>>;

const labels = { app: 'web' };
const pod = (image = 'web:1', rest: Fields = {}) => ({
  metadata: { labels },
  spec: { containers: [{ name: 'web', image }], ...rest },
});
const never = { restartPolicy: 'Never' };
const selector = { matchLabels: labels };
const more = {
  selector: { matchLabels: { ...labels, tier: 'web' } },
  template: { ...pod(), metadata: { labels: { ...labels, tier: 'web' } } },
};
const claim = (storage: string, rest: Fields = {}) => ({
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'none',
    resources: { requests: { storage } },
    ...rest,
  },
});
const claims = (storage: string) => ({
  volumeClaimTemplates: [{ metadata: { name: 'data' }, ...claim(storage) }],
});
const workload = { selector, template: pod() };
const stateful = { ...workload, serviceName: 'web', ...claims('1Gi') };
const job = { template: pod('web:1', never), suspend: false };
const indexed = { ...job, completionMode: 'Indexed', completions: 2, parallelism: 1 };
const port = { ports: [{ port: 80 }] };
const role = (name: string) => ({
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
});
const storage = {
  provisioner: 'example.com/a',
  parameters: { a: '1' },
  reclaimPolicy: 'Delete',
  volumeBindingMode: 'Immediate',
};

/** Changes of objects: each field that differs is one that the API server refuses to change, or none of them is. */
const CHANGES: readonly (readonly [type: string, before: Fields, after: Fields, isRefused: boolean])[] = [
  ['apps/v1 Deployment', { spec: workload }, { spec: more }, true],
  [
    'apps/v1 Deployment',
    { spec: workload },
    { spec: { ...workload, template: pod('web:2'), replicas: 2, paused: true } },
    false,
  ],
  ['apps/v1 DaemonSet', { spec: workload }, { spec: more }, true],
  [
    'apps/v1 DaemonSet',
    { spec: workload },
    { spec: { ...workload, template: pod('web:2'), minReadySeconds: 1 } },
    false,
  ],
  ['apps/v1 ReplicaSet', { spec: workload }, { spec: more }, true],
  ['apps/v1 StatefulSet', { spec: stateful }, { spec: { ...stateful, serviceName: 'other' } }, true],
  ['apps/v1 StatefulSet', { spec: stateful }, { spec: { ...stateful, ...claims('2Gi') } }, true],
  [
    'apps/v1 StatefulSet',
    { spec: stateful },
    { spec: { ...stateful, podManagementPolicy: 'Parallel' } },
    true,
  ],
  [
    'apps/v1 StatefulSet',
    { spec: stateful },
    {
      spec: {
        ...{ ...stateful, template: pod('web:2'), replicas: 2, minReadySeconds: 1, revisionHistoryLimit: 2 },
        ...{ ordinals: { start: 1 }, updateStrategy: { rollingUpdate: { partition: 1 } } },
        persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete', whenScaled: 'Delete' },
      },
    },
    false,
  ],
  ['batch/v1 Job', { spec: job }, { spec: { ...job, template: pod('web:2', never) } }, true],
  ['batch/v1 Job', { spec: job }, { spec: { ...job, completions: 2 } }, true],
  ['batch/v1 Job', { spec: job }, { spec: { ...job, podReplacementPolicy: 'Failed' } }, false],
  [
    'batch/v1 Job',
    { spec: job },
    {
      spec: {
        ...job,
        podFailurePolicy: {
          rules: [{ action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] }],
        },
      },
    },
    true,
  ],
  ['batch/v1 Job', { spec: job }, { spec: { ...job, managedBy: 'example.com/other' } }, true],
  [
    'batch/v1 Job',
    { spec: indexed },
    { spec: { ...indexed, successPolicy: { rules: [{ succeededCount: 1 }] } } },
    true,
  ],
  ['batch/v1 Job', { spec: indexed }, { spec: { ...indexed, backoffLimitPerIndex: 1 } }, true],
  [
    'batch/v1 Job',
    { spec: job },
    { spec: { ...job, parallelism: 2, backoffLimit: 2, ttlSecondsAfterFinished: 9, suspend: true } },
    false,
  ],
  [
    'batch/v1 CronJob',
    { spec: { schedule: '1 * * * *', jobTemplate: { spec: job } } },
    { spec: { schedule: '2 * * * *', jobTemplate: { spec: { ...job, template: pod('web:2', never) } } } },
    false,
  ],
  ['v1 PersistentVolumeClaim', claim('1Gi'), claim('1Gi', { accessModes: ['ReadOnlyMany'] }), true],
  ['v1 PersistentVolumeClaim', claim('1Gi'), claim('1Gi', { storageClassName: 'other' }), true],
  ['v1 Pod', pod(), pod('web:1', { nodeSelector: labels }), true],
  ['v1 Pod', pod(), pod('web:2', { activeDeadlineSeconds: 9 }), false],
  ['v1 Service', { spec: port }, { spec: { ...port, clusterIP: 'None' } }, true],
  ['v1 Service', { spec: { ...port, clusterIP: 'None' } }, { spec: port }, false],
  [
    'v1 Service',
    { spec: port },
    { spec: { ports: [{ port: 81 }], selector: labels, type: 'NodePort' } },
    false,
  ],
  ['v1 Secret', { type: 'Opaque' }, { type: 'example.com/other' }, true],
  [
    'v1 Secret',
    { stringData: { a: '1' }, immutable: true },
    { stringData: { a: '2' }, immutable: true },
    true,
  ],
  ['v1 ConfigMap', { data: { a: '1' }, immutable: true }, { data: { a: '2' }, immutable: true }, true],
  ['v1 ConfigMap', { data: { a: '1' }, immutable: true }, { data: { a: '1' }, immutable: false }, true],
  ['v1 ConfigMap', { data: { a: '1' } }, { data: { a: '2' }, immutable: true }, false],
  ['rbac.authorization.k8s.io/v1 RoleBinding', role('view'), role('edit'), true],
  ['rbac.authorization.k8s.io/v1 ClusterRoleBinding', role('view'), role('edit'), true],
  ...['provisioner', 'reclaimPolicy', 'volumeBindingMode'].map((field) => {
    const other = {
      provisioner: 'example.com/b',
      reclaimPolicy: 'Retain',
      volumeBindingMode: 'WaitForFirstConsumer',
    }[field];
    return ['storage.k8s.io/v1 StorageClass', storage, { ...storage, [field]: other }, true] as const;
  }),
  ['storage.k8s.io/v1 StorageClass', storage, { ...storage, parameters: { a: '2' } }, true],
  ['storage.k8s.io/v1 StorageClass', storage, { ...storage, allowVolumeExpansion: true }, false],
  ['scheduling.k8s.io/v1 PriorityClass', { value: 1 }, { value: 2 }, true],
  [
    'scheduling.k8s.io/v1 PriorityClass',
    { value: 1, preemptionPolicy: 'Never' },
    { value: 1, preemptionPolicy: 'PreemptLowerPriority' },
    true,
  ],
  [
    'networking.k8s.io/v1 IngressClass',
    { spec: { controller: 'example.com/a' } },
    { spec: { controller: 'example.com/b' } },
    true,
  ],
];
const CLUSTER_SCOPED = /ClusterRoleBinding|Class$/;

test.for(CHANGES.map((change, index) => [index, ...change] as const))(
  'what is said of a change in place is what the API server does: %s %s',
  async ([index, named, before, after, isRefused]) => {
    const [apiVersion = '', kind = ''] = named.split(' ');
    const namespaced = !CLUSTER_SCOPED.test(kind);
    const type = resourceType({ apiVersion, kind, namespaced });
    const metadata = { name: `${namespace}-${index}`, ...(namespaced && { namespace }) };
    const [was, is] = [before, after].map((fields): AnyObject => {
      const { metadata: own, ...rest } = fields as { readonly metadata?: object };
      return { apiVersion, kind, metadata: { ...metadata, ...own }, ...rest };
    }) as [AnyObject, AnyObject];

    const changes = fieldChanges(was, is);
    expect(changes.length).toBeGreaterThan(0);
    const apply = (object: AnyObject) => cluster.apply(type, object, 'fixed-controller');
    await apply(was);
    const refusal = await apply(is).then(
      () => undefined,
      (error: unknown) => String(error),
    );
    expect(refusal !== undefined, refusal).toBe(isRefused);
    expect(changes.some((change) => isFixed(was, change))).toBe(isRefused);
  },
);
