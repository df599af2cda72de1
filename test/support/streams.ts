import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Settle } from '../../src/contract/controller.js';
import { streamIngress as kind } from '../../src/kinds/stream-ingress/kind.js';
import type { StreamIngressSpec } from '../../src/kinds/stream-ingress/spec.js';
import { DEFAULT_TARGET } from '../../src/kinds/stream-ingress/targets.js';
import type { TargetProps } from '../../src/kinds/stream-ingress/targets.js';
import { configMaps, endpointSlices, events, eventually, installCrd, services } from './cluster.js';
import type { Cluster, Place } from './cluster.js';
import { startController } from './operator.js';
import type { ControllerProps, RunningController } from './operator.js';
import { requestsFromNowOn, writes } from './requests.js';

/** A port of a Service, as a chart writes it. */
export interface ChartPort {
  readonly name: string;
  readonly port: number;
  readonly protocol?: string;
  readonly targetPort: number | string;
}

/** Ports that the chart of ingress-nginx has on its Service. */
export const chartPorts: readonly ChartPort[] = [
  { name: 'http', port: 80, targetPort: 'http' },
  { name: 'https', port: 443, targetPort: 'https' },
];

/** Field manager of what the chart makes. */
export const CHART_MANAGER = 'helm';

/** Describes ports, each as `name port/protocol -> target`, sorted. */
export function portTexts(ports: readonly ChartPort[]): string[] {
  return ports
    .map(({ name, port, protocol = 'TCP', targetPort }) => `${name} ${port}/${protocol} -> ${targetPort}`)
    .sort();
}

export const CHART = portTexts(chartPorts);

/** Describes a port of ours. */
export function ours(port: number, protocol = 'TCP'): string {
  return `si-${port}-${protocol.toLowerCase()} ${port}/${protocol} -> ${port}`;
}

export interface UpstreamProps {
  /** @default sql, 5432, TCP */
  readonly port?: Partial<{ name: string; port: number; protocol: string }>;
  /** Whether it has a ready endpoint. @default true */
  readonly ready?: boolean;
}

/** Makes a Service with one port, without a selector, and an EndpointSlice of it. */
export async function makeUpstream(
  cluster: Cluster,
  namespace: string,
  name = 'db',
  { port, ready = true }: UpstreamProps = {},
): Promise<void> {
  const ports = [{ name: 'sql', port: 5432, protocol: 'TCP', ...port }];
  const metadata = { namespace, name };
  await cluster.create(services, { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports } });
  const { apiVersion, kind: of } = endpointSlices;
  const labels = { 'kubernetes.io/service-name': name };
  await cluster.create(endpointSlices, {
    ...{ apiVersion, kind: of, metadata: { ...metadata, labels }, addressType: 'IPv4', ports },
    endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready } }],
  });
}

export type Ask = Pick<StreamIngressSpec, 'listen'> &
  Partial<Omit<StreamIngressSpec, 'upstream' | 'className'>> & {
    /** @default - `db:5432` */
    readonly upstream?: Partial<StreamIngressSpec['upstream']>;
  };

/** The objects of an ingress-nginx: those of a target. */
export class IngressNginx {
  readonly service: Place;
  readonly tcp: Place;
  readonly udp: Place;

  constructor(
    private readonly cluster: Cluster,
    private readonly user: string,
    /** Name of the target. @default - the default one */
    readonly className: string | undefined,
    readonly namespace: string,
    service = 'ingress-nginx-controller',
  ) {
    this.service = { type: services, namespace, name: service };
    this.tcp = { type: configMaps, namespace, name: 'tcp-services' };
    this.udp = { type: configMaps, namespace, name: 'udp-services' };
  }

  /** Makes the Service as the chart does. */
  async makeService(spec: object = {}): Promise<void> {
    await this.put(this.service, { spec: { selector: { app: 'nginx' }, ports: chartPorts, ...spec } });
  }

  /** Applies an object as some other field manager, without force. */
  async put({ type, namespace, name }: Place, content: object, manager = CHART_MANAGER): Promise<void> {
    const { apiVersion, kind: of } = type;
    const metadata = { ...(namespace !== undefined && { namespace }), name };
    await this.cluster.apply(type, { apiVersion, kind: of, metadata, ...content }, manager);
  }

  /** Makes a custom resource that asks for a port here. */
  async ask(namespace: string, name: string, { upstream, ...spec }: Ask): Promise<Stream> {
    const { apiVersion, kind: of } = kind.type;
    await this.cluster.create(kind.type, {
      ...{ apiVersion, kind: of, metadata: { namespace, name } },
      spec: {
        upstream: { service: 'db', port: 5432, ...upstream },
        ...(this.className !== undefined && { className: this.className }),
        ...spec,
      },
    });
    return new Stream(this.cluster, { type: kind.type, namespace, name });
  }

  /** Returns the data of a ConfigMap; undefined where it isn't there. */
  async entries(map = this.tcp): Promise<Readonly<Record<string, string>> | undefined> {
    const found = await this.cluster.find<{ data?: Record<string, string> }>(map);
    return found && (found.data ?? {});
  }

  async ports(): Promise<string[]> {
    const { spec } = await this.cluster.get<{ spec: { ports: ChartPort[] } }>(this.service);
    return portTexts(spec.ports);
  }

  /**
   * Records what the operator writes to these objects from now on, in its order: `patch tcp-services 200`. Only applies
   * without force are expected.
   */
  async writesFromNowOn(): Promise<() => Promise<string[]>> {
    const requests = await requestsFromNowOn(this.cluster, this.user, this.namespace);
    return async () => {
      const own = writes(await requests());
      for (const { uri } of own) expect(uri).toContain('fieldManager=streamingress-controller&force=false');
      return own.map(({ verb, objectRef, code }) => `${verb} ${objectRef?.name ?? ''} ${code ?? ''}`);
    };
  }
}

interface EventSeen {
  readonly type: string;
  readonly reason: string;
  readonly note: string;
  readonly regarding: { readonly name: string };
}

/** Conditions by their type, each as `status reason`. */
export type Words = Readonly<Record<string, string>>;

/** A StreamIngress, as its user sees it. */
export class Stream {
  constructor(
    private readonly cluster: Cluster,
    readonly place: Place,
  ) {}

  /** Returns its conditions, each as `status reason` and as a message, once they are of its present generation. */
  async told(): Promise<{ words: Words; messages: Words }> {
    const { metadata, status } = await this.cluster.get<{
      metadata: { generation: number };
      status: {
        observedGeneration: number;
        conditions?: {
          type: string;
          status: string;
          reason: string;
          message: string;
          observedGeneration: number;
        }[];
      };
    }>(this.place);
    const conditions = status.conditions ?? [];
    for (const each of [status, ...conditions])
      expect(each.observedGeneration, this.place.name).toBe(metadata.generation);
    return {
      words: Object.fromEntries(conditions.map((each) => [each.type, `${each.status} ${each.reason}`])),
      messages: Object.fromEntries(conditions.map(({ type, message }) => [type, message])),
    };
  }

  /** Waits until it has these conditions, each as `status reason`. Returns their messages. */
  async is(wanted: Words): Promise<Words> {
    return eventually(async () => {
      const { words, messages } = await this.told();
      expect(words, this.place.name).toMatchObject(wanted);
      return messages;
    });
  }

  /** Waits for an event with a reason. Returns its note. */
  async event(reason: string): Promise<string> {
    const { namespace = '', name } = this.place;
    return eventually(async () => {
      const all = await this.cluster.list<EventSeen>(events, namespace);
      const found = all.find((event) => event.regarding.name === name && event.reason === reason);
      expect(found, `an event ${reason} for ${name}`).toMatchObject({ type: 'Warning' });
      return found!.note;
    });
  }

  /** Waits until its port is open. */
  async isReady(): Promise<void> {
    await this.is(READY);
  }

  async delete(): Promise<void> {
    await this.cluster.delete(this.place);
  }
}

const READY = {
  ...{ Ready: 'True Programmed', Reconciling: 'False Programmed', Stalled: 'False Programmed' },
  ...{ Accepted: 'True Accepted', ResolvedRefs: 'True ResolvedRefs', Programmed: 'True Programmed' },
};

/** The three standard conditions of what stays so until an object changes. */
export function stalled(reason: string): Words {
  return { Ready: `False ${reason}`, Reconciling: `False ${reason}`, Stalled: `True ${reason}` };
}

/** The three standard conditions of what may heal by itself. */
export function failing(reason: string): Words {
  return { Ready: `False ${reason}`, Reconciling: `True ${reason}`, Stalled: `False ${reason}` };
}

/** Settings of a controller, beside those that a stand knows. */
export type Start = Pick<ControllerProps, 'rights'> & {
  /** Value of `--ingress-controller`. @default - not given */
  readonly ingressController?: string;
};

/** A controller of StreamIngresses in one namespace, with targets that no other test knows. */
export class Stand implements AsyncDisposable {
  private running: RunningController | undefined;

  private constructor(
    private readonly cluster: Cluster,
    private readonly user: string,
    /** Namespace of the StreamIngresses and of their upstreams. */
    readonly namespace: string,
    private readonly folder: string,
    private readonly targets: Readonly<Record<string, Partial<TargetProps>>>,
    private readonly proxies: ReadonlyMap<string, IngressNginx>,
  ) {}

  /**
   * Makes the namespaces; no controller runs yet.
   * @param targets by name, each with an ingress namespace of its own; flags describe the one called `default`
   */
  static async make(
    cluster: Cluster,
    user: string,
    targets: Readonly<Record<string, Partial<TargetProps>>>,
  ): Promise<Stand> {
    await installCrd(cluster, kind);
    const namespace = await cluster.makeNamespace('streams');
    const proxies = new Map<string, IngressNginx>();
    for (const name of Object.keys(targets)) {
      const ingress = await cluster.makeNamespace(`ingress-${name}`);
      proxies.set(name, new IngressNginx(cluster, user, name, ingress));
    }
    const folder = await mkdtemp(join(tmpdir(), 'streams-'));
    return new Stand(cluster, user, namespace, folder, targets, proxies);
  }

  get controller(): RunningController {
    if (!this.running) throw new Error('No controller has been started');
    return this.running;
  }

  proxy(target: string): IngressNginx {
    return this.proxies.get(target)!;
  }

  /** Starts the controller; ends the one before. */
  async start(start: Start = {}): Promise<void> {
    const { cluster, user } = this;
    await this.running?.kill();
    this.running = await startController({ cluster, user, ...(await this.settings(start)) });
  }

  /** Returns the settings of a controller of this stand. */
  async settings({ ingressController, rights }: Start = {}): Promise<
    Pick<ControllerProps, 'kinds' | 'namespaces' | 'rights' | 'args'>
  > {
    const file = join(this.folder, 'policy.yaml');
    const listed = Object.entries(this.targets).filter(([name]) => name !== DEFAULT_TARGET);
    const targets = listed.map(([name, props]) => ({
      ...{ name, ingressNamespace: this.proxy(name).namespace },
      ...props,
    }));
    await writeFile(file, JSON.stringify({ [kind.name]: { targets } }));
    const described = this.proxies.get(DEFAULT_TARGET);
    const flags = {
      '--policy': file,
      ...(described && { '--ingress-namespace': described.namespace }),
      ...(ingressController !== undefined && { '--ingress-controller': ingressController }),
    };
    return {
      ...{ kinds: [kind], namespaces: [this.namespace] },
      ...{ args: Object.entries(flags).flat() },
      ...(rights && { rights }),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.running?.kill();
    await rm(this.folder, { recursive: true });
  }
}

/**
 * Returns how many passes at most a burst leads to, of a controller that lets things settle: one whenever the longest time
 * is over, one that was about to begin, and one in the end. A pause may look like quiet, and adds one; from half the quiet
 * time on, since an even burst may be seen less evenly.
 * @param times of each thing, in milliseconds
 */
export function mostPasses(
  times: readonly number[],
  { quietMilliseconds, longestMilliseconds }: Settle,
): number {
  const pauses = times.slice(1).map((time, index) => time - times[index]!);
  const took = pauses.reduce((sum, pause) => sum + pause, 0);
  const quiet = pauses.filter((pause) => pause > quietMilliseconds / 2);
  return Math.floor(took / longestMilliseconds) + 2 + quiet.length;
}
