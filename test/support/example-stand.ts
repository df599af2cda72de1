import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Sandbox } from '../../sandbox/control-plane.js';
import type { Condition } from '../../src/contract/conditions.js';
import type { Kind, OwnedKind, Sections } from '../../src/contract/kind.js';
import { childrenFieldManager } from '../../src/contract/names.js';
import { objectId } from '../../src/contract/object.js';
import type { AnyObject, KubernetesObject } from '../../src/contract/object.js';
import { groupKind, resourceType } from '../../src/contract/resource.js';
import type { ResourceType } from '../../src/contract/resource.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import type { StreamIngress } from '../../src/kinds/stream-ingress/spec.js';
import { render } from '../../src/render/renderer.js';
import {
  Cluster,
  collection,
  deployments,
  eventually,
  installCrd,
  kubeconfigOf,
  namespaceType,
  serviceAccounts,
} from './cluster.js';
import type { Place } from './cluster.js';
import { Reconstruct } from './commands.js';
import { allExamples, exampleConfig, exampleDocument, exampleKinds } from './examples.js';
import type { Example } from './examples.js';
import { GatewayPorts, installGatewayApi, OPEN, referenceGrants, tcpRoutes, udpRoutes } from './gateway.js';
import { Jobs, KEEP } from './jobs.js';
import { closeCluster, startController } from './operator.js';
import type { RunningController } from './operator.js';
import { IngressNginx, makeUpstream } from './streams.js';
import { appliedEntriesOf, Subject } from './subject.js';
import type { LiveResource } from './subject.js';

/** Namespace of the operator: the example of a watcher for the whole cluster is there. */
const OPERATOR_NAMESPACE = 'reconstruct-system';

/** Policy of the examples, with any route allowed. */
function policy(): Sections {
  const admins = exampleDocument('streamingress/admin/policy.yaml');
  return { ...admins, appservice: { gateways: ['*/*'], hostnames: ['*'] } };
}

const ready = { type: 'Ready', status: 'True' } as const;

/** Conditions of an example, where it isn't Ready alone. */
const OUTCOMES: Readonly<Record<string, readonly Partial<Condition>[]>> = {
  // There is HTTPRoute, but no Gateway that would take one.
  'appservice/route.yaml': [ready, { type: 'RouteReady', status: 'Unknown', reason: 'Pending' }],
  // No node has the accelerators that it asks for.
  'appservice-full.yaml': [{ type: 'Ready', status: 'False', reason: 'Unschedulable' }],
};

/**
 * A control plane of its own with all that the examples need, since they name namespaces and node ports, and one
 * operator for all of them.
 */
export class ExampleStand implements AsyncDisposable {
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
    const sandbox = await startSandbox({ users: [user] });
    const stand = new ExampleStand(sandbox, new Cluster(sandbox), user, kinds, allExamples(kinds));
    try {
      await stand.makeSurroundings();
      return stand;
    } catch (error) {
      await stand[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closeCluster(this.cluster);
    await this.sandbox.stop();
    rmSync(this.folder, { recursive: true });
  }

  /** Makes what the examples need and don't bring along. */
  private async makeSurroundings(): Promise<void> {
    const { cluster, kinds, examples } = this;
    await installGatewayApi(cluster);
    await installCrd(cluster, ...kinds);
    const own = examples.map(({ object }) => object.metadata.namespace!);
    for (const name of new Set([...own, OPERATOR_NAMESPACE, 'ingress-nginx', 'infra'])) {
      const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
      if (name !== 'default') await cluster.create(namespaceType, namespace);
    }
    const metadata = { namespace: 'default', name: 'shop' };
    await cluster.create(serviceAccounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata });
    for (const name of ['web-data', 'ledger']) await this.makeClaim(name);
    await this.makeIngress();
    await makeUpstream(cluster, 'shop', 'db');
    await makeUpstream(cluster, 'shop', 'mail', { port: { name: 'smtp', port: 25 } });
    await makeUpstream(cluster, 'shop', 'dns', { port: { name: 'dns-udp', port: 53, protocol: 'UDP' } });
    await makeUpstream(cluster, 'infra', 'broker', { port: { name: 'mqtt', port: 1883 } });
    await cluster.create(referenceGrants, exampleDocument('streamingress/admin/reference-grant.yaml'));
    // One that every watcher counts, and none deletes.
    await new Jobs(cluster, 'default').finished('pi-kept', { annotations: KEEP });
  }

  /** Makes an ingress-nginx that reads what StreamIngresses write. */
  private async makeIngress(): Promise<void> {
    const proxy = new IngressNginx(this.cluster, this.user, undefined, 'ingress-nginx');
    await proxy.makeService();
    const { namespace } = proxy;
    const args = ['tcp', 'udp'].map((name) => `--${name}-services-configmap=${namespace}/${name}-services`);
    const labels = { app: 'nginx' };
    const containers = [{ name: 'controller', image: 'example.com/nginx:1', args }];
    await this.cluster.create(deployments, {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { namespace, name: proxy.service.name } },
      spec: {
        ...{ replicas: 0, selector: { matchLabels: labels } },
        template: { metadata: { labels }, spec: { containers } },
      },
    });
  }

  /** Makes a claim with a volume for it, which is never mounted. */
  private async makeClaim(name: string): Promise<void> {
    const common = { accessModes: ['ReadWriteOnce'], storageClassName: '' };
    const storage = { storage: '1Gi' };
    const volume = { apiVersion: 'v1', kind: 'PersistentVolume' };
    await this.cluster.create(resourceType({ ...volume, namespaced: false }), {
      ...{ ...volume, metadata: { name } },
      spec: {
        ...{ ...common, capacity: storage, claimRef: { namespace: 'default', name } },
        hostPath: { path: '/never-mounted' },
      },
    });
    const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim' };
    await this.cluster.create(resourceType(claim), {
      ...{ ...claim, metadata: { name, namespace: 'default' } },
      spec: { ...common, volumeName: name, resources: { requests: storage } },
    });
  }

  async startController(): Promise<RunningController> {
    const { cluster, user, kinds } = this;
    return startController({
      ...{ cluster, user, kinds, config: exampleConfig },
      kubeconfig: await kubeconfigOf(cluster, user, { namespace: OPERATOR_NAMESPACE }),
      args: ['--policy', this.policyFile],
    });
  }

  /** `reconstruct diff` as the admin. */
  differ(): Reconstruct {
    return new Reconstruct('diff', this.sandbox.adminKubeconfig, [
      ...['--config', exampleConfig, '--policy', this.policyFile],
      ...['--operator-namespace', OPERATOR_NAMESPACE],
    ]);
  }

  /** Returns everything that the operator has applied: what custom resources own, and what they share with others. */
  async applied(): Promise<AnyObject[]> {
    const managers = new Set(this.kinds.map(({ type }) => childrenFieldManager(type.kind)));
    const found = await Promise.all(this.writtenTypes().map((type) => this.all(type)));
    return found
      .flat()
      .filter((object) => appliedEntriesOf(object).some(({ manager }) => managers.has(manager)))
      .sort((a, b) => (objectId(a) < objectId(b) ? -1 : 1));
  }

  /** Returns the objects of all namespaces, each with its type. */
  async all(type: ResourceType): Promise<AnyObject[]> {
    const { status, body } = await this.cluster.send('GET', collection(type, undefined));
    expect(status, String(body.message)).toBe(200);
    const { apiVersion, kind } = type;
    return (body.items as AnyObject[]).map((object) => ({ ...object, apiVersion, kind }));
  }

  /** Types that the operator writes, beside the custom resources. */
  private writtenTypes(): ResourceType[] {
    const own = new Set(this.kinds.map(({ type }) => groupKind(type)));
    const watches = this.kinds
      .flatMap((kind) => kind.controllers({ render, policy: policy()[kind.name] }))
      .flatMap((controller) => controller.watches)
      .filter(({ type, writes = [] }) => writes.length > 0 && !own.has(groupKind(type)));
    return [...new Map(watches.map(({ type }) => [groupKind(type), type])).values()];
  }

  /** Returns the custom resources as they are, each with its type. */
  async customResources(): Promise<LiveResource[]> {
    return Promise.all(this.examples.map((example) => this.live(example)));
  }

  private live({ kind, object }: Example): Promise<LiveResource> {
    const { namespace = '', name } = object.metadata;
    const place: Place = { type: kind.type, namespace, name };
    return this.cluster.get<LiveResource>(place);
  }

  /** Reports of every port of a Gateway that it is open, as the Gateway's controller would. */
  async openGatewayPorts(crs: readonly KubernetesObject[]): Promise<void> {
    for (const cr of crs.filter((one) => groupKind(one) === groupKind(streamIngress.type))) {
      const { metadata, spec } = cr as StreamIngress;
      if (spec.className !== 'edge') continue;
      const ports = new GatewayPorts(this.cluster, metadata.namespace!);
      await ports.say(metadata.name, OPEN, spec.protocol === 'UDP' ? udpRoutes : tcpRoutes);
    }
  }

  /** Waits until every example has the children and the conditions that it is to have. */
  async settled(): Promise<void> {
    for (const example of this.examples) {
      const { file, kind, object } = example;
      const { namespace = '', name } = object.metadata;
      const isOwned = 'children' in kind;
      if (isOwned) await new Subject(this.cluster, kind as OwnedKind, namespace).asRendered(name);
      const outcome = OUTCOMES[file] ?? (isOwned || kind === streamIngress ? [ready] : []);
      await eventually(async () => {
        const { metadata, status } = await this.live(example);
        expect(status?.observedGeneration, objectId(object)).toBe(metadata.generation);
        for (const condition of outcome)
          expect(status?.conditions, file).toContainEqual(expect.objectContaining(condition));
      });
    }
  }
}
