import { expect } from 'vitest';
import { resourceType } from '../../../src/contract/resource.js';
import { streamIngress as kind } from '../../../src/kinds/stream-ingress/kind.js';
import type { StreamIngressSpec } from '../../../src/kinds/stream-ingress/spec.js';
import { configMaps, events, services } from './cluster.js';
import type { Cluster, Place } from './cluster.js';
import { eventually } from './eventually.js';
import { requestsFromNowOn, writes } from './requests.js';

export const namespaceType = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });

/** What the chart of ingress-nginx has on its Service. */
export const CHART = ['http 80/TCP -> http', 'https 443/TCP -> https'];

/** Who stands in for the chart. */
export const CHART_MANAGER = 'helm';

interface ServicePort {
  readonly name?: string;
  readonly port: number;
  readonly protocol: string;
  readonly targetPort: number | string;
}

export type Ask = Omit<StreamIngressSpec, 'upstream' | 'className'> & {
  /** @default - `db:5432` */
  readonly upstream?: Partial<StreamIngressSpec['upstream']>;
};

/** The objects of an ingress-nginx: those of a target. */
export class Proxy {
  readonly service: Place;
  readonly tcp: Place;
  readonly udp: Place;

  constructor(
    private readonly cluster: Cluster,
    private readonly user: string,
    /** The name of the target; undefined for the default. */
    readonly className: string | undefined,
    readonly namespace: string,
  ) {
    this.service = { type: services, namespace, name: 'ingress-nginx-controller' };
    this.tcp = { type: configMaps, namespace, name: 'tcp-services' };
    this.udp = { type: configMaps, namespace, name: 'udp-services' };
  }

  /** The Service as the chart makes it. */
  async makeService(spec: object = {}): Promise<void> {
    const ports = [
      { name: 'http', port: 80, targetPort: 'http' },
      { name: 'https', port: 443, targetPort: 'https' },
    ];
    await this.put(this.service, { spec: { selector: { app: 'nginx' }, ports, ...spec } });
  }

  /** Applied as some other field manager, without force. */
  async put({ type, namespace, name }: Place, content: object, manager = CHART_MANAGER): Promise<void> {
    const { apiVersion, kind: of } = type;
    const metadata = { ...(namespace !== undefined && { namespace }), name };
    await this.cluster.apply(type, { apiVersion, kind: of, metadata, ...content }, manager);
  }

  /** The custom resource that asks for a port here. */
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

  /** What is in a ConfigMap; undefined where it isn't there. */
  async entries(map = this.tcp): Promise<Readonly<Record<string, string>> | undefined> {
    const found = await this.cluster.find<{ data?: Record<string, string> }>(map);
    return found && (found.data ?? {});
  }

  /** Each as `name port/protocol -> target`, sorted. */
  async ports(): Promise<string[]> {
    const { spec } = await this.cluster.get<{ spec: { ports: ServicePort[] } }>(this.service);
    const texts = spec.ports.map(
      ({ name = '', port, protocol, targetPort }) => `${name} ${port}/${protocol} -> ${targetPort}`,
    );
    return texts.sort();
  }

  /**
   * What the operator writes to these objects from now on, in its order: `patch tcp-services 200`. Only applies without
   * force are expected.
   */
  async writesFromNowOn(): Promise<() => Promise<string[]>> {
    const requests = await requestsFromNowOn(this.cluster, this.user);
    return async () => {
      const own = writes(await requests()).filter(({ objectRef }) => objectRef?.namespace === this.namespace);
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

/** A StreamIngress, and what is told of it. */
export class Stream {
  constructor(
    private readonly cluster: Cluster,
    readonly place: Place,
  ) {}

  /** Its conditions, each as `status reason` and as a message, once they speak of its present generation. */
  async told(): Promise<{ words: Record<string, string>; messages: Record<string, string> }> {
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

  /** Waits until these conditions are told, each as `status reason`. Returns their messages. */
  async is(wanted: Readonly<Record<string, string>>): Promise<Record<string, string>> {
    return eventually(async () => {
      const { words, messages } = await this.told();
      expect(words, this.place.name).toMatchObject(wanted);
      return messages;
    });
  }

  /** Waits until it has been told of a reason in an event. Returns what that says. */
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

export const READY = {
  ...{ Ready: 'True Programmed', Reconciling: 'False Programmed', Stalled: 'False Programmed' },
  ...{ Accepted: 'True Accepted', ResolvedRefs: 'True ResolvedRefs', Programmed: 'True Programmed' },
};

/** The three standard conditions of what stays so until somebody changes something. */
export function stalled(reason: string): Record<string, string> {
  return { Ready: `False ${reason}`, Reconciling: `False ${reason}`, Stalled: `True ${reason}` };
}

/** The three standard conditions of what may heal by itself. */
export function failing(reason: string): Record<string, string> {
  return { Ready: `False ${reason}`, Reconciling: `True ${reason}`, Stalled: `False ${reason}` };
}
