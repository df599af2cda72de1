import { expect } from 'vitest';
import { controllerOf } from '../../../src/contract/object.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { resourceType } from '../../../src/contract/resource.js';
import type { ResourceType } from '../../../src/contract/resource.js';
import { streamIngress as kind } from '../../../src/kinds/stream-ingress/kind.js';
import { services } from './cluster.js';
import type { Cluster, Place } from './cluster.js';
import { eventually } from './eventually.js';
import { listenerSets, tcpRoutes, udpRoutes } from './gateway-api.js';

const slices = resourceType({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' });

/** Conditions by their type, each as `True Accepted`. */
export type Words = Readonly<Record<string, string>>;

/** What the controller of a Gateway says of one port. */
export interface Verdict {
  readonly set?: Words;
  readonly listener?: Words;
  readonly route?: Words;
}

/** Said of a port that is open. */
export const OPEN: Verdict = {
  set: { Accepted: 'True Accepted', Programmed: 'True Programmed' },
  listener: { Accepted: 'True Accepted', Programmed: 'True Programmed', Conflicted: 'False NoConflicts' },
  route: { Accepted: 'True Accepted', ResolvedRefs: 'True ResolvedRefs' },
};

/** The StreamIngresses of one namespace, and what is made of them for a Gateway, whose controller is played here. */
export class GatewayPorts {
  constructor(
    readonly cluster: Cluster,
    readonly namespace: string,
  ) {}

  place(name: string, type: ResourceType = kind.type): Place {
    return { type, namespace: this.namespace, name };
  }

  /** One that leads to `db:5432`, unless something else is given. */
  async ask(name: string, spec: object): Promise<void> {
    const { apiVersion, kind: of } = kind.type;
    const upstream = { service: 'db', port: 5432 };
    const metadata = { namespace: this.namespace, name };
    await this.cluster.create(kind.type, { apiVersion, kind: of, metadata, spec: { upstream, ...spec } });
  }

  /** Its conditions, once they are of its present generation. */
  async words(name: string): Promise<Words> {
    const { metadata, status } = await this.cluster.get<
      AnyObject & { status: { conditions?: { type: string; status: string; reason: string }[] } }
    >(this.place(name));
    expect(status).toMatchObject({ observedGeneration: metadata.generation });
    return Object.fromEntries(
      (status.conditions ?? []).map(({ type, status: held, reason }) => [type, `${held} ${reason}`]),
    );
  }

  /** Waits until these conditions are among its own. */
  async told(name: string, words: Words, deadlineMilliseconds?: number): Promise<void> {
    await eventually(
      async () => {
        expect(await this.words(name), name).toMatchObject(words);
      },
      deadlineMilliseconds === undefined ? {} : { deadlineMilliseconds },
    );
  }

  /** The objects that it controls, by kind. */
  async children(name: string): Promise<Readonly<Record<string, AnyObject>>> {
    const { metadata } = await this.cluster.get(this.place(name));
    const found = await Promise.all(
      [listenerSets, tcpRoutes, udpRoutes].map(async (type) =>
        (await this.cluster.listIfServed(type, this.namespace))
          .filter((object) => controllerOf(object)?.uid === metadata.uid)
          .map((object) => [type.kind, object] as const),
      ),
    );
    return Object.fromEntries(found.flat());
  }

  /** Waits until it has children of exactly these kinds. */
  async has(name: string, kinds: readonly string[]): Promise<Readonly<Record<string, AnyObject>>> {
    return eventually(async () => {
      const children = await this.children(name);
      expect(Object.keys(children), name).toEqual(kinds);
      return children;
    });
  }

  /** Waits for the children of a port, and says of their present generation what is given, and nothing else. */
  async say(name: string, verdict: Verdict, route = tcpRoutes): Promise<void> {
    const { ListenerSet: set, [route.kind]: led } = await this.has(name, ['ListenerSet', route.kind]);
    const [listener] = (set!.spec as { listeners: { name: string }[] }).listeners;
    const [parentRef] = (led!.spec as { parentRefs: object[] }).parentRefs;
    const entry = { attachedRoutes: 1, conditions: conditions(set!, verdict.listener), name: listener!.name };
    await this.report(set!, listenerSets, {
      conditions: conditions(set!, verdict.set),
      listeners: verdict.listener ? [entry] : [],
    });
    const parent = {
      ...{ controllerName: 'example.com/gateway', parentRef },
      conditions: conditions(led!, verdict.route),
    };
    await this.report(led!, route, { parents: verdict.route ? [parent] : [] });
  }

  private async report({ metadata }: AnyObject, type: ResourceType, status: object): Promise<void> {
    const path = `/apis/${type.apiVersion}/namespaces/${this.namespace}/${type.plural}/${metadata.name}/status`;
    const contentType = 'application/merge-patch+json';
    const answer = await this.cluster.send('PATCH', path, { body: { status }, contentType });
    expect(answer.status, String(answer.body.message)).toBe(200);
  }
}

function conditions({ metadata }: AnyObject, words: Words = {}): object[] {
  return Object.entries(words).map(([type, said]) => {
    const [status, reason] = said.split(' ') as [string, string];
    const observed = { observedGeneration: metadata.generation, lastTransitionTime: '2026-01-01T00:00:00Z' };
    return { ...{ type, status, reason, message: `${reason} it is` }, ...observed };
  });
}

/** A Service with one port, and somebody ready behind it. */
export async function makeService(
  cluster: Cluster,
  place: { readonly namespace: string; readonly name: string },
  port: number,
  protocol = 'TCP',
): Promise<void> {
  await cluster.create(services, {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: place },
    spec: { ports: [{ name: 'main', port, protocol }] },
  });
  await cluster.create(slices, {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
    metadata: { ...place, labels: { 'kubernetes.io/service-name': place.name } },
    ports: [{ name: 'main', port, protocol }],
    endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: true } }],
  });
}
