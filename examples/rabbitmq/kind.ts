import { createHash } from 'node:crypto';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import {
  checksumAnnotations,
  defineCrd,
  defineKind,
  inheritedMetadata,
  selectorLabels,
  type AnyObject,
  type KubernetesManifest,
  type PropsOf,
  type References,
  type SpecOf,
} from 'cdk8s-reconstruct';

const text = { type: 'string' } as const;
export const crd = defineCrd({
  group: 'messaging.example.com',
  kind: 'RabbitmqCluster',
  description: 'A cluster of RabbitMQ.',
  spec: {
    type: 'object',
    properties: {
      replicas: { type: 'integer', format: 'int32', minimum: 0, default: 1 },
      image: { type: 'string', default: 'rabbitmq:4.1-management' },
      service: {
        type: 'object',
        default: {},
        properties: {
          type: { type: 'string', enum: ['ClusterIP', 'LoadBalancer', 'NodePort'], default: 'ClusterIP' },
        },
      },
      persistence: {
        type: 'object',
        default: {},
        properties: {
          storageClassName: text,
          storageGi: { type: 'integer', minimum: 0, default: 10, description: 'Gi; 0 is none.' },
        },
      },
      rabbitmq: {
        type: 'object',
        default: {},
        properties: {
          additionalConfig: text,
          additionalPlugins: { type: 'array', default: [], 'x-kubernetes-list-type': 'set', items: text },
        },
      },
      tls: { type: 'object', default: {}, properties: { secretName: text } },
    },
  },
  status: {
    binding: { type: 'object', properties: { name: text } },
  },
  // What the original refuses while it reconciles, the API server refuses at once.
  rules: [
    { rule: 'self.spec.replicas >= oldSelf.spec.replicas', message: 'scale down is unsupported' },
    {
      rule: 'self.spec.persistence.storageGi >= oldSelf.spec.persistence.storageGi',
      message: 'shrinking persistent volumes is not supported',
    },
    {
      rule: '(self.spec.persistence.storageGi > 0) == (oldSelf.spec.persistence.storageGi > 0)',
      message: 'changing between ephemeral and persistent storage is not supported',
    },
  ],
  columns: [
    {
      name: 'AllReplicasReady',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="AllReplicasReady")].status',
    },
  ],
});

type Resource = {
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: SpecOf<typeof crd>;
};
const portOf = ({ spec: { tls } }: Pick<Resource, 'spec'>) => (tls.secretName === undefined ? 5672 : 5671);
const hostOf = ({ metadata: { name, namespace } }: Pick<Resource, 'metadata'>) => `${name}.${namespace}.svc`;
const generated = {
  cookie: { length: 24 },
  username: { length: 11 },
  password: { length: 24 },
  // What a service binding wants, and the server reads.
  'default_user.conf': {
    text: ({ values }: { values: Readonly<Record<string, string>> }) =>
      `default_user = ${values.username}\ndefault_pass = ${values.password}`,
  },
  connection_string: {
    text: ({ cr, values }: { cr: Resource; values: Readonly<Record<string, string>> }) =>
      `amqp${cr.spec.tls.secretName === undefined ? '' : 's'}://${values.username}:${values.password}@${hostOf(cr)}:${portOf(cr)}/`,
  },
} as const;
const references = {
  tls: { apiVersion: 'v1', kind: 'Secret', name: (cr) => cr.spec.tls.secretName },
} as const satisfies References<typeof crd>;

const children = [
  { apiVersion: 'v1', kind: 'Service' },
  { apiVersion: 'v1', kind: 'ConfigMap' },
  { apiVersion: 'v1', kind: 'ServiceAccount' },
  { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role' },
  { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding' },
  { apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
  // Immutable: it stays as it was made. The claims of new Pods are there before them.
  { apiVersion: 'apps/v1', kind: 'StatefulSet', createOnly: ['.spec.volumeClaimTemplates'] },
  { apiVersion: 'batch/v1', kind: 'Job' },
] as const;
type Props = PropsOf<typeof crd, { references: typeof references; generated: typeof generated }>;

interface Endpoint {
  readonly conditions?: { readonly ready?: boolean };
}

/** An EndpointSlice as kept. */
interface Slice {
  readonly service?: string;
  readonly ready: number;
}

class Rabbitmq extends Construct {
  constructor(scope: Construct, id: string, props: Props) {
    super(scope, id);
    const {
      metadata,
      spec,
      references: { tls },
      generated,
    } = props;
    const { name, namespace } = metadata;
    const inherited = inheritedMetadata(metadata, ['team', 'messaging.example.com/*']);
    const labels = selectorLabels(crd, name);
    const server = `${name}-server`;
    const isTls = spec.tls.secretName !== undefined;
    const { storageGi, storageClassName } = spec.persistence;

    const ports = [
      isTls ? { name: 'amqps', port: 5671 } : { name: 'amqp', port: 5672 },
      isTls ? { name: 'management-tls', port: 15671 } : { name: 'management', port: 15672 },
    ];
    const host = hostOf(props);
    const port = portOf(props);
    new ApiObject(this, 'Service', {
      ...({ apiVersion: 'v1', kind: 'Service' } as const),
      metadata: { name },
      spec: {
        type: spec.service.type,
        selector: labels,
        ports: ports.map((port) => ({ ...port, targetPort: port.port })),
      },
    } satisfies KubernetesManifest);
    new ApiObject(this, 'Nodes', {
      ...({ apiVersion: 'v1', kind: 'Service' } as const),
      metadata: { name: `${name}-nodes` },
      spec: {
        clusterIP: 'None',
        publishNotReadyAddresses: true,
        selector: labels,
        ports: [
          { name: 'epmd', port: 4369 },
          { name: 'cluster-rpc', port: 25672 },
        ],
      },
    } satisfies KubernetesManifest);

    const operatorConf = [
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
    ].join('\n');
    const conf = {
      'operatorDefaults.conf': operatorConf,
      'userDefinedConfiguration.conf': spec.rabbitmq.additionalConfig ?? '',
    };
    const plugins = [
      'rabbitmq_peer_discovery_k8s',
      'rabbitmq_prometheus',
      'rabbitmq_management',
      ...spec.rabbitmq.additionalPlugins,
    ];
    new ApiObject(this, 'Conf', {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: `${name}-server-conf` },
      data: conf,
    });
    new ApiObject(this, 'Plugins', {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: `${name}-plugins-conf` },
      data: { enabled_plugins: `[${plugins.join(',')}].` },
    });

    new ApiObject(this, 'Account', { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: server } });
    new ApiObject(this, 'Role', {
      ...({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role' } as const),
      metadata: { name: `${name}-peer-discovery` },
      rules: [
        { apiGroups: [''], resources: ['endpoints'], verbs: ['get'] },
        { apiGroups: [''], resources: ['events'], verbs: ['create'] },
      ],
    } satisfies KubernetesManifest);
    new ApiObject(this, 'Binding', {
      ...({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding' } as const),
      metadata: { name: server },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: `${name}-peer-discovery` },
      subjects: [{ kind: 'ServiceAccount', name: server, namespace: namespace ?? 'default' }],
    } satisfies KubernetesManifest);

    // Claims are children of ours, made before the StatefulSet that finds them by name: so they can grow, and go with the cluster.
    const claimSpec = (size: number) => ({
      accessModes: ['ReadWriteOnce'],
      ...(storageClassName !== undefined && { storageClassName }),
      resources: { requests: { storage: `${size}Gi` } },
    });
    if (storageGi > 0)
      for (let ordinal = 0; ordinal < spec.replicas; ordinal++)
        new ApiObject(this, `Claim${ordinal}`, {
          ...({ apiVersion: 'v1', kind: 'PersistentVolumeClaim' } as const),
          metadata: { name: `persistence-${server}-${ordinal}` },
          spec: claimSpec(storageGi),
        } satisfies KubernetesManifest);

    const checksum = createHash('sha256')
      .update(JSON.stringify([conf, plugins]))
      .digest('hex')
      .slice(0, 16);
    const volume = (mount: string, source: object) => ({ name: mount, ...source });
    const set = new ApiObject(this, 'Server', {
      ...({ apiVersion: 'apps/v1', kind: 'StatefulSet' } as const),
      metadata: { name: server, ...inherited },
      spec: {
        ...{
          replicas: spec.replicas,
          serviceName: `${name}-nodes`,
          podManagementPolicy: 'Parallel',
          selector: { matchLabels: labels },
        },
        template: {
          metadata: {
            labels,
            annotations: {
              'messaging.example.com/config': checksum,
              ...checksumAnnotations({ tls, generated }),
            },
          },
          spec: {
            serviceAccountName: server,
            containers: [
              {
                ...{ name: 'rabbitmq', image: spec.image, imagePullPolicy: 'IfNotPresent' },
                ports: ports.map(({ name, port }) => ({ name, containerPort: port })),
                env: [{ name: 'RABBITMQ_ERLANG_COOKIE', valueFrom: { secretKeyRef: generated.keys.cookie } }],
                readinessProbe: { tcpSocket: { port }, initialDelaySeconds: 10 },
                lifecycle: {
                  preStop: {
                    exec: { command: ['rabbitmq-upgrade', 'await_online_quorum_plus_one', '-t', '604800'] },
                  },
                },
                volumeMounts: [
                  { name: 'persistence', mountPath: '/var/lib/rabbitmq/mnesia' },
                  { name: 'conf', mountPath: '/etc/rabbitmq/conf.d' },
                  ...(isTls ? [{ name: 'tls', mountPath: '/etc/rabbitmq-tls' }] : []),
                ],
              },
            ],
            volumes: [
              volume('conf', {
                projected: {
                  sources: [
                    { configMap: { name: `${name}-server-conf` } },
                    { configMap: { name: `${name}-plugins-conf` } },
                    {
                      secret: {
                        name: generated.secretName,
                        items: [{ key: 'default_user.conf', path: 'default_user.conf' }],
                      },
                    },
                  ],
                },
              }),
              ...(isTls ? [volume('tls', { secret: { secretName: spec.tls.secretName } })] : []),
              ...(storageGi > 0 ? [] : [volume('persistence', { emptyDir: {} })]),
            ],
          },
        },
        ...(storageGi > 0 && {
          volumeClaimTemplates: [{ metadata: { name: 'persistence' }, spec: claimSpec(storageGi) }],
        }),
      },
    });
    // `rabbitmq-queues rebalance all` once after each rollout; the original executes it in a Pod.
    if (spec.replicas > 1) {
      const rebalance = new ApiObject(this, 'Rebalance', {
        ...({ apiVersion: 'batch/v1', kind: 'Job' } as const),
        metadata: { name: `${name}-rebalance-${checksum}` },
        spec: {
          template: {
            spec: {
              restartPolicy: 'OnFailure',
              containers: [
                {
                  name: 'rebalance',
                  image: spec.image,
                  imagePullPolicy: 'IfNotPresent',
                  args: ['rabbitmqadmin', 'rebalance', 'queues', '--host', host],
                  envFrom: [{ secretRef: { name: generated.secretName } }],
                },
              ],
            },
          },
        },
      } satisfies KubernetesManifest);
      rebalance.addDependency(set);
    }
  }
}

export const rabbitmq = defineKind({
  ...{ crd, references, generated, children, readsMetadata: true, construct: Rabbitmq },
  related: [
    {
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' },
      // The labels of a Service are those of its slices, too.
      selector: 'messaging.example.com/rabbitmqcluster',
      keep: ({ metadata, endpoints }) => ({
        ...(metadata.labels?.['kubernetes.io/service-name'] && {
          service: metadata.labels['kubernetes.io/service-name'],
        }),
        ready: ((endpoints ?? []) as readonly Endpoint[]).filter(({ conditions }) => conditions?.ready)
          .length,
      }),
      nameOf: ({ metadata }) => metadata.labels?.['messaging.example.com/rabbitmqcluster'],
    },
  ],
  status: ({
    cr: {
      metadata: { name },
      spec,
    },
    children,
    related,
  }) => {
    const set = children.find((child) => child.kind === 'StatefulSet');
    const isAll = (set?.status?.readyReplicas ?? 0) >= spec.replicas;
    const endpoints = (related as readonly (AnyObject & Slice)[])
      .filter(({ service }) => service === name)
      .reduce((sum, { ready }) => sum + ready, 0);
    return {
      fields: {
        binding: { name: `${name}-rabbitmqcluster-generated` },
      },
      conditions: [
        {
          type: 'AllReplicasReady',
          status: isAll ? 'True' : 'False',
          reason: isAll ? 'AllPodsAreReady' : 'NotAllPodsReady',
          message: `${set?.status?.readyReplicas ?? 0}/${spec.replicas} Pods ready`,
        },
        {
          type: 'ClusterAvailable',
          status: endpoints > 0 ? 'True' : 'False',
          reason: endpoints > 0 ? 'AtLeastOneEndpointAvailable' : 'NoEndpointsAvailable',
          message: `${endpoints} endpoints`,
        },
      ],
    };
  },
});
