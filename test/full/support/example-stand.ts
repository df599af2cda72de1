import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { startSandbox } from '../../../sandbox/control-plane.js';
import type { Sandbox } from '../../../sandbox/control-plane.js';
import type { Kind, OwnedKind, Policy } from '../../../src/contract/kind.js';
import { childrenFieldManager } from '../../../src/contract/names.js';
import { objectId } from '../../../src/contract/object.js';
import type { AnyObject, KubernetesObject } from '../../../src/contract/object.js';
import { groupKind } from '../../../src/contract/resource.js';
import type { ResourceType } from '../../../src/contract/resource.js';
import { streamIngress } from '../../../src/kinds/stream-ingress/kind.js';
import type { StreamIngress } from '../../../src/kinds/stream-ingress/spec.js';
import { render } from '../../../src/synth/render.js';
import { Cluster, collection } from './cluster.js';
import type { Place } from './cluster.js';
import { startController } from './controller.js';
import type { RunningController } from './controller.js';
import { Differ } from './diff.js';
import { eventually } from './eventually.js';
import { makeSurroundings } from './example-surroundings.js';
import { allExamples, exampleConfig, exampleDocument, exampleKinds } from './examples.js';
import type { Example } from './examples.js';
import { tcpRoutes, udpRoutes } from './gateway-api.js';
import { GatewayPorts, OPEN } from './gateway-ports.js';
import { intentsOf } from './intents.js';
import type { Intent } from './intents.js';
import { kubeconfigLike } from './kubeconfigs.js';
import { appliedEntriesOf } from './owned-fields.js';
import { Subject } from './subject.js';
import type { LiveResource } from './subject.js';

const POLICY = 'streamingress/admin/policy.yaml';
/** Where the operator believes to run: the example of a watcher for the whole cluster is there. */
export const OPERATOR_NAMESPACE = 'reconstruct-system';

/** What the admin allows: by the examples, and their routes. */
function policy(): Policy {
  return { ...exampleDocument(POLICY), appservice: { gateways: ['*/*'], hostnames: ['*'] } };
}

/**
 * A control plane of its own with all that the examples need, since they name namespaces and node ports, and one
 * operator for all of them.
 */
export class ExampleStand {
  private readonly folder = mkdtempSync(join(tmpdir(), 'examples-'));
  private readonly policyFile = join(this.folder, 'policy.yaml');

  private constructor(
    readonly sandbox: Sandbox,
    readonly cluster: Cluster,
    readonly user: string,
    readonly kinds: readonly Kind[],
    readonly examples: readonly Example[],
  ) {
    writeFileSync(this.policyFile, JSON.stringify(policy()));
  }

  static async open(user: string): Promise<ExampleStand> {
    const kinds = await exampleKinds();
    const examples = allExamples(kinds);
    const sandbox = await startSandbox({ users: [user] });
    const cluster = new Cluster(sandbox);
    const namespaces = examples.map(({ object }) => object.metadata.namespace!);
    await makeSurroundings(cluster, kinds, [...new Set([...namespaces, OPERATOR_NAMESPACE])]);
    return new ExampleStand(sandbox, cluster, user, kinds, examples);
  }

  async close(): Promise<void> {
    await this.cluster.close();
    await this.sandbox.stop();
    rmSync(this.folder, { recursive: true });
  }

  async startController(): Promise<RunningController> {
    const { cluster, user, kinds } = this;
    return startController({
      ...{ cluster, user, kinds, config: exampleConfig },
      kubeconfig: await kubeconfigLike(cluster, user, { namespace: OPERATOR_NAMESPACE }),
      args: ['--policy', this.policyFile],
    });
  }

  differ(): Differ {
    return new Differ(this.sandbox.adminKubeconfig, [
      ...['--config', exampleConfig, '--policy', this.policyFile],
      ...['--operator-namespace', OPERATOR_NAMESPACE],
    ]);
  }

  /** Everything that the operator has applied: what custom resources own, and what they share with others. */
  async applied(): Promise<AnyObject[]> {
    const managers = new Set(this.kinds.map(({ type }) => childrenFieldManager(type.kind)));
    const found = await Promise.all(this.writtenTypes().map((type) => this.all(type)));
    return found
      .flat()
      .filter((object) => appliedEntriesOf(object).some(({ manager }) => managers.has(manager)))
      .sort((a, b) => (objectId(a) < objectId(b) ? -1 : 1));
  }

  /** In all namespaces, each with its type. */
  async all(type: ResourceType): Promise<AnyObject[]> {
    const { status, body } = await this.cluster.send('GET', collection(type, undefined));
    expect(status, String(body.message)).toBe(200);
    const { apiVersion, kind } = type;
    return (body.items as AnyObject[]).map((object) => ({ ...object, apiVersion, kind }));
  }

  /** Of custom resources, everything; of others, what the operator may write. */
  private writtenTypes(): ResourceType[] {
    const own = new Set(this.kinds.map(({ type }) => groupKind(type)));
    const watches = this.kinds
      .flatMap((kind) => kind.controllers({ render, policy: policy()[kind.name] }))
      .flatMap((controller) => controller.watches)
      .filter(({ type, writes = [] }) => writes.length > 0 && !own.has(groupKind(type)));
    return [...new Map(watches.map(({ type }) => [groupKind(type), type])).values()];
  }

  place({ kind, object }: Pick<Example, 'kind' | 'object'>): Place {
    const { namespace = '', name } = object.metadata;
    return { type: kind.type, namespace, name };
  }

  /** As they are, each with its type. */
  async customResources(): Promise<LiveResource[]> {
    return Promise.all(this.examples.map((example) => this.live(example)));
  }

  /** What the operator has to have applied for the examples as they are. */
  async intents(): Promise<Intent[]> {
    const live = await this.customResources();
    return this.kinds.flatMap((kind) => {
      const crs = live.filter((cr) => groupKind(cr) === groupKind(kind.type));
      return intentsOf(kind, crs, policy());
    });
  }

  live(example: Pick<Example, 'kind' | 'object'>): Promise<LiveResource> {
    return this.cluster.get<LiveResource>(this.place(example));
  }

  /** Says of every port of a Gateway that it is open, as the Gateway's controller would. */
  async openGatewayPorts(crs: readonly KubernetesObject[]): Promise<void> {
    for (const cr of crs.filter((one) => groupKind(one) === groupKind(streamIngress.type))) {
      const { metadata, spec } = cr as StreamIngress;
      if (spec.className !== 'edge') continue;
      const ports = new GatewayPorts(this.cluster, metadata.namespace!);
      await ports.say(metadata.name, OPEN, spec.protocol === 'UDP' ? udpRoutes : tcpRoutes);
    }
  }

  /** Waits until every status is of the present generation, and the children of every example are as rendered. */
  async asRendered(): Promise<void> {
    for (const example of this.examples) {
      const { kind, object } = example;
      const { namespace = '', name } = object.metadata;
      if (isOwned(kind)) await new Subject(this.cluster, kind, namespace).asRendered(name);
      await eventually(async () => {
        const { metadata, status } = await this.live(example);
        expect(status?.observedGeneration, objectId(object)).toBe(metadata.generation);
      });
    }
  }

  /** Waits until every StreamIngress is Ready, which an entry and an open port take. */
  async portsReady(): Promise<void> {
    for (const example of this.examples.filter(({ kind }) => kind === streamIngress)) {
      await eventually(async () => {
        const { status } = await this.live(example);
        const ready = status?.conditions?.find(({ type }) => type === 'Ready');
        expect(ready, objectId(example.object)).toMatchObject({ status: 'True' });
      });
    }
  }
}

/** Whether its custom resources own what is made of them. */
function isOwned(kind: Kind): kind is OwnedKind {
  return 'children' in kind;
}
