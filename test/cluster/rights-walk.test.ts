import { writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/control-plane.js';
import type { Sandbox } from '../../sandbox/control-plane.js';
import type { Kind } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import type { ResourceType } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { drop, losing, respond } from '../scenarios/support/faults.js';
import { lists, watches } from '../scenarios/support/proxied-request.js';
import { sceneryFor, Stage } from '../scenarios/support/stage.js';
import { deployments, events, services } from './support/cluster.js';
import type { Cluster, Place } from './support/cluster.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import {
  installGatewayApi,
  listenerSets,
  referenceGrants,
  tcpRoutes,
  udpRoutes,
} from './support/gateway-api.js';
import { GatewayPorts, makeService } from './support/gateway-ports.js';
import { httpRouteCrd } from './support/http-route-crd.js';
import { installedRights } from './support/installed-rights.js';
import { Jobs } from './support/jobs.js';
import { summary } from './support/requests.js';
import { revoke } from './support/rights.js';
import { Proxy } from './support/stream-proxy.js';
import { Subject } from './support/subject.js';
import { describeRight, isUsedBy, rightsIn } from './support/used-rights.js';

/**
 * Each kind does once everything that it ever does, with the rights that are installed for it alone. With a control
 * plane of its own, in which nobody else has custom resources, and nothing collects garbage before the controller.
 */
let sandbox: Sandbox;

beforeAll(async () => {
  sandbox = await startSandbox({ apiOnly: true });
  await sandbox.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(httpRouteCrd) });
  const { cluster, proxy } = await sceneryFor({ purpose: 'prepare', sandbox });
  await installGatewayApi(cluster, [listenerSets, tcpRoutes, udpRoutes, referenceGrants]);
  await Promise.all([appService, jobWatcher, streamIngress].map((kind) => installCrd(cluster, kind)));
  await proxy[Symbol.asyncDispose]();
  await cluster.close();
});
afterAll(() => sandbox.stop());

/** An operator of one kind behind a proxy, everywhere in the cluster. */
class Walk extends Stage {
  static async prepare(kind: Kind): Promise<Walk> {
    return new Walk(await sceneryFor({ purpose: kind.name, sandbox }));
  }

  /** Its first lists are in pages, as where the API server doesn't stream them; what follows is streamed. */
  async start(kind: Kind, args: readonly string[] = []): Promise<void> {
    const rule = this.proxy.on(lists(), respond({ status: 422 }));
    await this.run({ kinds: [kind], args, electionNamespace: this.user });
    rule.remove();
  }

  /** Does something while no watch of these types tells of anything. */
  async unseen(types: readonly ResourceType[], act: () => Promise<void>): Promise<void> {
    const rules = types.map(({ plural }) => this.proxy.on(watches(plural), drop));
    for (const { plural } of types) this.proxy.cut(watches(plural));
    await act();
    for (const rule of rules) rule.remove();
    for (const { plural } of types) this.proxy.cut(watches(plural));
  }

  /** Waits until somebody has been told the same twice. */
  async toldTwice(name: string, reason: string): Promise<void> {
    await eventually(async () => {
      const all = await this.cluster.list<Told>(events, this.namespace);
      const found = all.filter((event) => event.regarding.name === name && event.reason === reason);
      expect(found).toContainEqual(expect.objectContaining({ series: expect.anything() as unknown }));
    });
  }

  /**
   * Waits until every right that is installed has been used, but for those given. Nothing was refused meanwhile, and
   * nothing but what is installed gives any of them.
   */
  async usedAll(kind: Kind, { args = [], but = [] }: Used = {}): Promise<void> {
    const { cluster, user } = this;
    const rules = installedRights({ kinds: [kind], args, namespace: user });
    await eventually(async () => {
      const asked = await cluster.sandbox.audit(user);
      expect(asked.filter(({ code }) => code === 403).map(summary)).toEqual([]);
      const unused = rightsIn(rules).filter((right) => !asked.some((entry) => isUsedBy(right, entry)));
      expect(unused.map(describeRight)).toEqual(but);
    });
    this.logsNoError();
    const code = await this.controller.stop();
    expect(code, JSON.stringify([this.controller.log.slice(-12), this.controller.strayOutput])).toBe(0);
    await revoke(cluster, { user, rules });
  }
}

interface Used {
  readonly args?: readonly string[];
  /** What admission asks for by itself, so that no request shows it. @default - nothing */
  readonly but?: readonly string[];
}

interface Told extends AnyObject {
  readonly reason: string;
  readonly regarding: { readonly name: string };
}

const web = { size: 2, image: 'example.com/web:1', resources: { requests: { cpu: '100m' } } };
const everything = {
  ...{ ...web, ports: [{ port: 80 }] },
  ...{ autoscaling: { minReplicas: 2, maxReplicas: 3, cpu: 50 }, disruption: {} },
  route: { parentRefs: [{ name: 'edge' }] },
};

test('AppService uses every right that it is given, and needs no other', async () => {
  await using walk = await Walk.prepare(appService);
  const { cluster, namespace } = walk;
  const apps = new Subject(cluster, appService, namespace);
  await walk.start(appService);

  await apps.create('web', everything);
  await apps.asRendered('web');
  const service = apps.childPlace(services, 'web');
  for (let times = 0; times < 2; times++) {
    await cluster.merge(service, { metadata: { labels: { app: 'other' } } });
    await eventually(async () => {
      expect((await cluster.get(service)).metadata.labels).toMatchObject({ app: 'web' });
    });
  }
  await walk.toldTwice('web', 'DriftCorrected');
  await cluster.delete(service);
  await apps.asRendered('web');
  await apps.edit('web', web);
  await apps.asRendered('web');

  await walk.unseen(appService.children, async () => {
    await apps.create('unseen', everything);
    await apps.asRendered('unseen');
  });

  // A namesake that is gone has left it behind.
  const [gone] = [{ ...ownerOf('left'), uid: '00000000-0000-4000-8000-000000000000' }];
  await cluster.create(deployments, deployment(namespace, 'left', gone));
  await apps.create('left', web);
  await apps.asRendered('left');

  await walk.usedAll(appService, { but: ['update appservices/finalizers.kosmos.io'] });
});

function ownerOf(name: string): { apiVersion: string; kind: string; name: string; controller: boolean } {
  const { apiVersion, kind } = appService.type;
  return { apiVersion, kind, name, controller: true };
}

function deployment(namespace: string, name: string, owner: { uid: string } & ReturnType<typeof ownerOf>) {
  const labels = { app: 'old' };
  const containers = [{ name: 'web', image: 'example.com/old:1' }];
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: { name, namespace, ownerReferences: [owner] },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  };
}

test('StreamIngress uses every right that it is given, and needs no other', async () => {
  await using walk = await Walk.prepare(streamIngress);
  const { cluster, namespace, user } = walk;
  const proxy = new Proxy(cluster, user, 'nginx', await cluster.makeNamespace('ingress'));
  const file = `${sandbox.dir}/streams.policy`;
  const nginx = { name: 'nginx', ingressNamespace: proxy.namespace, ingressController: 'Deployment/nginx' };
  const edge = { name: 'edge', kind: 'Gateway', gateway: 'gateways/edge' };
  await writeFile(file, JSON.stringify({ streamingress: { targets: [nginx, edge] } }));
  const args = ['--policy', file];
  await proxy.makeService();
  await makeService(cluster, { namespace, name: 'db' }, 5432);
  await makeService(cluster, { namespace, name: 'dns' }, 53, 'UDP');
  await walk.start(streamIngress, args);
  const dns = { protocol: 'UDP', upstream: { service: 'dns', port: 53 } } as const;
  const openBoth = async (listen: number): Promise<void> => {
    await proxy.ask(namespace, `tcp-${listen}`, { listen });
    await proxy.ask(namespace, `udp-${listen}`, { ...dns, listen });
    await eventually(async () => {
      expect(await proxy.entries(proxy.tcp)).toHaveProperty(String(listen));
      expect(await proxy.entries(proxy.udp)).toHaveProperty(String(listen));
      expect((await proxy.ports()).filter((port) => port.includes(`${listen}/`))).toHaveLength(2);
    });
  };

  await openBoth(9000);
  const edited = await proxy.ask(namespace, 'edited', { listen: 9005 });
  for (const [of, ResolvedRefs] of [
    ['elsewhere', 'False RefNotPermitted'],
    [null, 'True ResolvedRefs'],
    ['elsewhere', 'False RefNotPermitted'],
  ]) {
    await cluster.merge(edited.place, { spec: { upstream: { namespace: of } } });
    await edited.is({ ResolvedRefs: ResolvedRefs! });
  }
  await walk.toldTwice('edited', 'RefNotPermitted');

  // Others in their place, of which no watch tells.
  for (const place of [proxy.tcp, proxy.udp, proxy.service]) {
    walk.proxy.onEvents(watches(place.type.plural), losing(place.name));
    await replace(cluster, place);
  }
  await openBoth(9001);

  const ports = new GatewayPorts(cluster, namespace);
  const askBoth = async (name: string, listen: number): Promise<void> => {
    await ports.ask(`${name}-tcp`, { listen, className: 'edge' });
    await ports.ask(`${name}-udp`, { ...dns, listen, className: 'edge' });
    await ports.has(`${name}-tcp`, ['ListenerSet', 'TCPRoute']);
    await ports.has(`${name}-udp`, ['ListenerSet', 'UDPRoute']);
  };
  await askBoth('seen', 9100);
  await cluster.delete(ports.place('seen-tcp', tcpRoutes));
  await ports.has('seen-tcp', ['ListenerSet', 'TCPRoute']);
  await walk.unseen([listenerSets, tcpRoutes, udpRoutes], () => askBoth('unseen', 9101));
  for (const name of ['seen-tcp', 'seen-udp']) {
    await cluster.merge(ports.place(name), { spec: { upstream: { service: 'none' } } });
    await ports.has(name, []);
  }

  const but = ['update streamingresses/finalizers.nginx-stream.jeffthecoder.xyz'];
  await walk.usedAll(streamIngress, { args, but });
});

async function replace(cluster: Cluster, place: Place): Promise<void> {
  const { apiVersion, kind, metadata, ...rest } = await cluster.get<AnyObject & { data?: object }>(place);
  const { name, namespace } = metadata;
  await cluster.delete(place);
  const spec = rest.spec && { selector: { app: 'nginx' }, ports: [{ name: 'http', port: 80 }] };
  await cluster.create(place.type, {
    ...{ apiVersion, kind, metadata: { name, ...(namespace !== undefined && { namespace }) } },
    ...(spec ? { spec } : {}),
  });
}

test('JobWatcher uses every right that it is given, and needs no other', async () => {
  await using walk = await Walk.prepare(jobWatcher);
  const { cluster, namespace, proxy } = walk;
  const jobs = new Jobs(cluster, namespace);
  await walk.start(jobWatcher);

  await jobs.watch('one', { completedTTL: '0s' });
  await jobs.finished('one-a');
  const { lastStarted } = await jobs.told('one', { lastRun: { deleted: 1 } });
  // Runs are told apart by the second in which they start.
  await eventually(() => {
    expect(Date.now()).toBeGreaterThan(Date.parse(lastStarted!) + 2_000);
  });
  await jobs.finished('one-b');
  await walk.toldTwice('one', 'Deleted');

  // It has changed, and no watch tells so.
  await jobs.finished('changed-a');
  await jobs.watch('changed', { completedTTL: '10h' });
  await jobs.told('changed', { lastRun: { matched: 1 } });
  const rule = proxy.onEvents(watches('jobs'), losing('changed-a'));
  await jobs.edit('changed-a', { metadata: { annotations: { 'example.com/seen': 'no' } } });
  await jobs.adjust('changed', { completedTTL: '0s' });
  await jobs.left('changed-', []);
  rule.remove();

  // It is gone, and no watch tells so.
  await jobs.watch('gone', { completedTTL: '0s' });
  await jobs.condition('gone', { type: 'Ready', status: 'True' });
  proxy.onEvents(watches('jobwatchers'), losing('gone'));
  await cluster.delete(jobs.watcherPlace('gone'));
  await jobs.finished('gone-a');
  await jobs.left('gone-', []);

  await walk.usedAll(jobWatcher);
});
