import { withoutDuplicates } from '../../../../src/testing/walk.js';
import type { Union } from '../../../../src/testing/walk.js';
import { leaves, schemaAt, specSchema, valuesAt } from './shape.js';
import type { Path, Spec } from './shape.js';

type Json = Readonly<Record<string, unknown>>;

const target = (...members: readonly string[]): Union => ({ members, named: 'type' });

const UNIONS: Readonly<Record<string, Union>> = {
  'envs.[]': { members: ['value', 'valueFrom'], mayBeNone: true },
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

export function unionAt(path: Path): Union | undefined {
  return UNIONS[path.join('.')];
}

/** What the API server never takes in a pod, though the schema has it: only there where it is asked for. */
const REFUSED = ['resources.claims', 'envs.[].valueFrom.fileKeyRef'];

export function isRefused(path: Path): boolean {
  return REFUSED.some((start) => `${path.join('.')}.`.startsWith(`${start}.`));
}

/** Whether a spec has any of them. */
export function hasRefusedFields(spec: Spec): boolean {
  return leaves.some((path) => isRefused(path) && valuesAt(spec, path).length > 0);
}

/** What a value needs so that its parts go together. */
export function consistent(path: Path, value: unknown): unknown {
  if (value === undefined) return undefined;
  const named = unionAt(path)?.named;
  if (named !== undefined) return withNamedMember(path, named, value as Json);
  if (Array.isArray(value)) return consistentList(path, value);
  if (path.at(-1) === 'resourceFieldRef') return withFittingDivisor(value as Json);
  if (path.at(-2) === 'matchExpressions') return withFittingValues(value as Json);
  return value;
}

function withNamedMember(path: Path, named: string, value: Json): Json {
  const member = unionAt(path)!.members.find((candidate) => value[candidate] !== undefined)!;
  const name = member === 'averageUtilization' ? 'utilization' : member;
  return { ...value, [named]: name[0]!.toUpperCase() + name.slice(1) };
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
