/** A spec, beside size and image, that breaks one rule of the schema alone. */
export interface BrokenRule {
  readonly spec: object;
  /** The spec corrected, with as few changes as can be. */
  readonly valid: object;
  /** @default web */
  readonly name?: string;
  /** The field that the API server names. */
  readonly path: string;
  /** A part of the message. */
  readonly message: string;
}

function rule(path: string, message: string, spec: object, valid: object): BrokenRule {
  return { spec, valid, path, message };
}

const named = (port: number, name: string, more: object = {}) => ({ port, name, ...more });
const ports = (first: object, second: object) => ({ ports: [named(80, 'a', first), second] });
const tcp = { port: 80 };
const parentRefs = (...refs: object[]) => ({ route: { parentRefs: refs }, ports: [tcp] });
const route = (more: object = {}) => ({ route: { parentRefs: [{ name: 'edge' }], ...more } });
const hpa = { maxReplicas: 3 };
const scale = (type: string, member: object) => ({ autoscaling: { ...hpa, metrics: [{ type, ...member }] } });
const resource = (name: string, target: object = { type: 'AverageValue', averageValue: 1 }) => ({
  resource: { name, target },
});
const cpu = { metrics: [{ type: 'Resource', ...resource('cpu') }] };
const queue = (target: object) => ({ metric: { name: 'queue' }, target });
const probe = (name: string, more: object) => ({ probes: { [name]: { tcpSocket: { port: 80 }, ...more } } });
const field = { fieldRef: { fieldPath: 'metadata.name' } };
const files = (...given: object[]) => ({ files: given });
const item = (path: string) => files({ path: '/data', secret: { name: 'a', items: [{ key: 'a', path }] } });
/** As long as the key of a label can be. */
const longName = `${[63, 63, 63, 61].map((length) => 'a'.repeat(length)).join('.')}/${'b'.repeat(63)}`;
/** The API server takes no longer one in a container, since "requests." before it is a name too. */
const longResource = longName.slice('requests.'.length);
const spread = (more: object) => ({
  topologySpread: {
    constraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway', ...more }],
  },
});
const matchLabels = (key: string) => spread({ labelSelector: { matchLabels: { [key]: 'b' } } });
const expression = (operator: string, values: string[]) =>
  spread({ labelSelector: { matchExpressions: [{ key: 'a', operator, values }] } });
const RESOURCES = 'the name of a resource has at most 317 characters';

/** Each CEL rule of AppService, broken alone. */
export const brokenRules: readonly BrokenRule[] = [
  ...['limits', 'requests'].map((amounts) =>
    rule(
      `spec.resources.${amounts}`,
      RESOURCES,
      { resources: { limits: { [longResource]: 1 }, [amounts]: { [longResource]: 1, [`${longName}a`]: 1 } } },
      { resources: { limits: { [longResource]: 1 }, [amounts]: { [longResource]: 1 } } },
    ),
  ),
  rule(
    'spec.topologySpread.constraints[0].labelSelector.matchLabels',
    'the key of a label has at most 317 characters',
    ...([matchLabels(`${longName}a`), matchLabels(longName)] as const),
  ),
  {
    ...rule('metadata', 'with a letter at the start and a letter or digit at the end; create the', {}, {}),
    name: '1web',
  },
  {
    ...rule('metadata', 'it has at most 63 lower-case letters, digits and "-"', {}, {}),
    name: 'a'.repeat(64),
  },
  rule('spec.ports', 'each needs a name', { ports: [tcp, named(81, 'b')] }, ports({}, named(81, 'b'))),
  rule('spec.ports', 'two ports have the same name', ports({}, named(81, 'a')), ports({}, named(81, 'b'))),
  rule(
    'spec.ports',
    'the same nodePort',
    ports({ nodePort: 30080 }, named(81, 'b', { nodePort: 30080 })),
    ports({ nodePort: 30080 }, named(80, 'b', { nodePort: 30080, protocol: 'UDP' })),
  ),
  // The API server gives a node port to a number, whatever its protocol.
  rule(
    'spec.ports',
    'the same nodePort',
    ports({ nodePort: 30080 }, named(81, 'b', { nodePort: 30080, protocol: 'UDP' })),
    ports({ nodePort: 30080 }, named(80, 'b', { nodePort: 30080, protocol: 'SCTP' })),
  ),
  rule(
    'spec.ports',
    'names one container port',
    ports({ targetPort: 'web' }, named(81, 'b', { targetPort: 'web' })),
    ports({ targetPort: 'web' }, named(81, 'b', { targetPort: 80 })),
  ),
  ...['80', 'a--b', '-a', 'Web'].map((targetPort) =>
    rule(
      'spec.ports[0].targetPort',
      'at least one letter, no "--"',
      { ports: [{ port: 80, targetPort }] },
      { ports: [{ port: 80, targetPort: 'a-b' }] },
    ),
  ),
  rule(
    'spec.ports',
    'a Service of type ClusterIP has no node ports',
    { ports: [{ port: 80, nodePort: 30080 }], service: { type: 'ClusterIP' } },
    { ports: [{ port: 80, nodePort: 30080 }], service: { type: 'LoadBalancer' } },
  ),
  rule(
    'spec.service.externalTrafficPolicy',
    'gets no traffic from outside',
    { service: { type: 'ClusterIP', externalTrafficPolicy: 'Local' } },
    { service: { externalTrafficPolicy: 'Local' } },
  ),
  rule(
    'spec.envs[0].valueFrom',
    'remove value or valueFrom',
    { envs: [{ name: 'A', value: 'a', valueFrom: field }] },
    { envs: [{ name: 'A', value: '', valueFrom: field }] },
  ),
  rule(
    'spec.envs[0].valueFrom',
    'give exactly one of fieldRef',
    { envs: [{ name: 'A', valueFrom: {} }] },
    { envs: [{ name: 'A' }] },
  ),
  rule(
    'spec.envFrom[0]',
    'give exactly one of configMapRef and secretRef',
    { envFrom: [{ prefix: 'A_', configMapRef: { name: 'a' }, secretRef: { name: 'a' } }] },
    { envFrom: [{ configMapRef: { name: 'a' } }, { secretRef: { name: 'a' } }] },
  ),
  ...['readiness', 'liveness', 'startup'].map((name) =>
    rule(
      `spec.probes.${name}`,
      'give exactly one of exec, httpGet, tcpSocket and grpc',
      probe(name, { httpGet: { port: 80 } }),
      probe(name, {}),
    ),
  ),
  rule(
    'spec.probes.readiness.tcpSocket.port',
    'at least one letter, no "--"',
    probe('readiness', { tcpSocket: { port: 'a--b' } }),
    probe('readiness', { tcpSocket: { port: 'a-b' } }),
  ),
  rule(
    'spec.probes.readiness.terminationGracePeriodSeconds',
    'a readiness probe ends no container',
    probe('readiness', { terminationGracePeriodSeconds: 5 }),
    probe('liveness', { terminationGracePeriodSeconds: 5 }),
  ),
  rule(
    'spec.probes.liveness.successThreshold',
    'only a readiness probe may need more than one success',
    probe('liveness', { successThreshold: 2 }),
    probe('readiness', { successThreshold: 2 }),
  ),
  rule(
    'spec.autoscaling.maxReplicas',
    'maxReplicas is below minReplicas',
    { autoscaling: { minReplicas: 4, maxReplicas: 3, ...cpu } },
    { autoscaling: { minReplicas: 3, maxReplicas: 3, ...cpu } },
  ),
  rule(
    'spec.autoscaling',
    'scales by 80 % of the CPU request',
    { autoscaling: hpa },
    { autoscaling: hpa, resources: { limits: { cpu: 1 } } },
  ),
  ...['cpu', 'memory'].map((name) =>
    rule(
      `spec.autoscaling.${name}`,
      `set resources.requests.${name}`,
      { autoscaling: { ...hpa, [name]: 80 }, resources: { limits: { other: 1 }, requests: {} } },
      { autoscaling: { ...hpa, [name]: 80 }, resources: { requests: { [name]: 1 } } },
    ),
  ),
  rule(
    'spec.autoscaling.metrics[0]',
    'give the member that the type names',
    scale('Pods', resource('cpu')),
    scale('Resource', resource('cpu')),
  ),
  rule(
    'spec.autoscaling.metrics[0].resource.target',
    'exactly one of averageUtilization and averageValue',
    scale('Resource', resource('cpu', { type: 'Value', value: 1 })),
    scale('Resource', resource('cpu', { type: 'Utilization', averageUtilization: 1 })),
  ),
  rule(
    'spec.autoscaling.metrics[0].pods.target',
    'by averageValue alone',
    scale('Pods', { pods: queue({ type: 'Value', value: 1 }) }),
    scale('Pods', { pods: queue({ type: 'AverageValue', averageValue: '500m' }) }),
  ),
  rule(
    'spec.autoscaling.metrics[0].external.target',
    'exactly one of value and averageValue',
    scale('External', { external: queue({ type: 'Value', value: 1, averageValue: 1 }) }),
    scale('External', { external: queue({ type: 'Value', value: 1 }) }),
  ),
  ...[expression('In', []), expression('Exists', ['b'])].map((broken) =>
    rule(
      'spec.topologySpread.constraints[0].labelSelector.matchExpressions[0].values',
      'In and NotIn need values',
      broken,
      expression('In', ['b']),
    ),
  ),
  rule(
    'spec.topologySpread.constraints[0].minDomains',
    'minDomains has an effect with whenUnsatisfiable "DoNotSchedule" only',
    spread({ minDomains: 2 }),
    spread({ minDomains: 2, whenUnsatisfiable: 'DoNotSchedule' }),
  ),
  rule('spec.route', 'a route leads to a port of protocol TCP', route(), { ...route(), ports: [tcp] }),
  rule(
    'spec.route.port',
    'route.port is none of ports',
    { ...route({ port: 81 }), ports: [tcp] },
    { ...route({ port: 80 }), ports: [tcp] },
  ),
  ...['/a//b', '/a/./b', '/a/../b', '/a/..', '/a/.', '/a%2fb', '/a%2Fb'].map((path) =>
    rule(
      'spec.route.path',
      'the path may hold no "//"',
      { ...route({ path }), ports: [tcp] },
      { ...route({ path: '/a%20b/..c' }), ports: [tcp] },
    ),
  ),
  rule(
    'spec.route.parentRefs',
    'a Gateway stands here twice',
    parentRefs({ name: 'a', namespace: 'b' }, { name: 'a', namespace: 'b' }),
    parentRefs({ name: 'a', namespace: 'b' }, { name: 'a', namespace: 'c' }),
  ),
  rule(
    'spec.route.parentRefs',
    'needs a sectionName each time',
    parentRefs({ name: 'a' }, { name: 'a', sectionName: 'b' }),
    parentRefs({ name: 'a', sectionName: 'a' }, { name: 'a', sectionName: 'b' }),
  ),
  rule(
    'spec.files[0]',
    'give exactly one of configMap, secret, emptyDir',
    files({ path: '/data', emptyDir: {}, token: {} }),
    files({ path: '/data', emptyDir: {} }, { path: '/token', token: {} }),
  ),
  ...['/a', '..', '../a', 'a/../b', 'a/..'].map((path) =>
    rule(
      'spec.files[0].secret.items[0].path',
      'the path has to be relative',
      ...([item(path), item('a/b..c')] as const),
    ),
  ),
  rule(
    'spec.strategy.rollingUpdate',
    'rollingUpdate goes with type RollingUpdate only',
    { strategy: { type: 'Recreate', rollingUpdate: { maxSurge: 1 } } },
    { strategy: { rollingUpdate: { maxSurge: 1 } } },
  ),
  rule(
    'spec.strategy.rollingUpdate.maxUnavailable',
    'no pod could ever be replaced',
    { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: '0%' } } },
    { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: '1%' } } },
  ),
  rule(
    'spec.progressDeadlineSeconds',
    'has to be more than minReadySeconds',
    { minReadySeconds: 600 },
    { minReadySeconds: 599 },
  ),
  rule(
    'spec.preStop.sleep.seconds',
    'more than the pod gets to end',
    { preStop: { sleep: { seconds: 31 } } },
    { preStop: { sleep: { seconds: 31 } }, terminationGracePeriodSeconds: 31 },
  ),
];
