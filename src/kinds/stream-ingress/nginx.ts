import type { Change, ChangeSet } from '../../contract/change.js';
import type { Reader } from '../../contract/controller.js';
import { objectKey, splitKey, type AnyObject } from '../../contract/object.js';
import type { ShareStep } from '../../engine/steps/share.js';
import type { Refusal, View } from './claims.js';
import { portKey, portText, upstreamKey, upstreamText, type Protocol, type StreamIngress } from './spec.js';
import { programmedCondition as condition, type Findings, type Programmed } from './status.js';
import { beyondBounds, configMapKey, serviceKey, type NginxTarget } from './targets.js';
import { argumentsIn, FIELD_MANAGER, type Holding, type OpenPort, type SharedState } from './watched.js';

/** A port of ingress-nginx: a key of a ConfigMap, and a port of a Service. */
export interface Entry {
  readonly cr: StreamIngress;
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
  const { listen, protocol, proxyProtocol: { decode = false, encode = false } = {} } = cr.spec;
  const proxy = encode ? `:${decode ? 'PROXY' : ''}:PROXY` : decode ? ':PROXY' : '';
  const name = `si-${listen}-${protocol.toLowerCase()}`;
  return {
    cr,
    value: upstreamText(cr) + (protocol === 'TCP' ? proxy : ''),
    port: { name, port: listen, protocol, targetPort: listen },
  };
}

const REFUSED = 'TargetRefused';
const TO_CLOSE = 'The port has yet to be closed';

/** Reasons of an open port that doesn't work; its custom resource had it opened all the same. */
const NOT_WORKING = ['TargetNotFound', 'TargetNotConfigured', 'LoadBalancerPortsError', REFUSED];

/** Ports of an ingress-nginx: which are to be open, and what its objects have of them. */
export class NginxPorts {
  /** All that the shared objects are to have of ours. What others hold is left out, so that no request is made for it. */
  private readonly entries: readonly Entry[];
  /** Custom resources of the entries, by their ports. */
  private readonly open: ReadonlyMap<string, StreamIngress>;
  /** Custom resources for which the target is in the way. The others that aren't among the entries wait for their upstream. */
  private readonly obstacles = new Map<StreamIngress, Programmed>();

  constructor(
    private readonly target: NginxTarget,
    private readonly view: View,
    private readonly state: SharedState,
  ) {
    const ports = Object.values(state.service?.open ?? {});
    const names = new Map(ports.map((port) => [port.name ?? '', port]));
    const free = view.holders.filter((cr) => {
      const obstacle = this.obstacleTo(cr, names);
      if (obstacle) this.obstacles.set(cr, obstacle);
      const { gate } = view.resolution(cr);
      if (gate === 'shut' || (gate === 'keep' && !this.isOpen(cr))) return false;
      return !obstacle || (obstacle.reason === 'TargetNotFound' && this.isOpen(cr));
    });
    const beyond = beyondBounds(target, free, (cr) => this.isOwnOpen(cr));
    for (const [cr, message] of beyond)
      this.obstacles.set(cr, condition('False', 'TooManyListeners', message));
    const wanted = free.filter((cr) => !beyond.has(cr));
    this.entries = wanted.map(entryOf);
    this.open = new Map(wanted.map((cr) => [portText(cr), cr]));
  }

  /** Returns what the objects of the target have of a port. */
  private present({ spec: { listen, protocol } }: StreamIngress) {
    const { configMaps, service } = this.state;
    return {
      key: configMaps[protocol]?.entries[String(listen)],
      port: service?.open[portKey(listen, protocol)],
    };
  }

  /** Reports whether there is an entry of ours that leads to the same Service, at whatever port. */
  private isOpen(cr: StreamIngress): boolean {
    const { key } = this.present(cr);
    return key !== undefined && key.ours && key.value.split(':')[0] === upstreamKey(cr);
  }

  /** Reports whether it is open, and was opened for this custom resource: an entry doesn't say that, but the status does. */
  private isOwnOpen(cr: StreamIngress): boolean {
    const told = cr.status?.conditions?.find(({ type }) => type === 'Programmed');
    const wasOpened = told !== undefined && (told.status !== 'False' || NOT_WORKING.includes(told.reason));
    return wasOpened && !told.message.startsWith(TO_CLOSE) && this.isOpen(cr);
  }

  /** Reports whether a port is to be open for a custom resource. */
  private isWanted(cr: StreamIngress): boolean {
    return this.open.get(portText(cr)) === cr;
  }

  /** Returns why the target can't open a port for its holder. */
  private obstacleTo(cr: StreamIngress, names: ReadonlyMap<string, OpenPort>): Programmed | undefined {
    const { target, state } = this;
    const { listen, protocol } = cr.spec;
    const service = serviceKey(target);
    const unavailable = (what: string): Programmed =>
      condition('False', 'PortUnavailable', `${what}; take another port, or have it released there`);
    if (!state.service) {
      const message = `Service ${service}, which opens the ports of the target ${target.name}, isn't there`;
      return condition('False', 'TargetNotFound', message);
    }
    const { key, port } = this.present(cr);
    const keyHolder = holderOf(key);
    if (keyHolder)
      return unavailable(
        `key ${listen} of ConfigMap ${configMapKey(target, protocol)} is held by ${keyHolder}`,
      );
    const portHolder = holderOf(port);
    if (portHolder) return unavailable(`port ${portText(cr)} of Service ${service} is held by ${portHolder}`);
    // Where a Service has several ports, each has a name of its own.
    const unnamed = names.get('');
    if (unnamed) {
      const message = `port ${unnamed.port} of Service ${service} has no name, so the Service can have no second port; name it`;
      return condition('False', 'TargetNotConfigured', message);
    }
    const { name } = entryOf(cr).port;
    const namesake = names.get(name);
    if (!namesake || (namesake.port === listen && namesake.protocol === protocol)) return undefined;
    return unavailable(`the name ${name} stands on port ${namesake.port} of Service ${service}`);
  }

  /** Returns what the status of a custom resource says of its port: read back, never taken from what was sent. */
  findings(cr: StreamIngress, refusal: Refusal | undefined, reader: Reader): Partial<Findings> {
    if (!refusal)
      return { programmed: keptRefusal(cr, this.programmed(cr, reader)), addresses: this.addresses(cr) };
    // The port of a loser is another one's.
    const left = refusal.reason === 'PortConflict' ? undefined : this.notClosed(cr);
    return left ? { programmed: keptRefusal(cr, left) } : {};
  }

  private programmed(cr: StreamIngress, reader: Reader): Programmed {
    const obstacle = this.obstacles.get(cr);
    const isWanted = this.isWanted(cr);
    const left = isWanted ? undefined : this.notClosed(cr);
    if (left && obstacle?.reason !== 'PortUnavailable') return left;
    if (obstacle) return obstacle;
    if (!isWanted) return condition('False', 'Pending', 'The port is opened once the upstream is there');
    const misled = this.wrongArguments(cr, reader);
    if (misled) return condition('False', 'TargetNotConfigured', misled);
    const { value, port: wanted } = entryOf(cr);
    const { key, port } = this.present(cr);
    const isInService = port?.name === wanted.name && port.targetPort === wanted.targetPort;
    if (key?.value !== value || !isInService)
      return condition('Unknown', 'Pending', 'The port has yet to be opened');
    const refused = this.loadBalancerError(cr);
    if (refused) return condition('False', 'LoadBalancerPortsError', refused);
    const message = `Service ${serviceKey(this.target)} has port ${portText(cr)}`;
    return condition('True', 'Programmed', message);
  }

  /** Returns `address:port` for each address of the target's Service. */
  private addresses(cr: StreamIngress): string[] {
    return (this.state.service?.addresses ?? []).slice(0, 16).map(({ address }) => {
      const host = address.includes(':') ? `[${address}]` : address;
      return `${host}:${cr.spec.listen}`;
    });
  }

  private wrongArguments({ spec: { protocol } }: StreamIngress, reader: Reader): string | undefined {
    const { target } = this;
    const controller = argumentsIn(target, reader);
    if (controller === undefined) return undefined;
    const workload = target.ingressController?.replace('/', ` ${target.ingressNamespace}/`);
    if (!controller) return `${workload}, the controller of the target ${target.name}, isn't there`;
    const map = configMapKey(target, protocol);
    const read = controller[protocol];
    if (read === map) return undefined;
    const flag = `--${protocol.toLowerCase()}-services-configmap`;
    const found = read === undefined ? `has no such argument` : `reads ${read}`;
    return `the port is written to ConfigMap ${map}, and ${workload} ${found}; set its argument ${flag}=${map}`;
  }

  /** Returns what the cloud says against the port, or against the whole Service. */
  private loadBalancerError(cr: StreamIngress): string | undefined {
    const { addresses = [], portsError } = this.state.service ?? {};
    const ofPort = addresses
      .flatMap(({ errors }) => errors)
      .find(({ port, protocol }) => portKey(port, protocol) === portText(cr));
    if (ofPort) return `the load balancer doesn't open port ${portText(cr)}: ${ofPort.error}`;
    return portsError === undefined
      ? undefined
      : `the load balancer couldn't take the ports of the Service: ${portsError}`;
  }

  /**
   * Returns the condition of what is left of a port that isn't to be open for a custom resource; undefined where nothing of
   * ours is, or where the port is opened for another one.
   */
  private notClosed(cr: StreamIngress): Programmed | undefined {
    if (this.open.has(portText(cr))) return undefined;
    const { listen, protocol } = cr.spec;
    const { key, port } = this.present(cr);
    const left = [
      ...(key?.ours ? [`key ${listen} of ConfigMap ${configMapKey(this.target, protocol)}`] : []),
      ...(port?.ours ? [`port ${portText(cr)} of Service ${serviceKey(this.target)}`] : []),
    ];
    if (left.length === 0) return undefined;
    const alone = key?.ours ? '' : ', with nothing behind it';
    const message = `${TO_CLOSE}: ${left.join(' and ')} ${left.length > 1 ? 'are' : 'is'} still there${alone}`;
    return condition('False', 'NotClosed', message);
  }

  /** Plans what is to be written of the shared objects. */
  get steps(): ShareStep[] {
    return sharedSteps(this.target, this.entries, this.state);
  }

  /** Custom resources whose port is opened or closed by the steps. */
  get moving(): StreamIngress[] {
    const { holders, refused } = this.view;
    const opening = this.entries.filter(({ cr, value }) => {
      const { key, port } = this.present(cr);
      return key?.value !== value || !port;
    });
    // Nothing is to be open for these; the port of a loser is another one's.
    const unwanted = [...refused].filter(([, { reason }]) => reason !== 'PortConflict').map(([cr]) => cr);
    const closing = [...holders.filter((cr) => !this.isWanted(cr)), ...unwanted];
    return [...opening.map(({ cr }) => cr), ...closing.filter((cr) => this.notClosed(cr))];
  }

  /**
   * Returns the condition of a port that can't be opened or closed, since the API server has refused for good what concerns it of
   * the applies; undefined where it hasn't. Another pass can't see it, and keeps it by `keptRefusal`.
   */
  refused(cr: StreamIngress, changes: ChangeSet): Programmed | undefined {
    const { key, port } = this.present(cr);
    const isOpened = this.isWanted(cr);
    // Where the Service is applied twice, it is first for those to be closed and last for those to be opened.
    const services = changes.filter(({ ref }) => ref.kind === 'Service');
    const concerning = [
      (isOpened ? key?.value !== entryOf(cr).value : key?.ours) &&
        changeOf(this.target, cr.spec.protocol, changes),
      (isOpened ? !port : port?.ours) && services.at(isOpened ? -1 : 0),
    ];
    const errors = concerning.flatMap((change) => (change && change.error) || []);
    // A right has to be granted, or a quota raised, although that is tried again.
    const refusal = errors.find(
      ({ retry, reason }) => retry === 'onChange' || ['Forbidden', 'QuotaExceeded'].includes(reason),
    );
    if (!refusal) return undefined;
    const what = this.notClosed(cr)?.message;
    const message = what ? `${what}; ${refusal.message}` : `The port can't be opened: ${refusal.message}`;
    return condition('False', REFUSED, message);
  }
}

/** Names the holder that keeps us from writing a part, for people; nothing where it isn't there, or is ours alone. */
function holderOf(holding: Holding | undefined): string | undefined {
  if (!holding || (holding.ours && holding.others.length === 0)) return undefined;
  const others = holding.others.join(', ');
  return others ? `the field manager ${others}` : 'a writer that the cluster has no record of';
}

/** Returns what was refused in an earlier pass, where a port of the same generation still is to be opened, or still to be closed. */
function keptRefusal({ metadata, status }: StreamIngress, now: Programmed): Programmed {
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
      // A port is opened behind its entry.
      revise: (before) =>
        without(object, (_, { port, protocol }) => {
          const { action, conflicts = [] } = changeOf(target, protocol, before) ?? {};
          if (action === 'failed') return !state.service?.open[portKey(port, protocol)]?.ours;
          return conflicts.some(({ field }) => field === `.data.${port}`);
        }) ?? object,
    }),
    onConflict: (conflicts, intent) =>
      without(intent, (part) =>
        conflicts.some(({ field }) => field === part || field.startsWith(`${part}.`)),
      ),
  }));
}

type Ports = readonly Pick<Entry['port'], 'port' | 'protocol'>[];

/**
 * Returns a shared object without some of its keys and ports; undefined where it has none of them, so that nothing would change.
 * @param isLost is given a part as the API server names it: `.data.9000` or `.spec.ports[port=9000,protocol="TCP"]`
 */
function without(
  { data = {}, spec = {}, ...rest }: AnyObject,
  isLost: (part: string, port: Ports[number]) => boolean,
): AnyObject | undefined {
  const keys = Object.entries(data as Readonly<Record<string, string>>);
  const { ports = [] } = spec as { readonly ports?: Ports };
  const leftKeys = keys.filter(([key]) => !isLost(`.data.${key}`, { port: Number(key), protocol: 'TCP' }));
  const leftPorts = ports.filter(
    (port) => !isLost(`.spec.ports[port=${port.port},protocol="${port.protocol}"]`, port),
  );
  if (leftKeys.length === keys.length && leftPorts.length === ports.length) return undefined;
  return {
    ...rest,
    ...(leftKeys.length > 0 && { data: Object.fromEntries(leftKeys) }),
    ...(leftPorts.length > 0 && { spec: { ports: leftPorts } }),
  };
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
  const wanted = new Set(entries.map(({ cr }) => portText(cr)));
  const closesPorts = Object.entries(service.open).some(([key, { ours }]) => ours && !wanted.has(key));
  if (!closesPorts) return [...configMaps, all];
  const open = entries.filter(({ cr }) => service.open[portText(cr)]?.ours);
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
    const those = entries.filter(({ port }) => port.protocol === protocol).sort(byPort);
    if (those.length === 0 && !state?.configMaps[protocol]?.managed) return [];
    const data = Object.fromEntries(those.map(({ port, value }) => [port.port, value]));
    const metadata = splitKey(configMapKey(target, protocol));
    return { apiVersion: 'v1', kind: 'ConfigMap', metadata, ...(those.length > 0 && { data }) };
  });
}

/** Order of the entries, which makes the same entries the same text. */
function byPort({ port: a }: Entry, { port: b }: Entry): number {
  return a.port - b.port || (a.protocol < b.protocol ? -1 : 1);
}
