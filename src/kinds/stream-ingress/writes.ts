import type { AnyObject } from '../../contract/object.js';
import { servicePort } from './entry.js';
import type { Entry } from './entry.js';
import { portKey } from './kept-service.js';
import type { KeptTargetService } from './kept-service.js';
import { portIn } from './openings.js';
import type { SharedState } from './openings.js';
import type { Protocol } from './spec.js';
import { configMapName } from './targets.js';
import type { NginxTarget } from './targets.js';

type Data = Readonly<Record<string, string>>;

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
  const configMaps = PROTOCOLS.flatMap((protocol) => {
    const data = dataOf(entries.filter((entry) => entry.protocol === protocol));
    const untouched = isEmpty(data) && !state.configMaps[protocol]?.managed;
    return untouched ? [] : [configMap(target, protocol, data)];
  });
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

export function configMap(target: NginxTarget, protocol: Protocol, data: Data): AnyObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: configMapName(target, protocol), namespace: target.namespace },
    ...(!isEmpty(data) && { data }),
  };
}

/** Sorted by port, so that the same entries always are the same text. */
export function dataOf(entries: readonly Entry[]): Data {
  return Object.fromEntries([...entries].sort(byPort).map(({ listen, value }) => [String(listen), value]));
}

function byPort(a: Entry, b: Entry): number {
  return a.listen - b.listen || (a.protocol < b.protocol ? -1 : 1);
}

function isEmpty(data: Data): boolean {
  return Object.keys(data).length === 0;
}
