import type { ConditionProps } from '../../contract/conditions.js';
import { holderText, isFree } from './kept.js';
import type {
  KeptAddress,
  KeptArguments,
  KeptConfigMap,
  KeptEntry,
  KeptTargetService,
  OpenPort,
} from './kept.js';
import type { Resolution } from './resolve.js';
import { describeUpstream, portKey, protocolOf, serviceKey, upstreamOf } from './spec.js';
import type { Protocol, StreamIngress } from './spec.js';
import { programmedCondition as condition } from './status.js';
import { configMapName, tooManyListeners, withinLimit } from './targets.js';
import type { NginxTarget } from './targets.js';

/** The shared objects of a target, as kept. */
export interface SharedState {
  readonly configMaps: Readonly<Record<Protocol, KeptConfigMap | undefined>>;
  readonly service: KeptTargetService | undefined;
}

/** Why the target can't open a port for its holder. */
interface Obstacle {
  readonly reason: 'TargetNotFound' | 'TargetNotConfigured' | 'PortUnavailable' | 'TooManyListeners';
  readonly message: string;
}

interface Openings {
  /** What the shared objects are to have of ours: all of it. */
  readonly entries: readonly Entry[];
  /** Those whose entries they are. */
  readonly open: ReadonlySet<StreamIngress>;
  /** Those for which the target is in the way. The others that aren't among the entries wait for their upstream. */
  readonly obstacles: ReadonlyMap<StreamIngress, Obstacle>;
}

/**
 * Which ports are to be open. What others hold is left out beforehand, so that no request is made for it.
 * @param holders of their ports, the oldest first
 */
export function openings(
  target: NginxTarget,
  holders: readonly StreamIngress[],
  resolutionOf: (cr: StreamIngress) => Resolution,
  state: SharedState,
): Openings {
  const obstacles = new Map<StreamIngress, Obstacle>();
  const free: Entry[] = [];
  const names = new Map(Object.values(state.service?.open ?? {}).map((port) => [port.name ?? '', port]));
  for (const entry of holders.map(entryOf)) {
    const obstacle = obstacleTo(target, entry, state, names);
    if (obstacle) obstacles.set(entry.cr, obstacle);
    const gate = resolutionOf(entry.cr).gate;
    if (gate === 'shut' || (gate === 'keep' && !isOpen(entry, state))) continue;
    if (!obstacle || (obstacle.reason === 'TargetNotFound' && isOpen(entry, state))) free.push(entry);
  }
  const { within: entries, beyond } = withinLimit(
    target,
    free,
    (entry) => entryIn(entry, state)?.ours ?? false,
  );
  const tooMany = obstacle('TooManyListeners', tooManyListeners(target));
  for (const { cr } of beyond) obstacles.set(cr, tooMany);
  return { entries, obstacles, open: new Set(entries.map(({ cr }) => cr)) };
}

export function entryIn({ protocol, listen }: Entry, { configMaps }: SharedState): KeptEntry | undefined {
  return configMaps[protocol]?.entries[String(listen)];
}

export function portIn({ protocol, listen }: Entry, { service }: SharedState): OpenPort | undefined {
  return service?.open[portKey(listen, protocol)];
}

function isOpen(entry: Entry, state: SharedState): boolean {
  const present = entryIn(entry, state);
  return present !== undefined && present.ours && leadsToUpstream(present.value, entry.cr);
}

function obstacleTo(
  target: NginxTarget,
  entry: Entry,
  state: SharedState,
  names: ReadonlyMap<string, OpenPort>,
): Obstacle | undefined {
  const { listen, protocol } = entry;
  const { service } = state;
  const name = `${target.namespace}/${target.service}`;
  if (!service)
    return obstacle(
      'TargetNotFound',
      `Service ${name}, which opens the ports of the target ${target.name}, isn't there`,
    );
  const inMap = entryIn(entry, state);
  if (inMap && !isFree(inMap)) {
    const map = `${target.namespace}/${configMapName(target, protocol)}`;
    return unavailable(`key ${listen} of ConfigMap ${map} is held by ${holderText(inMap)}`);
  }
  const inService = portIn(entry, state);
  if (inService && !isFree(inService))
    return unavailable(`port ${listen}/${protocol} of Service ${name} is held by ${holderText(inService)}`);
  return namesObstacle(name, entry, names);
}

/** Where a Service has several ports, each has a name of its own. */
function namesObstacle(
  name: string,
  entry: Entry,
  names: ReadonlyMap<string, OpenPort>,
): Obstacle | undefined {
  const own = servicePort(entry);
  const unnamed = names.get('');
  if (unnamed) {
    const message = `port ${unnamed.port} of Service ${name} has no name, so the Service can have no second port; name it`;
    return obstacle('TargetNotConfigured', message);
  }
  const namesake = names.get(own.name);
  if (!namesake || (namesake.port === own.port && namesake.protocol === own.protocol)) return undefined;
  return unavailable(`the name ${own.name} stands on port ${namesake.port} of Service ${name}`);
}

function unavailable(what: string): Obstacle {
  return obstacle('PortUnavailable', `${what}; take another port, or have it released there`);
}

function obstacle(reason: Obstacle['reason'], message: string): Obstacle {
  return { reason, message };
}

/** A port of ingress-nginx: a key of a ConfigMap, and a port of a Service. */
export interface Entry {
  readonly cr: StreamIngress;
  readonly protocol: Protocol;
  readonly listen: number;
  readonly value: string;
}

export function entryOf(cr: StreamIngress): Entry {
  return { cr, protocol: protocolOf(cr), listen: cr.spec.listen, value: entryValue(cr) };
}

/**
 * The value in the ConfigMap, in one of the four forms that ingress-nginx reads: `ns/svc:port`, with `:PROXY` where
 * it is decoded, `::PROXY` where it is encoded and `:PROXY:PROXY` for both. The port is that of the Service, as given.
 * @see https://kubernetes.github.io/ingress-nginx/user-guide/exposing-tcp-udp-services/
 */
export function entryValue(cr: StreamIngress): string {
  const { decode = false, encode = false } = cr.spec.proxyProtocol ?? {};
  const proxy = encode ? `:${decode ? 'PROXY' : ''}:PROXY` : decode ? ':PROXY' : '';
  return describeUpstream(upstreamOf(cr)) + (protocolOf(cr) === 'TCP' ? proxy : '');
}

/** Whether a value leads to the Service of a custom resource, at whatever port. */
function leadsToUpstream(value: string, cr: StreamIngress): boolean {
  return value.split(':')[0] === serviceKey(upstreamOf(cr));
}

/** A port of the target's Service. */
export interface EntryPort {
  readonly name: string;
  readonly port: number;
  readonly protocol: Protocol;
  readonly targetPort: number;
}

/** With a number as its target, so that no container has to declare the port under a name. */
export function servicePort({ listen, protocol }: Pick<Entry, 'listen' | 'protocol'>): EntryPort {
  return { name: `si-${listen}-${protocol.toLowerCase()}`, port: listen, protocol, targetPort: listen };
}

/** What is read back from a target. */
interface ReadBack {
  readonly state: SharedState;
  readonly openings: Openings;
  /** Of its controller, where that is looked at; null where it isn't there. */
  readonly controller?: KeptArguments | null;
}

/** Whether the target has the port: read back from its objects, never taken from what was sent. */
export function programmed(target: NginxTarget, cr: StreamIngress, readBack: ReadBack): ConditionProps {
  const { state, openings } = readBack;
  const obstacle = openings.obstacles.get(cr);
  const left = openings.open.has(cr) ? undefined : stillOpen(target, cr, readBack);
  if (left && obstacle?.reason !== 'PortUnavailable') return left;
  if (obstacle) return condition('False', obstacle.reason, obstacle.message);
  const entry = entryOf(cr);
  if (!openings.open.has(cr))
    return condition('False', 'Pending', 'The port is opened once the upstream is there');
  const misled = wrongArguments(target, entry, readBack);
  if (misled) return condition('False', 'TargetNotConfigured', misled);
  if (!isWritten(entry, state)) return condition('Unknown', 'Pending', 'The port has yet to be opened');
  const refused = loadBalancerError(entry, state);
  if (refused) return condition('False', 'LoadBalancerPortsError', refused);
  const message = `Service ${target.namespace}/${target.service} has port ${entry.listen}/${entry.protocol}`;
  return condition('True', 'Programmed', message);
}

/** Where something is still there of a port that isn't to be open; @see notClosed */
export function stillOpen(
  target: NginxTarget,
  cr: StreamIngress,
  { openings, state }: ReadBack,
): ConditionProps | undefined {
  const message = notClosed(target, cr, openings.entries, state);
  return message === undefined ? undefined : condition('False', 'NotClosed', message);
}

/** `address:port` for each address of the target's Service. */
export function addressesOf(cr: StreamIngress, { service }: SharedState): string[] {
  return (service?.addresses ?? []).slice(0, 16).map(({ address }) => {
    const host = address.includes(':') ? `[${address}]` : address;
    return `${host}:${cr.spec.listen}`;
  });
}

/** Whose they are was asked before. */
function isWritten(entry: Entry, state: SharedState): boolean {
  const inMap = entryIn(entry, state);
  const inService = portIn(entry, state);
  const { name, targetPort } = servicePort(entry);
  return inMap?.value === entry.value && inService?.name === name && inService.targetPort === targetPort;
}

function wrongArguments(
  target: NginxTarget,
  { protocol }: Entry,
  { controller }: ReadBack,
): string | undefined {
  if (!target.controller || controller === undefined) return undefined;
  const workload = `${target.controller.kind} ${target.namespace}/${target.controller.name}`;
  const map = `${target.namespace}/${configMapName(target, protocol)}`;
  if (!controller) return `${workload}, the controller of the target ${target.name}, isn't there`;
  const read = controller[protocol];
  if (read === map) return undefined;
  const flag = `--${protocol.toLowerCase()}-services-configmap`;
  const found = read === undefined ? `is not told to read any` : `reads ${read}`;
  return `the port is written to ConfigMap ${map}, and ${workload} ${found}; set its argument ${flag}=${map}`;
}

/** What the cloud says of the port, or of the whole Service. */
function loadBalancerError({ listen, protocol }: Entry, { service }: SharedState): string | undefined {
  const ofPort = service?.addresses
    .flatMap(({ errors }: KeptAddress) => errors)
    .find((error) => error.port === listen && error.protocol === protocol);
  if (ofPort) return `the load balancer doesn't open port ${listen}/${protocol}: ${ofPort.error}`;
  return service?.portsError === undefined
    ? undefined
    : `the load balancer couldn't take the ports of the Service: ${service.portsError}`;
}

/**
 * What is still there of a port that isn't to be open for a custom resource, for people; undefined where nothing of
 * ours is, or where the port is opened for another one.
 * @param entries what is to be open
 */
export function notClosed(
  target: NginxTarget,
  cr: StreamIngress,
  entries: readonly Entry[],
  state: SharedState,
): string | undefined {
  const entry = entryOf(cr);
  const { listen, protocol } = entry;
  const key = entryIn(entry, state)?.ours
    ? `key ${listen} of ConfigMap ${target.namespace}/${configMapName(target, protocol)}`
    : undefined;
  const port = portIn(entry, state)?.ours
    ? `port ${listen}/${protocol} of Service ${target.namespace}/${target.service}`
    : undefined;
  const left = leftText(key, port);
  if (left === undefined) return undefined;
  const isAnothers = entries.some((other) => other.listen === listen && other.protocol === protocol);
  return isAnothers ? undefined : `The port has yet to be closed: ${left}`;
}

function leftText(key: string | undefined, port: string | undefined): string | undefined {
  if (key !== undefined)
    return port === undefined ? `${key} is still there` : `${key} and ${port} are still there`;
  return port === undefined ? undefined : `${port} is still there, with nothing behind it`;
}
