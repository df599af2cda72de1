import type { KeptConfigMap, KeptEntry } from './kept-config-map.js';
import { portKey } from './kept-service.js';
import type { KeptTargetService, OpenPort } from './kept-service.js';
import { entryOf, leadsToUpstream, servicePort } from './entry.js';
import type { Entry } from './entry.js';
import { holderText, isFree } from './held.js';
import type { Resolution } from './resolve.js';
import type { Protocol, StreamIngress } from './spec.js';
import { configMapName } from './targets.js';
import type { NginxTarget } from './targets.js';

/** The shared objects of a target, as kept. */
export interface SharedState {
  readonly configMaps: Readonly<Record<Protocol, KeptConfigMap | undefined>>;
  readonly service: KeptTargetService | undefined;
}

/** Why the target can't open a port for its holder. */
export interface Obstacle {
  readonly reason: 'TargetNotFound' | 'TargetNotConfigured' | 'PortUnavailable' | 'TooManyListeners';
  readonly message: string;
}

export interface Openings {
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
  const { maxListeners = Infinity } = target;
  // Whoever is open stays open, also where an older one would come in.
  const ordered = [
    ...free.filter((entry) => isOurs(entry, state)),
    ...free.filter((entry) => !isOurs(entry, state)),
  ];
  for (const { cr } of ordered.slice(maxListeners)) obstacles.set(cr, tooMany(target, maxListeners));
  const entries = ordered.slice(0, maxListeners);
  return { entries, obstacles, open: new Set(entries.map(({ cr }) => cr)) };
}

export function entryIn({ protocol, listen }: Entry, { configMaps }: SharedState): KeptEntry | undefined {
  return configMaps[protocol]?.entries[String(listen)];
}

export function portIn({ protocol, listen }: Entry, { service }: SharedState): OpenPort | undefined {
  return service?.open[portKey(listen, protocol)];
}

function isOurs(entry: Entry, state: SharedState): boolean {
  return entryIn(entry, state)?.ours ?? false;
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

function tooMany({ name }: NginxTarget, maxListeners: number): Obstacle {
  const message = `the target ${name} has its ${maxListeners} ports open already; this one is opened once another is closed`;
  return obstacle('TooManyListeners', message);
}

function unavailable(what: string): Obstacle {
  return obstacle('PortUnavailable', `${what}; take another port, or have it released there`);
}

function obstacle(reason: Obstacle['reason'], message: string): Obstacle {
  return { reason, message };
}
