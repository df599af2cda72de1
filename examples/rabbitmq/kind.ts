import { createHash } from 'node:crypto';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import {
  checksumAnnotations,
  defineCrd,
  defineKind,
  inheritedMetadata,
  selectorLabels,
} from 'cdk8s-reconstruct';
import type { AnyObject, KubernetesManifest, PropsOf, References, SpecOf } from 'cdk8s-reconstruct';

const text = { type: 'string' } as const;
const object = <const Properties>(properties: Properties) =>
  ({ type: 'object', default: {}, properties }) as const;
const [size, ALL_READY] = ['spec.persistence.storageGi', 'AllReplicasReady'];
const crd = defineCrd({
  ...{ group: 'messaging.example.com', kind: 'RabbitmqCluster', description: 'A cluster of RabbitMQ.' },
  spec: object({
    replicas: { type: 'integer', format: 'int32', minimum: 0, default: 1 },
    image: { type: 'string', default: 'rabbitmq:4.1-management' },
    service: object({
      type: { type: 'string', enum: ['ClusterIP', 'LoadBalancer', 'NodePort'], default: 'ClusterIP' },
    }),
    persistence: object({
      storageClassName: text,
      storageGi: { type: 'integer', minimum: 0, default: 10, description: 'Gi; 0 is none.' },
    }),
    rabbitmq: object({
      additionalConfig: text,
      additionalPlugins: { type: 'array', default: [], 'x-kubernetes-list-type': 'set', items: text },
    }),
    tls: object({ secretName: text }),
  }),
  status: { binding: { type: 'object', properties: { name: text } } },
  // What the original refuses while it reconciles, the API server refuses at once.
  rules: [
    { rule: 'self.spec.replicas >= oldSelf.spec.replicas', message: 'scale down is unsupported' },
    { rule: `self.${size} >= oldSelf.${size}`, message: 'shrinking persistent volumes is not supported' },
    {
      rule: `(self.${size} > 0) == (oldSelf.${size} > 0)`,
      message: 'changing between ephemeral and persistent storage is not supported',
    },
  ],
  columns: [
    { name: ALL_READY, type: 'string', jsonPath: `.status.conditions[?(@.type=="${ALL_READY}")].status` },
  ],
});

interface Resource {
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: SpecOf<typeof crd>;
}
const secretOf = (name: string) => `${name}-default-user`;
const hostOf = ({ metadata: { name, namespace } }: Resource) => `${name}.${namespace}.svc`;
const amqpOf = ({ spec: { tls } }: Resource) =>
  tls.secretName === undefined ? { name: 'amqp', port: 5672 } : { name: 'amqps', port: 5671 };

type Composed = { cr: Resource; values: Readonly<Record<string, string>> };
const generated = {
  ...{ cookie: { length: 24 }, username: { length: 11 }, password: { length: 24 } },
  // For the server to read, and what a service binding wants.
  'default_user.conf': {
    text: ({ values: { username, password } }: Composed) =>
      `default_user = ${username}\ndefault_pass = ${password}`,
  },
  ...{ provider: { text: () => 'rabbitmq' }, type: { text: () => 'rabbitmq' } },
  host: { text: ({ cr }: Composed) => hostOf(cr) },
  port: { text: ({ cr }: Composed) => String(amqpOf(cr).port) },
  connection_string: {
    text: ({ cr, values: { username, password, host, port } }: Composed) =>
      `${amqpOf(cr).name}://${username}:${password}@${host}:${port}/`,
  },
};
const references = {
  tls: { apiVersion: 'v1', kind: 'Secret', name: (cr) => cr.spec.tls.secretName },
} as const satisfies References<typeof crd>;
type Props = PropsOf<typeof crd, { references: typeof references; generated: typeof generated }>;

class Rabbitmq extends Construct {
  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    const { metadata, spec, generated } = props;
    const { tls } = props.references;
    const { name, namespace = 'default' } = metadata;
    const { storageGi, storageClassName } = spec.persistence;
    const [server, plugins, role] = [`${name}-server`, `${name}-plugins-conf`, `${name}-peer-discovery`];
    const labels = selectorLabels(crd, name);
    const isTls = spec.tls.secretName !== undefined;
    const amqp = amqpOf(props);
    const management = isTls ? { name: 'management-tls', port: 15671 } : { name: 'management', port: 15672 };
    const make = (manifest: KubernetesManifest & { readonly metadata: { readonly name: string } }) =>
      new ApiObject(this, `${manifest.kind}-${manifest.metadata.name}`, manifest);

    make({
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name } },
      spec: { type: spec.service.type, selector: labels, ports: [amqp, management] },
    });
    const nodes = [
      { name: 'epmd', port: 4369 },
      { name: 'cluster-rpc', port: 25672 },
    ];
    make({
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: `${name}-nodes` } },
      spec: { clusterIP: 'None', publishNotReadyAddresses: true, selector: labels, ports: nodes },
    });

    const operatorDefaults = [
      'cluster_partition_handling = pause_minority',
      'cluster_formation.peer_discovery_backend = rabbit_peer_discovery_k8s',
      'cluster_formation.k8s.host = kubernetes.default',
      'cluster_formation.k8s.address_type = hostname',
      `cluster_formation.target_cluster_size_hint = ${spec.replicas}`,
      `cluster_name = ${name}`,
      ...(isTls
        ? [
            'ssl_options.certfile = /etc/rabbitmq-tls/tls.crt',
            'ssl_options.keyfile = /etc/rabbitmq-tls/tls.key',
            'listeners.ssl.default = 5671',
          ]
        : []),
    ];
    const conf = {
      'operatorDefaults.conf': operatorDefaults.join('\n'),
      'userDefinedConfiguration.conf': spec.rabbitmq.additionalConfig ?? '',
    };
    const always = ['rabbitmq_peer_discovery_k8s', 'rabbitmq_prometheus', 'rabbitmq_management'];
    const enabled = { enabled_plugins: `[${[...always, ...spec.rabbitmq.additionalPlugins].join(',')}].` };
    make({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `${server}-conf` }, data: conf });
    make({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: plugins }, data: enabled });

    const [rbac, apiGroup] = ['rbac.authorization.k8s.io/v1', 'rbac.authorization.k8s.io'] as const;
    make({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: server } });
    make({
      ...{ apiVersion: rbac, kind: 'Role', metadata: { name: role } },
      rules: [
        { apiGroups: [''], resources: ['endpoints'], verbs: ['get'] },
        { apiGroups: [''], resources: ['events'], verbs: ['create'] },
      ],
    });
    make({
      ...{ apiVersion: rbac, kind: 'RoleBinding', metadata: { name: server } },
      roleRef: { apiGroup, kind: 'Role', name: role },
      subjects: [{ kind: 'ServiceAccount', name: server, namespace }],
    });

    // Claims are children of ours, made before the StatefulSet that finds them by name: so they can grow, and go with the cluster.
    const claim = {
      accessModes: ['ReadWriteOnce'],
      ...(storageClassName !== undefined && { storageClassName }),
      resources: { requests: { storage: `${storageGi}Gi` } },
    };
    for (let ordinal = 0; storageGi > 0 && ordinal < spec.replicas; ordinal++)
      make({
        ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
        ...{ metadata: { name: `persistence-${server}-${ordinal}` }, spec: claim },
      });

    const hash = createHash('sha256').update(JSON.stringify([conf, enabled, spec.image]));
    const checksum = hash.digest('hex').slice(0, 16);
    const annotations = {
      'messaging.example.com/config': checksum,
      ...checksumAnnotations({ tls, generated }),
    };
    const items = [{ key: 'default_user.conf', path: 'default_user.conf' }];
    const sources = [
      ...[{ configMap: { name: `${server}-conf` } }, { configMap: { name: plugins } }],
      { secret: { name: generated.secretName, items } },
    ];
    const preStop = ['rabbitmq-upgrade', 'await_online_quorum_plus_one', '-t', '604800'];
    const container = { image: spec.image, imagePullPolicy: 'IfNotPresent' };
    const set = make({
      ...{ apiVersion: 'apps/v1', kind: 'StatefulSet' },
      metadata: { name: server, ...inheritedMetadata(metadata, ['team', 'messaging.example.com/*']) },
      spec: {
        ...{ replicas: spec.replicas, serviceName: `${name}-nodes`, podManagementPolicy: 'Parallel' },
        selector: { matchLabels: labels },
        template: {
          metadata: { labels, annotations },
          spec: {
            serviceAccountName: server,
            containers: [
              {
                ...{ name: 'rabbitmq', ...container },
                ports: [amqp, management].map(({ name, port }) => ({ name, containerPort: port })),
                env: [{ name: 'RABBITMQ_ERLANG_COOKIE', valueFrom: { secretKeyRef: generated.keys.cookie } }],
                readinessProbe: { tcpSocket: { port: amqp.port }, initialDelaySeconds: 10 },
                lifecycle: { preStop: { exec: { command: preStop } } },
                volumeMounts: [
                  { name: 'persistence', mountPath: '/var/lib/rabbitmq/mnesia' },
                  { name: 'conf', mountPath: '/etc/rabbitmq/conf.d' },
                  ...(isTls ? [{ name: 'tls', mountPath: '/etc/rabbitmq-tls' }] : []),
                ],
              },
            ],
            volumes: [
              { name: 'conf', projected: { sources } },
              ...(isTls ? [{ name: 'tls', secret: { secretName: spec.tls.secretName } }] : []),
              ...(storageGi > 0 ? [] : [{ name: 'persistence', emptyDir: {} }]),
            ],
          },
        },
        ...(storageGi > 0 && { volumeClaimTemplates: [{ metadata: { name: 'persistence' }, spec: claim }] }),
      },
    });
    if (spec.replicas < 2) return;
    // `rabbitmq-queues rebalance all` once after each rollout; the original executes it in a Pod.
    const args = ['rabbitmqadmin', 'rebalance', 'queues', '--host', hostOf(props)];
    const envFrom = [{ secretRef: { name: generated.secretName } }];
    const containers = [{ name: 'rebalance', ...container, args, envFrom }];
    const rebalance = make({
      ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: `${name}-rebalance-${checksum}` } },
      spec: { template: { spec: { restartPolicy: 'OnFailure', containers } } },
    });
    rebalance.addDependency(set);
  }
}

const OF_CLUSTER = 'messaging.example.com/rabbitmqcluster';
const isReady = ({ conditions }: { conditions?: { ready?: boolean } }) => conditions?.ready;

const children = [
  { apiVersion: 'v1', kind: 'Service' },
  { apiVersion: 'v1', kind: 'ConfigMap' },
  { apiVersion: 'v1', kind: 'ServiceAccount' },
  { apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
  { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role' },
  { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding' },
  // Immutable: it stays as it was made. The claims of new Pods are there before them.
  { apiVersion: 'apps/v1', kind: 'StatefulSet', createOnly: ['.spec.volumeClaimTemplates'] },
  { apiVersion: 'batch/v1', kind: 'Job' },
] as const;

export const rabbitmq = defineKind({
  ...{ crd, references, generated, children, readsMetadata: true, construct: Rabbitmq },
  generatedSecretName: secretOf,
  related: [
    {
      // The labels of a Service are those of its slices, too.
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', selector: OF_CLUSTER },
      keep: ({ metadata, endpoints }) => ({
        service: metadata.labels?.['kubernetes.io/service-name'] ?? '',
        ready: ((endpoints ?? []) as Parameters<typeof isReady>[0][]).filter(isReady).length,
      }),
      nameOf: ({ metadata }) => metadata.labels?.[OF_CLUSTER],
    },
  ],
  status: ({ cr: { metadata, spec }, children, related }) => {
    const readyReplicas = children.find((child) => child.kind === 'StatefulSet')?.status?.readyReplicas ?? 0;
    const isAll = readyReplicas >= spec.replicas;
    const endpoints = (related as readonly (AnyObject & { service: string; ready: number })[])
      .filter(({ service }) => service === metadata.name)
      .reduce((sum, { ready }) => sum + ready, 0);
    return {
      fields: { binding: { name: secretOf(metadata.name) } },
      conditions: [
        {
          ...(isAll
            ? { type: ALL_READY, status: 'True', reason: 'AllPodsAreReady' }
            : { type: ALL_READY, status: 'False', reason: 'NotAllPodsReady' }),
          message: `${readyReplicas}/${spec.replicas} Pods ready`,
        },
        {
          ...(endpoints > 0
            ? { type: 'ClusterAvailable', status: 'True', reason: 'AtLeastOneEndpointAvailable' }
            : { type: 'ClusterAvailable', status: 'False', reason: 'NoEndpointsAvailable' }),
          message: `${endpoints} endpoints`,
        },
      ],
    };
  },
});
