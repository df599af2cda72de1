import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { parse } from 'yaml';
import { controllerOf } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { definitionType, resourceType } from '../../src/contract/resource.js';
import type { ResourceType } from '../../src/contract/resource.js';
import { streamIngress as kind } from '../../src/kinds/stream-ingress/kind.js';
import { eventually, httpRoutes, putStatus } from './cluster.js';
import type { Cluster, Place } from './cluster.js';
import { goModule } from './commands.js';
import { Stream } from './streams.js';
import type { Words } from './streams.js';

const gatewayType = (kind: string, version = 'v1'): ResourceType =>
  resourceType({ apiVersion: `gateway.networking.k8s.io/${version}`, kind });

export const listenerSets = gatewayType('ListenerSet');
export const tcpRoutes = gatewayType('TCPRoute');
export const udpRoutes = gatewayType('UDPRoute');
export const referenceGrants = gatewayType('ReferenceGrant', 'v1beta1');
export const streamTypes = [listenerSets, tcpRoutes, udpRoutes, referenceGrants];

/** Makes types of the Gateway API known, as its release defines them. @param channel `experimental` serves older versions too */
export async function installGatewayApi(
  cluster: Cluster,
  types: readonly ResourceType[] = [httpRoutes, ...streamTypes],
  channel: 'standard' | 'experimental' = 'standard',
): Promise<void> {
  const folder = join(await goModule('gateway-api'), 'config/crd', channel);
  for (const type of types) {
    const text = await readFile(join(folder, `gateway.networking.k8s.io_${type.plural}.yaml`), 'utf8');
    const { status: _, ...crd } = parse(text) as AnyObject;
    await cluster.apply(definitionType, crd, 'test');
  }
  for (const type of types) await eventually(() => cluster.list(type, 'default'));
}

/** Conditions that the controller of a Gateway gives one port. */
export interface Verdict {
  readonly set?: Words;
  readonly listener?: Words;
  readonly route?: Words;
}

/** Verdict on a port that is open. */
export const OPEN: Verdict = {
  set: { Accepted: 'True Accepted', Programmed: 'True Programmed' },
  listener: { Accepted: 'True Accepted', Programmed: 'True Programmed', Conflicted: 'False NoConflicts' },
  route: { Accepted: 'True Accepted', ResolvedRefs: 'True ResolvedRefs' },
};

/** The StreamIngresses of one namespace and their children for a Gateway, whose controller is played here. */
export class GatewayPorts {
  constructor(
    readonly cluster: Cluster,
    readonly namespace: string,
  ) {}

  place(name: string, type: ResourceType = kind.type): Place {
    return { type, namespace: this.namespace, name };
  }

  /** Makes one that leads to `db:5432`, unless something else is given. */
  async ask(name: string, spec: object): Promise<void> {
    const { apiVersion, kind: of } = kind.type;
    const upstream = { service: 'db', port: 5432 };
    const metadata = { namespace: this.namespace, name };
    await this.cluster.create(kind.type, { apiVersion, kind: of, metadata, spec: { upstream, ...spec } });
  }

  /** Changes the upstream of one. */
  async lead(name: string, upstream: object): Promise<void> {
    await this.cluster.merge(this.place(name), { spec: { upstream } });
  }

  /** Returns its conditions, once they are of its present generation. */
  async words(name: string): Promise<Words> {
    return (await new Stream(this.cluster, this.place(name)).told()).words;
  }

  /** Waits until these conditions are among its own. */
  async told(name: string, words: Words): Promise<void> {
    await new Stream(this.cluster, this.place(name)).is(words);
  }

  /** Returns the objects that it controls, by kind. */
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
  async has(name: string, ...kinds: readonly string[]): Promise<Readonly<Record<string, AnyObject>>> {
    return eventually(async () => {
      const children = await this.children(name);
      expect(Object.keys(children), name).toEqual(kinds);
      return children;
    });
  }

  /** Waits for the children of a port, and gives their present generation these conditions, and no others. */
  async say(name: string, verdict: Verdict, route = tcpRoutes): Promise<void> {
    const { ListenerSet: set, [route.kind]: led } = await this.has(name, 'ListenerSet', route.kind);
    const [listener] = (set!.spec as { listeners: { name: string }[] }).listeners;
    const [parentRef] = (led!.spec as { parentRefs: object[] }).parentRefs;
    const entry = { attachedRoutes: 1, conditions: conditions(set!, verdict.listener), name: listener!.name };
    await putStatus(this.cluster, this.place(name, listenerSets), {
      conditions: conditions(set!, verdict.set),
      listeners: verdict.listener ? [entry] : [],
    });
    const parents = [gatewayParent(led!, parentRef!, verdict.route)];
    await putStatus(this.cluster, this.place(name, route), { parents: verdict.route ? parents : [] });
  }
}

/** Returns the entry by which the controller of a Gateway reports on the present generation of a route. */
export function gatewayParent(route: AnyObject, parentRef: object, words: Words = {}): object {
  return { controllerName: 'example.com/gateway', parentRef, conditions: conditions(route, words) };
}

function conditions({ metadata }: AnyObject, words: Words = {}): object[] {
  return Object.entries(words).map(([type, said]) => {
    const [status, reason] = said.split(' ') as [string, string];
    const observed = { observedGeneration: metadata.generation, lastTransitionTime: '2026-01-01T00:00:00Z' };
    return { ...{ type, status, reason, message: `${reason} it is` }, ...observed };
  });
}
