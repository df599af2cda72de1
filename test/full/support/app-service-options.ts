import type { FieldEdit } from './field-edit.js';

/** A field by its path, with what must stand beside it, and two values. */
type Row = readonly [path: string, around: object, set: unknown, changed: unknown];

const base = { size: 0, image: 'example.com/web:1' };
const ports = [{ port: 80 }];

/** The value at a path; in a list it stands in the first item, in a map under the key `app`. */
function put(around: unknown, [step, ...rest]: readonly string[], value: unknown): unknown {
  if (step === undefined) return value;
  if (step === '[]') {
    const [first, ...others] = (around ?? []) as readonly unknown[];
    return [put(first, rest, value), ...others];
  }
  const key = step === '*' ? 'app' : step;
  const known = (around ?? {}) as Readonly<Record<string, unknown>>;
  return { ...known, [key]: put(known[key], rest, value) };
}

function edit([path, around, set, changed]: Row): FieldEdit {
  const without = { ...base, ...around };
  const withValue = (value: unknown): object => put(without, path.split('.'), value) as object;
  return { path, without, set: withValue(set), changed: withValue(changed) };
}

function below(top: string, rows: readonly Row[], around: (inner: object) => object): Row[] {
  return rows.map(([path, inner, set, changed]) => [`${top}.${path}`, around(inner), set, changed]);
}

function probe(name: string): Row[] {
  const tcp = { tcpSocket: { port: 80 } };
  const http = { httpGet: { port: 80 } };
  const header = { httpGet: { port: 80, httpHeaders: [{ name: 'A', value: '1' }] } };
  const rows: Row[] = [
    ['exec.command.[]', { exec: { command: ['/zero'] } }, '/one', '/two'],
    ['httpGet.path', http, '/one', '/two'],
    ['httpGet.port', http, 81, 'web'],
    ['httpGet.scheme', http, 'HTTPS', 'HTTP'],
    ['httpGet.httpHeaders.[].name', header, 'B', 'C'],
    ['httpGet.httpHeaders.[].value', header, '2', '3'],
    ['tcpSocket.port', tcp, 81, 'web'],
    ['grpc.port', { grpc: { port: 80 } }, 81, 82],
    ['grpc.service', { grpc: { port: 80 } }, 'one', 'two'],
    ['initialDelaySeconds', tcp, 1, 2],
    ['periodSeconds', tcp, 3, 4],
    ['timeoutSeconds', tcp, 5, 6],
    name === 'readiness' ? ['successThreshold', tcp, 2, 3] : ['successThreshold', tcp, 1, 1],
    ['failureThreshold', tcp, 7, 8],
  ];
  if (name !== 'readiness') rows.push(['terminationGracePeriodSeconds', tcp, 9, 10]);
  return below(`probes.${name}`, rows, (inner) => ({ probes: { [name]: inner } }));
}

const selectorRows = (inner: (selector: object) => object): Row[] => {
  const expression = { matchExpressions: [{ key: 'a', operator: 'In', values: ['b'] }] };
  return [
    ['matchLabels.*', inner({}), 'one', 'two'],
    ['matchExpressions.[].key', inner(expression), 'c', 'd'],
    ['matchExpressions.[].operator', inner(expression), 'NotIn', 'In'],
    ['matchExpressions.[].values.[]', inner(expression), 'e', 'f'],
  ];
};

const autoscaling = (inner: object): object => ({
  resources: { requests: { cpu: '100m', memory: '1Mi' } },
  autoscaling: { maxReplicas: 3, ...inner },
});
const average = { type: 'AverageValue', averageValue: '1' };
const value = { type: 'Value', value: '1' };
const utilization = { type: 'Utilization', averageUtilization: 50 };

/** A metric of one type: `member` is complete, and `targets` are those that the type may have. */
function metric(type: string, member: object, targets: readonly string[], more: readonly Row[]): Row[] {
  const name = type[0]!.toLowerCase() + type.slice(1);
  const whole = (inner: object): object =>
    autoscaling({ metrics: [{ type, [name]: { ...member, ...inner } }] });
  const rows = [...more];
  if (targets.includes('averageUtilization'))
    rows.push(['target.averageUtilization', { target: utilization }, 60, 70]);
  if (targets.includes('averageValue')) rows.push(['target.averageValue', { target: average }, '2', '3']);
  if (targets.includes('value')) rows.push(['target.value', { target: value }, '2', '3']);
  return below(`autoscaling.metrics.[].${name}`, rows, whole);
}

const queue = { name: 'queue' };
function metricNames(member: object): Row[] {
  return [
    ['metric.name', member, 'requests', 'errors'],
    ...below(
      'metric.selector',
      selectorRows((selector) => ({ metric: { ...queue, selector } })),
      (inner) => inner,
    ),
  ];
}

/** A target's type goes with its value, so both change. */
function targetType(name: string, member: object, other: object): FieldEdit {
  const type = name[0]!.toUpperCase() + name.slice(1);
  const whole = (target: object): object => ({
    ...base,
    ...autoscaling({ metrics: [{ type, [name]: { ...member, target } }] }),
  });
  return {
    path: `autoscaling.metrics.[].${name}.target.type`,
    without: { ...base, ...autoscaling({ cpu: 50 }) },
    set: whole(average),
    changed: whole(other),
  };
}

const described = { describedObject: { apiVersion: 'v1', kind: 'Service', name: 'web' } };
const contained = { name: 'cpu', container: 'web' };

const metrics: readonly Row[] = [
  ...metric(
    'Resource',
    { name: 'cpu', target: average },
    ['averageUtilization', 'averageValue'],
    [['name', {}, 'memory', 'cpu']],
  ),
  ...metric(
    'ContainerResource',
    { ...contained, target: average },
    ['averageUtilization', 'averageValue'],
    [
      ['name', {}, 'memory', 'cpu'],
      ['container', {}, 'one', 'two'],
    ],
  ),
  ...metric('Pods', { metric: queue, target: average }, ['averageValue'], metricNames({})),
  ...metric(
    'Object',
    { ...described, metric: queue, target: value },
    ['averageValue', 'value'],
    [
      ['describedObject.apiVersion', {}, 'example.com/v1', 'example.com/v2'],
      ['describedObject.kind', {}, 'One', 'Two'],
      ['describedObject.name', {}, 'one', 'two'],
      ...metricNames({}),
    ],
  ),
  ...metric('External', { metric: queue, target: value }, ['averageValue', 'value'], metricNames({})),
];

function scaling(direction: string): Row[] {
  // With nothing in it, the API server's defaults would seem to be ours.
  const window = { stabilizationWindowSeconds: 5 };
  const policies = { policies: [{ type: 'Pods', value: 1, periodSeconds: 60 }] };
  const rows: Row[] = [
    ['stabilizationWindowSeconds', { selectPolicy: 'Max' }, 10, 20],
    ['selectPolicy', window, 'Min', 'Disabled'],
    ['tolerance', window, '200m', '300m'],
    ['policies.[].type', policies, 'Percent', 'Pods'],
    ['policies.[].value', policies, 2, 3],
    ['policies.[].periodSeconds', policies, 30, 40],
  ];
  return below(`autoscaling.behavior.${direction}`, rows, (inner) =>
    autoscaling({ cpu: 50, behavior: { [direction]: inner } }),
  );
}

const route = (inner: object): object => ({
  ports: [
    { port: 80, name: 'a' },
    { port: 81, name: 'b' },
    { port: 82, name: 'c' },
  ],
  route: { parentRefs: [{ name: 'edge' }], ...inner },
});

const spread = { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' };
const constraint = (inner: object): object => ({
  topologySpread: { constraints: [{ ...spread, ...inner }] },
});
const file = (source: object): object => ({ files: [{ path: '/data', ...source }] });

function objectFiles(source: string): Row[] {
  const items = { items: [{ key: 'a', path: 'a' }] };
  const rows: Row[] = [
    ['name', {}, 'one', 'two'],
    ['items.[].key', items, 'b', 'c'],
    ['items.[].path', items, 'b', 'c'],
    ['items.[].mode', items, 256, 288],
    ['defaultMode', {}, 256, 288],
    ['optional', {}, true, false],
  ];
  return below(`files.[].${source}`, rows, (inner) => file({ [source]: { name: 'settings', ...inner } }));
}

const rows: readonly Row[] = [
  ['envFrom.[].prefix', { envFrom: [{ configMapRef: { name: 'a' } }] }, 'A_', 'B_'],
  ...['configMapRef', 'secretRef'].flatMap((source): Row[] => [
    [`envFrom.[].${source}.name`, {}, 'one', 'two'],
    [`envFrom.[].${source}.optional`, { envFrom: [{ [source]: { name: 'a' } }] }, true, false],
  ]),
  ['command.[]', {}, '/one', '/two'],
  ['args.[]', {}, '--one', '--two'],
  ['workingDir', {}, '/one', '/two'],
  ['imagePullPolicy', {}, 'Always', 'Never'],
  ['imagePullSecrets.[].name', {}, 'one', 'two'],
  ['serviceAccountName', {}, 'one', 'two'],
  ['automountServiceAccountToken', {}, true, false],
  ...['readiness', 'liveness', 'startup'].flatMap(probe),
  ['autoscaling.minReplicas', autoscaling({ cpu: 50 }), 2, 3],
  ['autoscaling.maxReplicas', autoscaling({ cpu: 50 }), 4, 5],
  ['autoscaling.cpu', autoscaling({ memory: 50 }), 60, 70],
  ['autoscaling.memory', autoscaling({ cpu: 50 }), 60, 70],
  ...metrics,
  ...['scaleUp', 'scaleDown'].flatMap(scaling),
  ['securityProfile', {}, 'Restricted', 'Baseline'],
  ['route.hostnames.[]', route({}), 'one.example.com', '*.example.com'],
  ['route.parentRefs.[].name', route({}), 'one', 'two'],
  ['route.parentRefs.[].namespace', route({}), 'one', 'two'],
  ['route.parentRefs.[].sectionName', route({}), 'one', 'two'],
  ['route.path', route({}), '/one', '/two'],
  ['route.port', route({}), 81, 82],
  ['disruption.maxUnavailable', autoscaling({ cpu: 50 }), 2, '30%'],
  ['topologySpread.constraints.[].maxSkew', constraint({}), 2, 3],
  ['topologySpread.constraints.[].topologyKey', constraint({}), 'one', 'two'],
  ['topologySpread.constraints.[].whenUnsatisfiable', constraint({}), 'ScheduleAnyway', 'DoNotSchedule'],
  ...below(
    'topologySpread.constraints.[].labelSelector',
    selectorRows((labelSelector) => ({ labelSelector })),
    constraint,
  ),
  ['topologySpread.constraints.[].matchLabelKeys.[]', constraint({ labelSelector: {} }), 'one', 'two'],
  ['topologySpread.constraints.[].minDomains', constraint({}), 2, 3],
  ['topologySpread.constraints.[].nodeAffinityPolicy', constraint({}), 'Ignore', 'Honor'],
  ['topologySpread.constraints.[].nodeTaintsPolicy', constraint({}), 'Honor', 'Ignore'],
  ['files.[].path', file({ secret: { name: 'a' } }), '/one', '/two'],
  ...['configMap', 'secret'].flatMap(objectFiles),
  ['files.[].emptyDir.medium', file({ emptyDir: {} }), 'Memory', 'HugePages-2Mi'],
  ['files.[].emptyDir.sizeLimit', file({ emptyDir: {} }), '1Gi', '2Gi'],
  ['files.[].persistentVolumeClaim.claimName', file({ persistentVolumeClaim: { claimName: 'a' } }), 'b', 'c'],
  ['files.[].token.audience', file({ token: {} }), 'one', 'two'],
  ['files.[].token.expirationSeconds', file({ token: {} }), 600, 700],
  ['files.[].readOnly', file({ secret: { name: 'a' } }), false, true],
  ['service.type', { ports }, 'ClusterIP', 'LoadBalancer'],
  ['service.sessionAffinity', { ports }, 'ClientIP', 'None'],
  ['service.externalTrafficPolicy', { ports }, 'Local', 'Cluster'],
  ['service.trafficDistribution', { ports }, 'PreferClose', 'PreferSameNode'],
  ['strategy.type', {}, 'Recreate', 'RollingUpdate'],
  ['strategy.rollingUpdate.maxSurge', {}, 1, '30%'],
  ['strategy.rollingUpdate.maxUnavailable', {}, 1, '30%'],
  ['minReadySeconds', {}, 1, 2],
  ['progressDeadlineSeconds', {}, 700, 800],
  ['terminationGracePeriodSeconds', {}, 40, 50],
  ['preStop.sleep.seconds', {}, 1, 2],
];

/** Every field of the spec of an AppService beyond those of the tutorial. */
export const appServiceOptions: readonly FieldEdit[] = [
  ...rows.map(edit),
  {
    path: 'autoscaling.metrics.[].type',
    without: { ...base, ...autoscaling({ cpu: 50 }) },
    set: {
      ...base,
      ...autoscaling({ metrics: [{ type: 'External', external: { metric: queue, target: value } }] }),
    },
    changed: {
      ...base,
      ...autoscaling({ metrics: [{ type: 'Pods', pods: { metric: queue, target: average } }] }),
    },
  },
  targetType('resource', { name: 'cpu' }, utilization),
  targetType('containerResource', contained, utilization),
  targetType('pods', { metric: queue }, average),
  targetType('object', { ...described, metric: queue }, value),
  targetType('external', { metric: queue }, value),
];

/** Fields that Kubernetes has and an AppService may never set there: the CRD's own rules refuse them. */
export const barredFields: readonly string[] = [
  'probes.readiness.terminationGracePeriodSeconds',
  ...['resource.target.value', 'containerResource.target.value'],
  ...['pods.target.value', 'pods.target.averageUtilization'],
  ...['object.target.averageUtilization', 'external.target.averageUtilization'],
].map((path) => (path.startsWith('probes') ? path : `autoscaling.metrics.[].${path}`));
