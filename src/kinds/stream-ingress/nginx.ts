import type { Change, ChangeSet } from '../../contract/change.js';
import type { Reader } from '../../contract/controller.js';
import { objectKey, splitKey, type AnyObject } from '../../contract/object.js';
import type { ShareStep } from '../../engine/steps/share.js';
import type { Resolution } from './claims.js';
import { portKey, portText, protocolOf, upstreamKey, upstreamText } from './spec.js';
import type { Protocol, StreamIngress } from './spec.js';
import { programmedCondition as condition, type Programmed } from './status.js';
import { beyondBounds, configMapKey, serviceKey, type NginxTarget } from './targets.js';
import { argumentsIn, FIELD_MANAGER } from './watched.js';
import type { Holding, KeptEntry, OpenPort, SharedState } from './watched.js';

/** A port of ingress-nginx: a key of a ConfigMap, and a port of a Service. */
export interface Entry {
  readonly cr: StreamIngress;
  readonly protocol: Protocol;
  readonly listen: number;
  /** In the ConfigMap. */
  readonly value: string;
  /** In the Service; with a number as its target, so that no container has to declare the port under a name. */
  readonly port: {
    readonly name: string;
    readonly port: number;
    readonly protocol: Protocol;
    readonly targetPort: number;
  };
}

/**
 * Makes the entry of a custom resource. Its value is in one of the four forms that ingress-nginx reads: `ns/svc:port`, with
 * `:PROXY` where it is decoded, `::PROXY` where it is encoded and `:PROXY:PROXY` for both.
 * @see https://kubernetes.github.io/ingress-nginx/user-guide/exposing-tcp-udp-services/
 */
export function entryOf(cr: StreamIngress): Entry {
  const { listen, proxyProtocol: { decode = false, encode = false } = {} } = cr.spec;
  const protocol = protocolOf(cr);
  const proxy = encode ? `:${decode ? 'PROXY' : ''}:PROXY` : decode ? ':PROXY' : '';
  const port = { name: `si-${listen}-${protocol.toLowerCase()}`, port: listen, protocol, targetPort: listen };
  return { cr, protocol, listen, value: upstreamText(cr) + (protocol === 'TCP' ? proxy : ''), port };
}

export interface Openings {
  /** All that the shared objects are to have of ours. */
  readonly entries: readonly Entry[];
  /** The custom resources of the entries. */
  readonly open: ReadonlySet<StreamIngress>;
  /** Custom resources for which the target is in the way. The others that aren't among the entries wait for their upstream. */
  readonly obstacles: ReadonlyMap<StreamIngress, Programmed>;
}

/**
 * Works out which ports are to be open. What others hold is left out beforehand, so that no request is made for it.
 * @param holders of their ports, the oldest first
 */
export function openings(
  target: NginxTarget,
  holders: readonly StreamIngress[],
  resolutionOf: (cr: StreamIngress) => Resolution,
  state: SharedState,
): Openings {
  const obstacles = new Map<StreamIngress, Programmed>();
  const free: Entry[] = [];
  const names = new Map(Object.values(state.service?.open ?? {}).map((port) => [port.name ?? '', port]));
  for (const entry of holders.map(entryOf)) {
    const obstacle = obstacleTo(target, entry, state, names);
    if (obstacle) obstacles.set(entry.cr, obstacle);
    const { gate } = resolutionOf(entry.cr);
    if (gate === 'shut' || (gate === 'keep' && !isOpen(entry, state))) continue;
    if (!obstacle || (obstacle.reason === 'TargetNotFound' && isOpen(entry, state))) free.push(entry);
  }
  const wanted = free.map(({ cr }) => cr);
  const beyond = beyondBounds(target, wanted, (cr) => isOwnOpen(entryOf(cr), state));
  for (const [cr, message] of beyond) obstacles.set(cr, condition('False', 'TooManyListeners', message));
  const entries = free.filter(({ cr }) => !beyond.has(cr));
  return { entries, obstacles, open: new Set(entries.map(({ cr }) => cr)) };
}

export function entryIn({ protocol, listen }: Entry, { configMaps }: SharedState): KeptEntry | undefined {
  return configMaps[protocol]?.entries[String(listen)];
}

export function portIn({ protocol, listen }: Entry, { service }: SharedState): OpenPort | undefined {
  return service?.open[portKey(listen, protocol)];
}

/** Reports whether there is an entry of ours that leads to the same Service, at whatever port. */
function isOpen(entry: Entry, state: SharedState): boolean {
  const present = entryIn(entry, state);
  return present !== undefined && present.ours && present.value.split(':')[0] === upstreamKey(entry.cr);
}

const REFUSED = 'TargetRefused';
const TO_CLOSE = 'The port has yet to be closed';

/** Reasons of an open port that doesn't work; its custom resource had it opened all the same. */
const NOT_WORKING = ['TargetNotFound', 'TargetNotConfigured', 'LoadBalancerPortsError', REFUSED];

/** Reports whether it is open, and was opened for this custom resource: an entry doesn't say that, but the status does. */
function isOwnOpen(entry: Entry, state: SharedState): boolean {
  const told = entry.cr.status?.conditions?.find(({ type }) => type === 'Programmed');
  const wasOpened = told !== undefined && (told.status !== 'False' || NOT_WORKING.includes(told.reason));
  return wasOpened && !told.message.startsWith(TO_CLOSE) && isOpen(entry, state);
}

/** Returns why the target can't open a port for its holder. */
function obstacleTo(
  target: NginxTarget,
  entry: Entry,
  state: SharedState,
  names: ReadonlyMap<string, OpenPort>,
): Programmed | undefined {
  const { listen, protocol, port: own } = entry;
  const name = serviceKey(target);
  const unavailable = (what: string): Programmed =>
    condition('False', 'PortUnavailable', `${what}; take another port, or have it released there`);
  if (!state.service) {
    const message = `Service ${name}, which opens the ports of the target ${target.name}, isn't there`;
    return condition('False', 'TargetNotFound', message);
  }
  const keyHolder = holderOf(entryIn(entry, state));
  const map = configMapKey(target, protocol);
  if (keyHolder) return unavailable(`key ${listen} of ConfigMap ${map} is held by ${keyHolder}`);
  const portHolder = holderOf(portIn(entry, state));
  if (portHolder)
    return unavailable(`port ${listen}/${protocol} of Service ${name} is held by ${portHolder}`);
  // Where a Service has several ports, each has a name of its own.
  const unnamed = names.get('');
  if (unnamed) {
    const message = `port ${unnamed.port} of Service ${name} has no name, so the Service can have no second port; name it`;
    return condition('False', 'TargetNotConfigured', message);
  }
  const namesake = names.get(own.name);
  if (!namesake || (namesake.port === own.port && namesake.protocol === own.protocol)) return undefined;
  return unavailable(`the name ${own.name} stands on port ${namesake.port} of Service ${name}`);
}

/** Names the holder that keeps us from writing a part, for people; nothing where it isn't there, or is ours alone. */
function holderOf(holding: Holding | undefined): string | undefined {
  if (!holding || (holding.ours && holding.others.length === 0)) return undefined;
  const others = holding.others.join(', ');
  return others ? `the field manager ${others}` : 'a writer that the cluster has no record of';
}

/** State that is read back from a target. */
interface ReadBack {
  readonly state: SharedState;
  readonly openings: Openings;
  readonly reader: Reader;
}

/** Condition of a port: read back from the target's objects, never taken from what was sent. */
export function programmed(target: NginxTarget, cr: StreamIngress, readBack: ReadBack): Programmed {
  const { state, openings, reader } = readBack;
  const obstacle = openings.obstacles.get(cr);
  const isWanted = openings.open.has(cr);
  const left = isWanted ? undefined : notClosed(target, cr, openings.entries, state);
  if (left && obstacle?.reason !== 'PortUnavailable') return left;
  if (obstacle) return obstacle;
  if (!isWanted) return condition('False', 'Pending', 'The port is opened once the upstream is there');
  const entry = entryOf(cr);
  const misled = wrongArguments(target, entry, reader);
  if (misled) return condition('False', 'TargetNotConfigured', misled);
  const inService = portIn(entry, state);
  const { name, targetPort } = entry.port;
  const isInService = inService?.name === name && inService.targetPort === targetPort;
  const isWritten = entryIn(entry, state)?.value === entry.value;
  if (!isWritten || !isInService) return condition('Unknown', 'Pending', 'The port has yet to be opened');
  const refused = loadBalancerError(entry, state);
  if (refused) return condition('False', 'LoadBalancerPortsError', refused);
  return condition('True', 'Programmed', `Service ${serviceKey(target)} has port ${portText(cr)}`);
}

/** Returns `address:port` for each address of the target's Service. */
export function addressesOf(cr: StreamIngress, { service }: SharedState): string[] {
  return (service?.addresses ?? []).slice(0, 16).map(({ address }) => {
    const host = address.includes(':') ? `[${address}]` : address;
    return `${host}:${cr.spec.listen}`;
  });
}

function wrongArguments(target: NginxTarget, { protocol }: Entry, reader: Reader): string | undefined {
  const controller = argumentsIn(target, reader);
  if (controller === undefined) return undefined;
  const workload = target.ingressController?.replace('/', ` ${target.ingressNamespace}/`);
  const map = configMapKey(target, protocol);
  if (!controller) return `${workload}, the controller of the target ${target.name}, isn't there`;
  const read = controller[protocol];
  if (read === map) return undefined;
  const flag = `--${protocol.toLowerCase()}-services-configmap`;
  const found = read === undefined ? `has no such argument` : `reads ${read}`;
  return `the port is written to ConfigMap ${map}, and ${workload} ${found}; set its argument ${flag}=${map}`;
}

/** Returns what the cloud says against the port, or against the whole Service. */
function loadBalancerError({ listen, protocol }: Entry, { service }: SharedState): string | undefined {
  const ofPort = service?.addresses
    .flatMap(({ errors }) => errors)
    .find((error) => error.port === listen && error.protocol === protocol);
  if (ofPort) return `the load balancer doesn't open port ${listen}/${protocol}: ${ofPort.error}`;
  return service?.portsError === undefined
    ? undefined
    : `the load balancer couldn't take the ports of the Service: ${service.portsError}`;
}

/**
 * Returns the condition of what is left of a port that isn't to be open for a custom resource; undefined where nothing of
 * ours is, or where the port is opened for another one.
 * @param entries those that are to be open
 */
export function notClosed(
  target: NginxTarget,
  cr: StreamIngress,
  entries: readonly Entry[],
  state: SharedState,
): Programmed | undefined {
  const entry = entryOf(cr);
  const { listen, protocol } = entry;
  const key = entryIn(entry, state)?.ours
    ? [`key ${listen} of ConfigMap ${configMapKey(target, protocol)}`]
    : [];
  const port = portIn(entry, state)?.ours ? [`port ${portText(cr)} of Service ${serviceKey(target)}`] : [];
  const left = [...key, ...port];
  const isSame = (other: Entry): boolean => other.listen === listen && other.protocol === protocol;
  // Of thousands that are refused, few have anything left.
  if (left.length === 0 || entries.some(isSame)) return undefined;
  const alone = key.length > 0 ? '' : ', with nothing behind it';
  const message = `${TO_CLOSE}: ${left.join(' and ')} ${left.length > 1 ? 'are' : 'is'} still there${alone}`;
  return condition('False', 'NotClosed', message);
}

/**
 * Returns the condition of a port that can't be opened or closed, since the API server has refused for good what concerns it of
 * the applies; undefined where it hasn't. Another pass can't see it, and keeps it by `keptRefusal`.
 */
export function refusedCondition(
  target: NginxTarget,
  cr: StreamIngress,
  { entries, open }: Openings,
  state: SharedState,
  changes: ChangeSet,
): Programmed | undefined {
  const entry = entryOf(cr);
  const [key, port] = [entryIn(entry, state), portIn(entry, state)];
  const isOpened = open.has(cr);
  // Where the Service is applied twice, it is first for those to be closed and last for those to be opened.
  const services = changes.filter(({ ref }) => ref.kind === 'Service');
  const concerning = [
    (isOpened ? key?.value !== entry.value : key?.ours) && changeOf(target, entry.protocol, changes),
    (isOpened ? !port : port?.ours) && services.at(isOpened ? -1 : 0),
  ];
  const errors = concerning.flatMap((change) => (change && change.error) || []);
  // A right has to be granted, or a quota raised, although that is tried again.
  const refusal = errors.find(
    ({ retry, reason }) => retry === 'onChange' || ['Forbidden', 'QuotaExceeded'].includes(reason),
  );
  if (!refusal) return undefined;
  const what = notClosed(target, cr, entries, state)?.message;
  const message = what ? `${what}; ${refusal.message}` : `The port can't be opened: ${refusal.message}`;
  return condition('False', REFUSED, message);
}

/** Returns what was refused in an earlier pass, where a port of the same generation still is to be opened, or still to be closed. */
export function keptRefusal({ metadata, status }: StreamIngress, now: Programmed): Programmed {
  const kept = status?.conditions?.find(
    ({ reason, observedGeneration }) => reason === REFUSED && observedGeneration === metadata.generation,
  );
  const isDue = kept?.message.startsWith(TO_CLOSE) ? now.reason === 'NotClosed' : now.status === 'Unknown';
  return kept && isDue ? condition('False', REFUSED, kept.message) : now;
}

/** Returns what became of the ConfigMap of a protocol. */
function changeOf(target: NginxTarget, protocol: Protocol, changes: ChangeSet): Change | undefined {
  const key = configMapKey(target, protocol);
  return changes.find(({ ref }) => ref.kind === 'ConfigMap' && objectKey(ref.namespace, ref.name) === key);
}

/**
 * Plans the applies to the shared objects of a target. Where another writer has got a key or port since it was looked at,
 * that alone is left out and the rest is applied. A port whose entry couldn't be written isn't opened; an entry goes
 * also where its port couldn't be closed, since a port with nothing behind it only refuses connections.
 */
export function sharedSteps(target: NginxTarget, entries: readonly Entry[], state: SharedState): ShareStep[] {
  return sharedWrites(target, entries, state).map((object) => ({
    ...{ do: 'engine/share', object, fieldManager: FIELD_MANAGER },
    ...(object.kind === 'Service' && {
      mustExist: true,
      revise: (before) => behindEntries(target, object, state, before),
    }),
    onConflict: (conflicts, intent) =>
      withoutConflicts(
        intent,
        conflicts.map(({ field }) => field),
      ),
  }));
}

/** Returns the Service with those ports alone whose entries were written: a port is opened behind its entry. */
function behindEntries(
  target: NginxTarget,
  object: AnyObject,
  state: SharedState,
  changes: ChangeSet,
): AnyObject {
  return withPorts(object, ({ port, protocol }) => {
    const { action, conflicts = [] } = changeOf(target, protocol, changes) ?? {};
    if (action === 'failed') return state.service?.open[portKey(port, protocol)]?.ours ?? false;
    return !conflicts.some(({ field }) => field === `.data.${port}`);
  });
}

/**
 * Returns the shared objects to apply, in this order: a port is closed before its entry goes and opened behind it, so that
 * the load balancer leads nowhere at no time. Each object is the whole of what we say about it; what is left out is
 * released.
 *
 * No object is there of which nothing is ours and nothing is to be. The Service is there twice where one pass both
 * closes ports and opens some, so that what is refused of an opening keeps nothing from being closed. A Service that
 * isn't there isn't created.
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
  const wanted = new Set(entries.map(({ listen, protocol }) => portKey(listen, protocol)));
  const closesPorts = Object.entries(service.open).some(([key, { ours }]) => ours && !wanted.has(key));
  if (!closesPorts) return [...configMaps, all];
  const open = entries.filter((entry) => portIn(entry, state)?.ours);
  return [servicePorts(target, open), ...configMaps, ...(open.length < entries.length ? [all] : [])];
}

/** Returns the Service of a target, with the ports of the entries and nothing else. */
export function servicePorts(target: NginxTarget, entries: readonly Entry[]): AnyObject {
  const ports = [...entries].sort(byPort).map(({ port }) => port);
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: target.ingressService, namespace: target.ingressNamespace },
    ...(ports.length > 0 && { spec: { ports } }),
  };
}

/** Returns the ConfigMaps of a target, with the entries and nothing else; none for a protocol without any, unless it is ours. */
export function configMapsOf(
  target: NginxTarget,
  entries: readonly Entry[],
  state?: SharedState,
): AnyObject[] {
  return (['TCP', 'UDP'] as const).flatMap((protocol) => {
    const those = entries.filter((entry) => entry.protocol === protocol).sort(byPort);
    if (those.length === 0 && !state?.configMaps[protocol]?.managed) return [];
    const data = Object.fromEntries(those.map(({ listen, value }) => [String(listen), value]));
    const metadata = splitKey(configMapKey(target, protocol));
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata, ...(those.length > 0 && { data }) };
  });
}

/** Order of the entries, which makes the same entries the same text. */
function byPort(a: Entry, b: Entry): number {
  return a.listen - b.listen || (a.protocol < b.protocol ? -1 : 1);
}

/**
 * Returns the same object without the keys and ports to which the fields of a conflict belong; undefined where there is
 * none of them in it, so that nothing would change.
 * @param fields as the API server names them: `.data.9000`, or `.spec.ports[port=9000,protocol="TCP"].targetPort`
 */
function withoutConflicts(object: AnyObject, fields: readonly string[]): AnyObject | undefined {
  const { data, ...rest } = object;
  if (object.kind === 'Service') {
    const left = withPorts(
      object,
      ({ port, protocol }) =>
        !fields.some((field) => field.startsWith(`.spec.ports[port=${port},protocol="${protocol}"]`)),
    );
    return portsOf(left).length === portsOf(object).length ? undefined : left;
  }
  const entries = Object.entries((data ?? {}) as Readonly<Record<string, string>>);
  const left = entries.filter(([key]) => !fields.includes(`.data.${key}`));
  if (left.length === entries.length) return undefined;
  return left.length === 0 ? rest : { ...rest, data: Object.fromEntries(left) };
}

function withPorts(object: AnyObject, wanted: (port: Entry['port']) => boolean): AnyObject {
  const { spec, ...rest } = object;
  const left = portsOf(object).filter(wanted);
  return left.length === 0 ? rest : { ...rest, spec: { ports: left } };
}

function portsOf({ spec }: AnyObject): readonly Entry['port'][] {
  return ((spec ?? {}) as { readonly ports?: readonly Entry['port'][] }).ports ?? [];
}
