import { hash } from 'node:crypto';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { checksumAnnotations, defineCrd, defineKind, inheritedMetadata } from 'cdk8s-reconstruct';
import { selectorLabels } from 'cdk8s-reconstruct';
import type { GeneratedParts, KubernetesManifest, ObjectOf, PropsOf, References } from 'cdk8s-reconstruct';

const text = { type: 'string' } as const;
const named = { type: 'object', properties: { name: text, namespace: text } } as const;
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
  status: { binding: named, defaultUser: { type: 'object', properties: { secretReference: named } } },
  // What the original refuses while it reconciles, the API server refuses at once.
  rules: [
    { rule: 'self.spec.replicas >= oldSelf.spec.replicas', message: 'scale down is unsupported' },
    { rule: `self.${size} >= oldSelf.${size}`, message: 'shrinking persistent volumes is not supported' },
    { rule: `(self.${size} > 0) == (oldSelf.${size} > 0)`, message: 'ephemeral storage stays ephemeral' },
  ],
  columns: [
    { name: ALL_READY, type: 'string', jsonPath: `.status.conditions[?(@.type=="${ALL_READY}")].status` },
  ],
});

type Resource = PropsOf<typeof crd>;
const secretOf = (name: string) => `${name}-default-user`;
const hostOf = ({ metadata: { name, namespace } }: Resource) => `${name}.${namespace}.svc`;
const port = (name: string, port: number) => ({ name, port });
const amqpOf = ({ spec: { tls } }: Resource) => (tls.secretName ? port('amqps', 5671) : port('amqp', 5672));

const generated = {
  ...{ cookie: { length: 24 }, username: { length: 11 }, password: { length: 24 } },
  // For the server to read, and what a service binding wants.
  'default_user.conf': {
    text: ({ values: of }) => `default_user = ${of.username}\ndefault_pass = ${of.password}`,
  },
  ...{ provider: { text: () => 'rabbitmq' }, type: { text: () => 'rabbitmq' } },
  host: { text: ({ cr }) => hostOf(cr) },
  port: { text: ({ cr }) => String(amqpOf(cr).port) },
  connection_string: {
    text: ({ cr, values: of }) => `${amqpOf(cr).name}://${of.username}:${of.password}@${of.host}:${of.port}/`,
  },
} as const satisfies GeneratedParts<typeof crd>;
const references = {
  tls: { apiVersion: 'v1', kind: 'Secret', name: (cr) => cr.spec.tls.secretName },
} as const satisfies References<typeof crd>;
type Props = PropsOf<typeof crd, { references: typeof references; generated: typeof generated }>;

const confOf = ({ metadata: { name }, spec }: Resource) => `cluster_partition_handling = pause_minority
cluster_formation.peer_discovery_backend = rabbit_peer_discovery_k8s
cluster_formation.k8s.host = kubernetes.default
cluster_formation.k8s.address_type = hostname
cluster_formation.target_cluster_size_hint = ${spec.replicas}
cluster_name = ${name}`;
const tlsConf = `
ssl_options.certfile = /etc/rabbitmq-tls/tls.crt
ssl_options.keyfile = /etc/rabbitmq-tls/tls.key
listeners.ssl.default = 5671`;

class Rabbitmq extends Construct {
  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    const { metadata, spec, references, generated } = props;
    const { name, namespace = 'default' } = metadata;
    const { storageGi, storageClassName } = spec.persistence;
    const [server, plugins, role] = [`${name}-server`, `${name}-plugins-conf`, `${name}-peer-discovery`];
    const labels = selectorLabels(crd, name);
    const { secretName } = spec.tls;
    const ports = [amqpOf(props), secretName ? port('management-tls', 15671) : port('management', 15672)];
    const make = (manifest: KubernetesManifest & { readonly metadata: { readonly name: string } }) =>
      new ApiObject(this, `${manifest.kind}-${manifest.metadata.name}`, manifest);

    make({
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name } },
      spec: { type: spec.service.type, selector: labels, ports },
    });
    const nodes = [port('epmd', 4369), port('cluster-rpc', 25672)];
    make({
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: `${name}-nodes` } },
      spec: { clusterIP: 'None', publishNotReadyAddresses: true, selector: labels, ports: nodes },
    });

    const conf = {
      'operatorDefaults.conf': confOf(props) + (secretName ? tlsConf : ''),
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

    const checksum = hash('sha256', JSON.stringify([conf, enabled, spec.image])).slice(0, 16);
    const checksums = checksumAnnotations({ tls: references.tls, generated });
    const items = [{ key: 'default_user.conf', path: 'default_user.conf' }];
    const sources = [
      ...[{ configMap: { name: `${server}-conf` } }, { configMap: { name: plugins } }],
      { secret: { name: generated.secretName, items } },
    ];
    const preStop = ['rabbitmq-upgrade', 'await_online_quorum_plus_one', '-t', '604800'];
    const container = { image: spec.image, imagePullPolicy: 'IfNotPresent' };
    const rabbitmq = {
      ...{ name: 'rabbitmq', ...container },
      ports: ports.map(({ name, port }) => ({ name, containerPort: port })),
      env: [{ name: 'RABBITMQ_ERLANG_COOKIE', valueFrom: { secretKeyRef: generated.keys.cookie } }],
      readinessProbe: { tcpSocket: { port: amqpOf(props).port }, initialDelaySeconds: 10 },
      lifecycle: { preStop: { exec: { command: preStop } } },
      volumeMounts: [
        { name: 'persistence', mountPath: '/var/lib/rabbitmq/mnesia' },
        { name: 'conf', mountPath: '/etc/rabbitmq/conf.d' },
        ...(secretName ? [{ name: 'tls', mountPath: '/etc/rabbitmq-tls' }] : []),
      ],
    };
    const set = make({
      ...{ apiVersion: 'apps/v1', kind: 'StatefulSet' },
      metadata: { name: server, ...inheritedMetadata(metadata, ['team', 'messaging.example.com/*']) },
      spec: {
        ...{ replicas: spec.replicas, serviceName: `${name}-nodes`, podManagementPolicy: 'Parallel' },
        selector: { matchLabels: labels },
        template: {
          metadata: { labels, annotations: { 'messaging.example.com/config': checksum, ...checksums } },
          spec: {
            ...{ serviceAccountName: server, containers: [rabbitmq] },
            volumes: [
              { name: 'conf', projected: { sources } },
              ...(secretName ? [{ name: 'tls', secret: { secretName } }] : []),
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
    make({
      ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: `${name}-rebalance-${checksum}` } },
      spec: { template: { spec: { restartPolicy: 'OnFailure', containers } } },
    }).addDependency(set);
  }
}

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
const condition = (type: string, holds: boolean, [yes, no]: [string, string], message: string) =>
  ({ type, status: holds ? 'True' : 'False', reason: holds ? yes : no, message }) as const;

export const rabbitmq = defineKind({
  ...{ crd, references, generated, children, readsMetadata: true, construct: Rabbitmq },
  generatedSecretName: secretOf,
  related: [
    {
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' },
      // The labels of a Service are those of its slices, too; that for clients has the name of the cluster.
      selector: 'messaging.example.com/rabbitmqcluster',
      keep: ({ endpoints }: ObjectOf<'discovery.k8s.io/v1', 'EndpointSlice'>) => ({
        ready: endpoints?.filter(({ conditions }) => conditions?.ready).length ?? 0,
      }),
      nameOf: ({ metadata }) => metadata.labels?.['kubernetes.io/service-name'],
    },
  ],
  status: ({ cr: { metadata, spec }, children, related }) => {
    const { name, namespace = 'default' } = metadata;
    const set = children.find((child) => child.kind === 'StatefulSet');
    const ready = set?.status?.readyReplicas ?? 0;
    const pods = `${ready}/${spec.replicas} Pods ready`;
    const endpoints = related.reduce((sum, slice) => sum + Number(slice.ready), 0);
    const [some, none] = ['AtLeastOneEndpointAvailable', 'NoEndpointsAvailable'];
    return {
      fields: {
        binding: { name: secretOf(name) },
        defaultUser: { secretReference: { name: secretOf(name), namespace } },
      },
      conditions: [
        condition(ALL_READY, ready >= spec.replicas, ['AllPodsAreReady', 'NotAllPodsReady'], pods),
        condition('ClusterAvailable', endpoints > 0, [some, none], `${endpoints} endpoints`),
      ],
    };
  },
});
