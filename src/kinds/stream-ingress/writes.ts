import type { AnyObject } from '../../contract/object.js';
import { servicePort } from './entry.js';
import type { Entry } from './entry.js';
import type { KeptConfigMap } from './kept-config-map.js';
import type { SharedState } from './openings.js';
import type { Protocol } from './spec.js';
import { configMapName } from './targets.js';
import type { NginxTarget } from './targets.js';

type Data = Readonly<Record<string, string>>;

const PROTOCOLS: readonly Protocol[] = ['TCP', 'UDP'];

/**
 * What is applied to the shared objects of a target, in this order: a port is opened behind its entry and closed
 * before it, so that the load balancer leads nowhere at no time. Each object is the whole of what we say about it; what
 * is left out is released.
 *
 * No object is there of which nothing is ours and nothing is to be. A ConfigMap is there twice where one pass both adds
 * entries and removes some. A Service that isn't there isn't made.
 */
export function sharedWrites(
  target: NginxTarget,
  entries: readonly Entry[],
  state: SharedState,
): AnyObject[] {
  const before: AnyObject[] = [];
  const after: AnyObject[] = [];
  for (const protocol of PROTOCOLS) {
    const wanted = dataOf(entries.filter((entry) => entry.protocol === protocol));
    const present = ourData(state.configMaps[protocol]);
    if (isEmpty(wanted) && !state.configMaps[protocol]?.managed) continue;
    const closes = Object.keys(present).some((key) => !(key in wanted));
    const changes = Object.entries(wanted).some(([key, value]) => present[key] !== value);
    const object = (data: Data): AnyObject => configMap(target, protocol, data);
    if (!closes) before.push(object(wanted));
    if (closes && changes) before.push(object({ ...present, ...wanted }));
    if (closes) after.push(object(wanted));
  }
  return [...before, ...serviceWrites(target, entries, state), ...after];
}

function serviceWrites(
  target: NginxTarget,
  entries: readonly Entry[],
  { service }: SharedState,
): AnyObject[] {
  if (!service || (entries.length === 0 && !service.managed)) return [];
  return [servicePorts(target, entries)];
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

function ourData(map: KeptConfigMap | undefined): Data {
  const ours = Object.entries(map?.entries ?? {}).filter(
    ([, entry]) => entry.ours && entry.others.length === 0,
  );
  return Object.fromEntries(ours.map(([key, { value }]) => [key, value]));
}

function byPort(a: Entry, b: Entry): number {
  return a.listen - b.listen || (a.protocol < b.protocol ? -1 : 1);
}

function isEmpty(data: Data): boolean {
  return Object.keys(data).length === 0;
}
