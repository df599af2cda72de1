import { storedVersion } from '../../src/contract/crd.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import {
  leavesOf,
  planWalks as planAny,
  Random,
  schemaAt,
  valuesAt,
  withoutDuplicates,
} from '../../src/testing/walk.js';
import type { Fields, Path, Spec, Walk } from '../../src/testing/walk.js';
import { offline } from './verdicts.js';

type Json = Readonly<Record<string, unknown>>;

const specSchema = storedVersion(appService.crd).schema.openAPIV3Schema.properties!.spec!;

/** Every field that holds a value. */
const leaves = leavesOf(specSchema);

const NAMES = ['one', 'two', 'three'];
const ARGUMENTS = ['/one', '--two', 'three words', ''];
const PROBED_PORTS = [80, 81, 'web', 'api'];
const PORTS = [80, 81, 82, 443];
const AMOUNTS = ['1', '500m', 2];

/**
 * Values that the API server takes, also in the children, by the end of the path; the longest end counts. Some
 * are written in other ways than they are stored, and some are what is the default anyway.
 */
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  size: [0, 1],
  image: [1, 2, 3].map((tag) => `example.com/web:${tag}`),

  'ports.[].name': ['http', 'web', 'api', 'dns'],
  'ports.[].port': PORTS,
  'ports.[].appProtocol': ['http', 'kubernetes.io/h2c'],
  'ports.[].targetPort': [80, 8080, 8081, 'web', 'api'],
  // Each walk has others, since a node port exists once in a cluster.
  'ports.[].nodePort': [30_030, 30_031],

  'limits.cpu': [1, '1500m', '2.5'],
  'limits.memory': ['1Gi', '2048Mi', 3_221_225_472],
  'limits.ephemeral-storage': ['2Gi', '3Gi'],
  'requests.cpu': ['100m', '0.1', 1],
  'requests.memory': ['64Mi', '1Gi', 67_108_864],
  'requests.ephemeral-storage': ['1Gi', '1024Mi'],
  'claims.[].name': ['gpu', 'fpga'],
  'claims.[].request': NAMES,

  'envs.[].name': ['A', 'B', 'C', 'D', 'a.b'],
  'envs.[].value': ['', '1', '$(A) and $(B)', 'two words'],
  'fieldRef.apiVersion': ['v1'],
  'fieldRef.fieldPath': ['metadata.name', 'metadata.uid', 'spec.nodeName', 'status.podIP'],
  'resourceFieldRef.containerName': NAMES,
  'resourceFieldRef.resource': ['limits.cpu', 'requests.cpu', 'limits.memory', 'requests.memory'],
  'resourceFieldRef.divisor': [1, '1', '1m', '1Mi'],
  'fileKeyRef.volumeName': NAMES,
  'fileKeyRef.path': ['a.env', 'b.env'],
  'envFrom.[].prefix': ['A_', 'B_', ''],

  'command.[]': ARGUMENTS,
  'args.[]': ARGUMENTS,
  workingDir: ['/one', '/two'],
  serviceAccountName: NAMES,

  'httpGet.path': ['/', '/one', '/two'],
  'httpGet.port': PROBED_PORTS,
  'httpHeaders.[].name': ['A', 'B-C'],
  'httpHeaders.[].value': ['1', '2', ''],
  'tcpSocket.port': PROBED_PORTS,
  'grpc.port': PORTS,
  'grpc.service': ['', ...NAMES],
  initialDelaySeconds: [1, 2],
  periodSeconds: [3, 10],
  timeoutSeconds: [1, 5],
  'readiness.successThreshold': [1, 2, 3],
  successThreshold: [1],
  failureThreshold: [3, 7],
  terminationGracePeriodSeconds: [30, 40, 50],

  minReplicas: [1, 2],
  maxReplicas: [1, 2, 3],
  'autoscaling.cpu': [60, 70],
  'autoscaling.memory': [60, 70],
  'resource.name': ['cpu', 'memory'],
  'containerResource.name': ['cpu', 'memory'],
  'containerResource.container': NAMES,
  'target.averageUtilization': [50, 60],
  'target.averageValue': AMOUNTS,
  'target.value': AMOUNTS,
  'describedObject.apiVersion': ['v1', 'example.com/v1'],
  'describedObject.kind': ['One', 'Two'],
  'matchExpressions.[].key': ['tier', 'track'],
  stabilizationWindowSeconds: [0, 10, 300],
  tolerance: ['200m', '0.3', 1],
  'policies.[].value': [1, 2],
  'policies.[].periodSeconds': [15, 30],

  'hostnames.[]': ['one.example.com', '*.example.com', 'two.example.com'],
  'parentRefs.[].namespace': NAMES,
  'parentRefs.[].sectionName': NAMES,
  'route.path': ['/', '/one', '/two'],
  'route.port': PORTS,
  'disruption.maxUnavailable': [0, 1, 2, '30%'],

  'constraints.[].maxSkew': [1, 2],
  'constraints.[].topologyKey': ['topology.kubernetes.io/zone', 'kubernetes.io/hostname'],
  'constraints.[].matchLabelKeys.[]': ['pod-template-hash', 'revision', 'colour'],
  'constraints.[].minDomains': [1, 2],

  'files.[].path': ['/one', '/two/three', '/four', '/five'],
  'items.[].key': ['a', 'b'],
  'items.[].path': ['a', 'b/c'],
  'items.[].mode': [256, 420],
  defaultMode: [256, 420],
  'emptyDir.medium': ['', 'Memory', 'HugePages-2Mi'],
  'emptyDir.sizeLimit': ['1Gi', '512Mi', 0],
  'token.audience': NAMES,
  'token.expirationSeconds': [600, 3600],

  'rollingUpdate.maxSurge': [0, 1, '25%', '30%'],
  'rollingUpdate.maxUnavailable': [0, 1, '25%', '30%'],
  minReadySeconds: [1, 2],
  progressDeadlineSeconds: [600, 700],
  'preStop.sleep.seconds': [1, 2],

  name: NAMES,
  namespace: NAMES,
  claimName: NAMES,
  key: ['a', 'b', 'c'],
  'values.[]': ['a', 'b', ''],
  'matchLabels.tier': NAMES,
  'matchLabels.track': NAMES,
};

/** @throws for a field that isn't known here, so that no new one goes unnoticed */
function valuesFor(path: Path): readonly unknown[] {
  for (let start = 0; start < path.length; start++) {
    const values = VALUES[path.slice(start).join('.')];
    if (values) return values;
  }
  throw new Error(`There are no values for ${path.join('.')}`);
}

/** The keys of a map. */
function keysFor(path: Path): readonly string[] {
  return path[0] === 'resources' ? ['cpu', 'memory', 'ephemeral-storage'] : ['tier', 'track'];
}

/** Members of which an object has at most one. */
interface Union {
  readonly members: readonly string[];
  /** Field that names the member. */
  readonly named?: string;
}

const target = (...members: readonly string[]): Union => ({ members, named: 'type' });

const UNIONS: Readonly<Record<string, Union>> = {
  'envs.[]': { members: ['value', 'valueFrom'] },
  'envs.[].valueFrom': {
    members: ['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef', 'fileKeyRef'],
  },
  'envFrom.[]': { members: ['configMapRef', 'secretRef'] },
  'files.[]': { members: ['configMap', 'secret', 'emptyDir', 'persistentVolumeClaim', 'token'] },
  ...Object.fromEntries(
    ['readiness', 'liveness', 'startup'].map((probe) => [
      `probes.${probe}`,
      { members: ['exec', 'httpGet', 'tcpSocket', 'grpc'] },
    ]),
  ),
  'autoscaling.metrics.[]': target('resource', 'containerResource', 'pods', 'object', 'external'),
  'autoscaling.metrics.[].resource.target': target('averageUtilization', 'averageValue'),
  'autoscaling.metrics.[].containerResource.target': target('averageUtilization', 'averageValue'),
  'autoscaling.metrics.[].pods.target': target('averageValue'),
  'autoscaling.metrics.[].object.target': target('averageValue', 'value'),
  'autoscaling.metrics.[].external.target': target('averageValue', 'value'),
};

function unionAt(path: Path): Union | undefined {
  return UNIONS[path.join('.')];
}

/** Fields of the schema that the API server never accepts in a pod: only there where they are asked for. */
const REFUSED = ['resources.claims', 'envs.[].valueFrom.fileKeyRef'];

function isRefused(path: Path): boolean {
  return REFUSED.some((start) => `${path.join('.')}.`.startsWith(`${start}.`));
}

/** Reports whether a spec has a field that the API server never accepts in a pod. */
export function hasRefusedFields(spec: Spec): boolean {
  return leaves.some((path) => isRefused(path) && valuesAt(spec, path).length > 0);
}

/** What a value needs so that its parts go together. */
function consistent(path: Path, value: unknown): unknown {
  if (value === undefined) return undefined;
  if (path.length === 0) return withCompanions(value as Json);
  const union = unionAt(path);
  if (union) return withOneMember(union, value as Json);
  if (Array.isArray(value)) return consistentList(path, value);
  if (path.at(-1) === 'resourceFieldRef') return withFittingDivisor(value as Json);
  if (path.at(-2) === 'matchExpressions') return withFittingValues(value as Json);
  return value;
}

/** Keeps the last member, which is the one that an edit is about. */
function withOneMember({ members, named }: Union, value: Json): Json {
  const member = Object.keys(value).findLast((key) => members.includes(key));
  const kept = Object.entries(value).filter(([key]) => key === member || !members.includes(key));
  if (named === undefined) return Object.fromEntries(kept);
  const name = member === 'averageUtilization' ? 'utilization' : (member ?? '');
  return { ...Object.fromEntries(kept), [named]: name.charAt(0).toUpperCase() + name.slice(1) };
}

/** Adds what a field can't be without. */
function withCompanions(spec: Json): Json {
  const { resources, ports } = spec as { resources?: Json; ports?: Json[] };
  const requests = { cpu: '100m', memory: '64Mi', ...(resources?.requests as Json | undefined) };
  return {
    ...spec,
    ...(spec.autoscaling !== undefined && { resources: { ...resources, requests } }),
    ...(spec.route !== undefined && !ports?.length && { ports: [{ port: 80 }] }),
  };
}

function withFittingDivisor({ divisor, ...reference }: Json): Json {
  if (divisor === undefined) return reference;
  const [wrong, right] = (reference.resource as string).endsWith('cpu') ? ['1Mi', '1m'] : ['1m', '1Mi'];
  return { ...reference, divisor: divisor === wrong ? right : divisor };
}

function withFittingValues({ values = ['a'], ...expression }: Json): Json {
  const takesValues = ['In', 'NotIn'].includes(expression.operator as string);
  return takesValues ? { ...expression, values } : expression;
}

function consistentList(path: Path, list: readonly unknown[]): unknown[] {
  const items = withoutDuplicates(schemaAt(specSchema, path), list);
  return path.join('.') === 'ports' && items.length > 1 ? namedPorts(items as Json[]) : items;
}

/** Where there are several, each needs a name of its own. */
function namedPorts(ports: readonly Json[]): Json[] {
  const free = ['http', 'web', 'api', 'dns', 'more', 'other', 'last'];
  const taken = new Set<unknown>();
  return ports.map((port) => {
    const name =
      port.name !== undefined && !taken.has(port.name) ? port.name : free.find((one) => !taken.has(one));
    taken.add(name);
    return { ...port, name };
  });
}

/** Fields that Kubernetes has and the rules of the CRD always refuse where they stand. */
const BARRED: readonly string[] = [
  'probes.readiness.terminationGracePeriodSeconds',
  ...[
    ...['resource.target.value', 'containerResource.target.value'],
    ...['pods.target.value', 'pods.target.averageUtilization'],
    ...['object.target.averageUtilization', 'external.target.averageUtilization'],
  ].map((path) => `autoscaling.metrics.[].${path}`),
];

const judge = offline(appService.crd);

const fields: Fields = {
  ...{ schema: specSchema, leaves, consistent, isRefused },
  choices: valuesFor,
  keys: keysFor,
  isBarred: (path) => BARRED.includes(path.join('.')),
  problems: (spec) => {
    const { apiVersion, kind } = appService.type;
    return judge({ apiVersion, kind, metadata: { name: 'walker' }, spec });
  },
};

/** Another one makes other walks. */
export const seed = Number(process.env.WALK_SEED ?? 5);

/**
 * Plans walks that together do everything to every field that edits can do, each edit along with others at random.
 * @param minEdits of all walks together; there are more where something is left to do then
 * @throws where something isn't reached in ten times as many edits
 */
export async function planWalks(walks: number, minEdits: number): Promise<readonly Walk[]> {
  const chance = new Random(seed);
  const starts = Array.from({ length: walks }, () => ({ size: chance.upTo(1), image: 'example.com/web:1' }));
  const plan = await planAny(fields, chance, { starts, minEdits, maxEdits: 10 * minEdits });
  if (plan.open.length > 0) throw new Error(`Never reached: ${plan.open.join(', ')}`);
  return plan.walks.map((walk, place) => walk.map((spec) => withNodePorts(spec, place)));
}

function withNodePorts(spec: Spec, place: number): Spec {
  const ports = spec.ports as readonly { nodePort?: number }[] | undefined;
  const moved = ports?.map(({ nodePort, ...port }) =>
    nodePort === undefined ? port : { ...port, nodePort: nodePort + 2 * place },
  );
  return { ...spec, ...(moved && { ports: moved }) };
}

/** Returns planned specs that together have every field that the API server accepts. */
export async function specsWithEveryField(): Promise<Spec[]> {
  const seen = new Set<Path>();
  const specs = (await planWalks(1, 320)).flat().filter((spec) => !hasRefusedFields(spec));
  const wanted = specs.filter((spec) => {
    const before = seen.size;
    for (const path of leaves) if (valuesAt(spec, path).length > 0) seen.add(path);
    return seen.size > before;
  });
  // Node ports of no other test, each once.
  const free = [30_012, 30_013];
  return wanted.map((spec) => {
    const ports = spec.ports as readonly { nodePort?: number }[] | undefined;
    const own = ports?.map(({ nodePort, ...port }) => {
      const given = nodePort === undefined ? undefined : free.shift();
      return { ...port, ...(given !== undefined && { nodePort: given }) };
    });
    return { ...spec, ...(own && { ports: own }) };
  });
}
