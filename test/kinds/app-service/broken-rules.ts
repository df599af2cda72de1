/** A spec, beside size and image, that breaks one rule of the schema alone. */
export interface BrokenRule {
  readonly spec: object;
  /** The spec put right, with as few changes as can be. */
  readonly valid: object;
  /** @default web */
  readonly name?: string;
  /** The field that the API server names. */
  readonly path: string;
  /** A part of the message. */
  readonly message: string;
}

const tcp = { port: 80 };
const route = { parentRefs: [{ name: 'edge' }] };
const hpa = { maxReplicas: 3 };
const scale = (type: string, member: object) => ({ autoscaling: { ...hpa, metrics: [{ type, ...member }] } });
const queue = { metric: { name: 'queue' } };
/** As long as the key of a label can be. */
const longName = `${[63, 63, 63, 61].map((length) => 'a'.repeat(length)).join('.')}/${'b'.repeat(63)}`;
/** The API server takes no longer one in a container, since "requests." before it is a name too. */
const resource = longName.slice('requests.'.length);
const spread = { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway' };

const spreadOver = (labelSelector: object) => ({
  topologySpread: { constraints: [{ ...spread, labelSelector }] },
});

/** Each CEL rule of AppService, broken alone. */
export const brokenRules: readonly BrokenRule[] = [
  ...['limits', 'requests'].map((amounts) => ({
    spec: { resources: { limits: { [resource]: 1 }, [amounts]: { [resource]: 1, [`${longName}a`]: 1 } } },
    valid: { resources: { limits: { [resource]: 1 }, [amounts]: { [resource]: 1 } } },
    path: `spec.resources.${amounts}`,
    message: 'the name of a resource has at most 317 characters',
  })),
  {
    spec: spreadOver({ matchLabels: { [`${longName}a`]: 'b' } }),
    valid: spreadOver({ matchLabels: { [longName]: 'b' } }),
    path: 'spec.topologySpread.constraints[0].labelSelector.matchLabels',
    message: 'the key of a label has at most 317 characters',
  },
  {
    spec: {},
    valid: {},
    name: '1web',
    path: 'metadata',
    message:
      'with a letter at the start and a letter or digit at the end; create the object under another name',
  },
  {
    spec: {},
    valid: {},
    name: 'a'.repeat(64),
    path: 'metadata',
    message: 'it has at most 63 lower-case letters, digits and "-"',
  },
  {
    spec: { ports: [{ port: 80 }, { port: 81, name: 'b' }] },
    valid: {
      ports: [
        { port: 80, name: 'a' },
        { port: 81, name: 'b' },
      ],
    },
    path: 'spec.ports',
    message: 'each needs a name',
  },
  {
    spec: {
      ports: [
        { port: 80, name: 'a' },
        { port: 81, name: 'a' },
      ],
    },
    valid: {
      ports: [
        { port: 80, name: 'a' },
        { port: 81, name: 'b' },
      ],
    },
    path: 'spec.ports',
    message: 'two ports have the same name',
  },
  {
    spec: {
      ports: [
        { port: 80, name: 'a', nodePort: 30080 },
        { port: 81, name: 'b', nodePort: 30080 },
      ],
    },
    valid: {
      ports: [
        { port: 80, name: 'a', nodePort: 30080 },
        { port: 80, name: 'b', nodePort: 30080, protocol: 'UDP' },
      ],
    },
    path: 'spec.ports',
    message: 'the same nodePort',
  },
  {
    // The API server gives a node port to a number, whatever its protocol.
    spec: {
      ports: [
        { port: 80, name: 'a', nodePort: 30080 },
        { port: 81, name: 'b', nodePort: 30080, protocol: 'UDP' },
      ],
    },
    valid: {
      ports: [
        { port: 80, name: 'a', nodePort: 30080 },
        { port: 80, name: 'b', nodePort: 30080, protocol: 'SCTP' },
      ],
    },
    path: 'spec.ports',
    message: 'the same nodePort',
  },
  {
    spec: {
      ports: [
        { port: 80, name: 'a', targetPort: 'web' },
        { port: 81, name: 'b', targetPort: 'web' },
      ],
    },
    valid: {
      ports: [
        { port: 80, name: 'a', targetPort: 'web' },
        { port: 81, name: 'b', targetPort: 80 },
      ],
    },
    path: 'spec.ports',
    message: 'names one container port',
  },
  ...['80', 'a--b', '-a', 'Web'].map((targetPort) => ({
    spec: { ports: [{ port: 80, targetPort }] },
    valid: { ports: [{ port: 80, targetPort: 'a-b' }] },
    path: 'spec.ports[0].targetPort',
    message: 'at least one letter, no "--"',
  })),
  {
    spec: { ports: [{ port: 80, nodePort: 30080 }], service: { type: 'ClusterIP' } },
    valid: { ports: [{ port: 80, nodePort: 30080 }], service: { type: 'LoadBalancer' } },
    path: 'spec.ports',
    message: 'a Service of type ClusterIP has no node ports',
  },
  {
    spec: { service: { type: 'ClusterIP', externalTrafficPolicy: 'Local' } },
    valid: { service: { externalTrafficPolicy: 'Local' } },
    path: 'spec.service.externalTrafficPolicy',
    message: 'gets no traffic from outside',
  },
  {
    spec: { envs: [{ name: 'A', value: 'a', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] },
    valid: { envs: [{ name: 'A', value: '', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] },
    path: 'spec.envs[0].valueFrom',
    message: 'remove value or valueFrom',
  },
  {
    spec: { envs: [{ name: 'A', valueFrom: {} }] },
    valid: { envs: [{ name: 'A' }] },
    path: 'spec.envs[0].valueFrom',
    message: 'give exactly one of fieldRef',
  },
  {
    spec: { envFrom: [{ prefix: 'A_', configMapRef: { name: 'a' }, secretRef: { name: 'a' } }] },
    valid: { envFrom: [{ configMapRef: { name: 'a' } }, { secretRef: { name: 'a' } }] },
    path: 'spec.envFrom[0]',
    message: 'give exactly one of configMapRef and secretRef',
  },
  ...['readiness', 'liveness', 'startup'].map((probe) => ({
    spec: { probes: { [probe]: { httpGet: { port: 80 }, tcpSocket: { port: 80 } } } },
    valid: { probes: { [probe]: { httpGet: { port: 80 } } } },
    path: `spec.probes.${probe}`,
    message: 'give exactly one of exec, httpGet, tcpSocket and grpc',
  })),
  {
    spec: { probes: { readiness: { tcpSocket: { port: 'a--b' } } } },
    valid: { probes: { readiness: { tcpSocket: { port: 'a-b' } } } },
    path: 'spec.probes.readiness.tcpSocket.port',
    message: 'at least one letter, no "--"',
  },
  {
    spec: { probes: { readiness: { tcpSocket: { port: 80 }, terminationGracePeriodSeconds: 5 } } },
    valid: { probes: { liveness: { tcpSocket: { port: 80 }, terminationGracePeriodSeconds: 5 } } },
    path: 'spec.probes.readiness.terminationGracePeriodSeconds',
    message: 'a readiness probe ends no container',
  },
  {
    spec: { probes: { liveness: { tcpSocket: { port: 80 }, successThreshold: 2 } } },
    valid: { probes: { readiness: { tcpSocket: { port: 80 }, successThreshold: 2 } } },
    path: 'spec.probes.liveness.successThreshold',
    message: 'only a readiness probe may need more than one success',
  },
  {
    spec: { autoscaling: { minReplicas: 4, maxReplicas: 3, ...resourceTarget('cpu') } },
    valid: { autoscaling: { minReplicas: 3, maxReplicas: 3, ...resourceTarget('cpu') } },
    path: 'spec.autoscaling.maxReplicas',
    message: 'maxReplicas is below minReplicas',
  },
  {
    spec: { autoscaling: hpa },
    valid: { autoscaling: hpa, resources: { limits: { cpu: 1 } } },
    path: 'spec.autoscaling',
    message: 'scales by 80 % of the CPU request',
  },
  ...['cpu', 'memory'].map((resource) => ({
    spec: { autoscaling: { ...hpa, [resource]: 80 }, resources: { limits: { other: 1 }, requests: {} } },
    valid: { autoscaling: { ...hpa, [resource]: 80 }, resources: { requests: { [resource]: 1 } } },
    path: `spec.autoscaling.${resource}`,
    message: `set resources.requests.${resource}`,
  })),
  {
    spec: scale('Pods', { resource: { name: 'cpu', target: { type: 'AverageValue', averageValue: 1 } } }),
    valid: scale('Resource', {
      resource: { name: 'cpu', target: { type: 'AverageValue', averageValue: 1 } },
    }),
    path: 'spec.autoscaling.metrics[0]',
    message: 'give the member that the type names',
  },
  {
    spec: scale('Resource', { resource: { name: 'cpu', target: { type: 'Value', value: 1 } } }),
    valid: scale('Resource', {
      resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 1 } },
    }),
    path: 'spec.autoscaling.metrics[0].resource.target',
    message: 'exactly one of averageUtilization and averageValue',
  },
  {
    spec: scale('Pods', { pods: { ...queue, target: { type: 'Value', value: 1 } } }),
    valid: scale('Pods', { pods: { ...queue, target: { type: 'AverageValue', averageValue: '500m' } } }),
    path: 'spec.autoscaling.metrics[0].pods.target',
    message: 'by averageValue alone',
  },
  {
    spec: scale('External', { external: { ...queue, target: { type: 'Value', value: 1, averageValue: 1 } } }),
    valid: scale('External', { external: { ...queue, target: { type: 'Value', value: 1 } } }),
    path: 'spec.autoscaling.metrics[0].external.target',
    message: 'exactly one of value and averageValue',
  },
  ...['In', 'Exists'].map((operator) => ({
    spec: {
      topologySpread: {
        constraints: [
          {
            ...spread,
            labelSelector: {
              matchExpressions: [{ key: 'a', operator, values: operator === 'In' ? [] : ['b'] }],
            },
          },
        ],
      },
    },
    valid: {
      topologySpread: {
        constraints: [
          { ...spread, labelSelector: { matchExpressions: [{ key: 'a', operator: 'In', values: ['b'] }] } },
        ],
      },
    },
    path: 'spec.topologySpread.constraints[0].labelSelector.matchExpressions[0].values',
    message: 'In and NotIn need values',
  })),
  {
    spec: { topologySpread: { constraints: [{ ...spread, minDomains: 2 }] } },
    valid: {
      topologySpread: { constraints: [{ ...spread, minDomains: 2, whenUnsatisfiable: 'DoNotSchedule' }] },
    },
    path: 'spec.topologySpread.constraints[0].minDomains',
    message: 'minDomains has an effect with whenUnsatisfiable "DoNotSchedule" only',
  },
  {
    spec: { route },
    valid: { route, ports: [tcp] },
    path: 'spec.route',
    message: 'a route leads to a port of protocol TCP',
  },
  {
    spec: { route: { ...route, port: 81 }, ports: [tcp] },
    valid: { route: { ...route, port: 80 }, ports: [tcp] },
    path: 'spec.route.port',
    message: 'route.port is none of ports',
  },
  ...['/a//b', '/a/./b', '/a/../b', '/a/..', '/a/.', '/a%2fb', '/a%2Fb'].map((path) => ({
    spec: { route: { ...route, path }, ports: [tcp] },
    valid: { route: { ...route, path: '/a%20b/..c' }, ports: [tcp] },
    path: 'spec.route.path',
    message: 'the path may hold no "//"',
  })),
  {
    spec: {
      route: {
        parentRefs: [
          { name: 'a', namespace: 'b' },
          { name: 'a', namespace: 'b' },
        ],
      },
      ports: [tcp],
    },
    valid: {
      route: {
        parentRefs: [
          { name: 'a', namespace: 'b' },
          { name: 'a', namespace: 'c' },
        ],
      },
      ports: [tcp],
    },
    path: 'spec.route.parentRefs',
    message: 'a Gateway stands here twice',
  },
  {
    spec: { route: { parentRefs: [{ name: 'a' }, { name: 'a', sectionName: 'b' }] }, ports: [tcp] },
    valid: {
      route: {
        parentRefs: [
          { name: 'a', sectionName: 'a' },
          { name: 'a', sectionName: 'b' },
        ],
      },
      ports: [tcp],
    },
    path: 'spec.route.parentRefs',
    message: 'needs a sectionName each time',
  },
  {
    spec: { files: [{ path: '/data', emptyDir: {}, token: {} }] },
    valid: {
      files: [
        { path: '/data', emptyDir: {} },
        { path: '/token', token: {} },
      ],
    },
    path: 'spec.files[0]',
    message: 'give exactly one of configMap, secret, emptyDir',
  },
  ...['/a', '..', '../a', 'a/../b', 'a/..'].map((path) => ({
    spec: { files: [{ path: '/data', secret: { name: 'a', items: [{ key: 'a', path }] } }] },
    valid: { files: [{ path: '/data', secret: { name: 'a', items: [{ key: 'a', path: 'a/b..c' }] } }] },
    path: 'spec.files[0].secret.items[0].path',
    message: 'the path has to be relative',
  })),
  {
    spec: { strategy: { type: 'Recreate', rollingUpdate: { maxSurge: 1 } } },
    valid: { strategy: { rollingUpdate: { maxSurge: 1 } } },
    path: 'spec.strategy.rollingUpdate',
    message: 'rollingUpdate goes with type RollingUpdate only',
  },
  {
    spec: { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: '0%' } } },
    valid: { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: '1%' } } },
    path: 'spec.strategy.rollingUpdate.maxUnavailable',
    message: 'no pod could ever be replaced',
  },
  {
    spec: { minReadySeconds: 600 },
    valid: { minReadySeconds: 599 },
    path: 'spec.progressDeadlineSeconds',
    message: 'has to be more than minReadySeconds',
  },
  {
    spec: { preStop: { sleep: { seconds: 31 } } },
    valid: { preStop: { sleep: { seconds: 31 } }, terminationGracePeriodSeconds: 31 },
    path: 'spec.preStop.sleep.seconds',
    message: 'more than the pod gets to end',
  },
];

function resourceTarget(name: string): object {
  const target = { type: 'AverageValue', averageValue: 1 };
  return { metrics: [{ type: 'Resource', resource: { name, target } }] };
}
