import type { ChangeSet } from '../../contract/change.js';
import type { ApplyStep } from '../../contract/controller.js';
import type { AnyObject } from '../../contract/object.js';
import { FIELD_MANAGER } from './kept.js';
import type { KeptTargetService } from './kept.js';
import { portIn, servicePort } from './openings.js';
import type { Entry, EntryPort, SharedState } from './openings.js';
import { portKey } from './spec.js';
import type { Protocol } from './spec.js';
import { configMapName } from './targets.js';
import type { NginxTarget } from './targets.js';

/**
 * What is applied to the shared objects of a target. Where somebody else has got a key or port since it was looked at,
 * that alone is left out and the rest is applied. A port whose entry couldn't be written isn't opened; an entry goes
 * also where its port couldn't be closed, since a port with nothing behind it only refuses connections.
 */
export function sharedSteps(target: NginxTarget, entries: readonly Entry[], state: SharedState): ApplyStep[] {
  return sharedWrites(target, entries, state).map((object) =>
    object.kind === 'Service'
      ? step(object, (changes) => behindEntries(target, object, state, changes))
      : step(object),
  );
}

function step(object: AnyObject, revise: (changes: ChangeSet) => AnyObject = () => object): ApplyStep {
  let intent = object;
  return {
    object,
    fieldManager: FIELD_MANAGER,
    shared: {
      ...(object.kind === 'Service' && { mustExist: true }),
      revise: (changes) => (intent = revise(changes)),
      onConflict: (conflicts) =>
        withoutConflicts(
          intent,
          conflicts.map(({ field }) => field),
        ),
    },
  };
}

/** The Service with those ports alone whose entries were written: a port is opened behind its entry. */
function behindEntries(
  target: NginxTarget,
  object: AnyObject,
  state: SharedState,
  changes: ChangeSet,
): AnyObject {
  const lost = changes.flatMap(({ ref, conflicts = [] }) => {
    const protocol = ref.name === target.tcpConfigMap ? 'TCP' : 'UDP';
    return conflicts.map(({ field }) => `${field.replace('.data.', '')}/${protocol}`);
  });
  const anyFailed = failed(changes, 'ConfigMap');
  return withPorts(object, (port) => {
    const key = portKey(port.port, port.protocol);
    return anyFailed ? (state.service?.open[key]?.ours ?? false) : !lost.includes(key);
  });
}

function withPorts(object: AnyObject, wanted: (port: EntryPort) => boolean): AnyObject {
  const { spec, ...rest } = object;
  const left = portsOf(object).filter(wanted);
  return left.length === 0 ? rest : { ...rest, spec: { ports: left } };
}

function portsOf({ spec }: AnyObject): readonly EntryPort[] {
  return ((spec ?? {}) as { readonly ports?: readonly EntryPort[] }).ports ?? [];
}

function failed(changes: ChangeSet, kind: string): boolean {
  return changes.some(({ ref, action }) => ref.kind === kind && action === 'failed');
}

const PROTOCOLS: readonly Protocol[] = ['TCP', 'UDP'];

/**
 * What is applied to the shared objects of a target, in this order: a port is closed before its entry goes and opened
 * behind it, so that the load balancer leads nowhere at no time. Each object is the whole of what we say about it; what
 * is left out is released.
 *
 * No object is there of which nothing is ours and nothing is to be. The Service is there twice where one pass both
 * closes ports and opens some, so that what is refused of an opening keeps nothing from being closed. A Service that
 * isn't there isn't made.
 */
export function sharedWrites(
  target: NginxTarget,
  entries: readonly Entry[],
  state: SharedState,
): AnyObject[] {
  const configMaps = configMapsOf(target, entries, state);
  const { service } = state;
  if (!service || (entries.length === 0 && !service.managed)) return configMaps;
  const all = servicePorts(target, entries);
  if (!closesPorts(entries, service)) return [...configMaps, all];
  const open = entries.filter((entry) => portIn(entry, state)?.ours);
  const opens = open.length < entries.length;
  return [servicePorts(target, open), ...configMaps, ...(opens ? [all] : [])];
}

function closesPorts(entries: readonly Entry[], { open }: KeptTargetService): boolean {
  const wanted = new Set(entries.map(({ listen, protocol }) => portKey(listen, protocol)));
  return Object.entries(open).some(([key, { ours }]) => ours && !wanted.has(key));
}

/** The Service of a target, with the ports of the entries and nothing else. */
export function servicePorts({ namespace, service }: NginxTarget, entries: readonly Entry[]): AnyObject {
  const ports = [...entries].sort(byPort).map(servicePort);
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: service, namespace },
    ...(ports.length > 0 && { spec: { ports } }),
  };
}

/** The ConfigMaps of a target, with the entries and nothing else; none for a protocol without any, unless it is ours. */
export function configMapsOf(
  target: NginxTarget,
  entries: readonly Entry[],
  state?: SharedState,
): AnyObject[] {
  return PROTOCOLS.flatMap((protocol) => {
    const data = dataOf(entries.filter((entry) => entry.protocol === protocol));
    const empty = Object.keys(data).length === 0;
    if (empty && !state?.configMaps[protocol]?.managed) return [];
    return {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: configMapName(target, protocol), namespace: target.namespace },
      ...(!empty && { data }),
    };
  });
}

/** Sorted by port, so that the same entries always are the same text. */
function dataOf(entries: readonly Entry[]): Readonly<Record<string, string>> {
  return Object.fromEntries([...entries].sort(byPort).map(({ listen, value }) => [String(listen), value]));
}

function byPort(a: Entry, b: Entry): number {
  return a.listen - b.listen || (a.protocol < b.protocol ? -1 : 1);
}

/**
 * The same object without the keys and ports to which the fields of a conflict belong; undefined where there is
 * none of them in it, so that nothing would change.
 * @param fields as the API server names them: `.data.9000`, or `.spec.ports[port=9000,protocol="TCP"].targetPort`
 */
export function withoutConflicts(object: AnyObject, fields: readonly string[]): AnyObject | undefined {
  return object.kind === 'ConfigMap' ? withoutKeys(object, fields) : withoutPorts(object, fields);
}

function withoutKeys({ data, ...rest }: AnyObject, fields: readonly string[]): AnyObject | undefined {
  const entries = Object.entries((data ?? {}) as Readonly<Record<string, string>>);
  const left = entries.filter(([key]) => !fields.includes(`.data.${key}`));
  if (left.length === entries.length) return undefined;
  return left.length === 0 ? rest : { ...rest, data: Object.fromEntries(left) };
}

function withoutPorts(object: AnyObject, fields: readonly string[]): AnyObject | undefined {
  const left = withPorts(
    object,
    ({ port, protocol }) =>
      !fields.some((field) => field.startsWith(`.spec.ports[port=${port},protocol="${protocol}"]`)),
  );
  return portsOf(left).length === portsOf(object).length ? undefined : left;
}
