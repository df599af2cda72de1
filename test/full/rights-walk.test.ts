import { writeFile } from 'node:fs/promises';
import { beforeAll, expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import {
  deployments,
  eventually,
  installCrd,
  jobs as jobType,
  namespaceType,
  services,
} from '../support/cluster.js';
import { GatewayPorts, installGatewayApi, listenerSets, tcpRoutes, udpRoutes } from '../support/gateway.js';
import { Jobs } from '../support/jobs.js';
import { anyRoute } from '../support/operator.js';
import { Walk } from '../support/rights-walk.js';
import type { WalkedKind } from '../support/rights-walk.js';
import { IngressNginx, makeUpstream } from '../support/streams.js';
import { Subject } from '../support/subject.js';
import { ownControlPlane } from '../support/test-clusters.js';

/** No other test has custom resources in it, no API is left out, and nothing collects garbage before the controller does. */
const own = ownControlPlane({ apiOnly: true });

beforeAll(async () => {
  await installGatewayApi(own.cluster);
  await installCrd(own.cluster, appService, jobWatcher, streamIngress);
});

const plain = { size: 2, image: 'example.com/web:1', resources: { requests: { cpu: '100m' } } };
const everything = {
  ...{ ...plain, ports: [{ port: 80 }] },
  ...{ autoscaling: { minReplicas: 2, maxReplicas: 3, cpu: 50 }, disruption: {} },
  route: { parentRefs: [{ name: 'edge' }] },
};

/** Makes every child, corrects it, makes it again, drops it, and looks at what it can't see. */
const appServiceWalk: WalkedKind = {
  kind: appService,
  surroundings: () => Promise.resolve(anyRoute),
  byAdmission: ['update appservices/finalizers.kosmos.io'],
  steps: async (walk) => {
    const { cluster, namespace } = walk;
    const apps = new Subject(cluster, appService, namespace);
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
    await apps.edit('web', plain);
    await apps.asRendered('web');

    await walk.unseen(appService.children, async () => {
      await apps.create('unseen', everything);
      await apps.asRendered('unseen');
    });

    await cluster.create(deployments, leftover(namespace, 'left'));
    await apps.create('left', plain);
    await apps.asRendered('left');
  },
};

/** A Deployment that a namesake has left behind. */
function leftover(namespace: string, name: string): AnyObject {
  const { apiVersion, kind } = appService.type;
  const gone = { apiVersion, kind, name, uid: '00000000-0000-4000-8000-000000000000', controller: true };
  const labels = { app: 'old' };
  const containers = [{ name: 'web', image: 'example.com/old:1' }];
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: { name, namespace, ownerReferences: [gone] },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  };
}

/** Deletes Jobs, reports it, and finds out that a Job has changed and that a JobWatcher has gone. */
const jobWatcherWalk: WalkedKind = {
  ...{ kind: jobWatcher, surroundings: () => Promise.resolve([]), byAdmission: [] },
  steps: async (walk) => {
    const { cluster, namespace } = walk;
    const jobs = new Jobs(cluster, namespace);
    await jobs.watch('one', { completedTTL: '0s' });
    await jobs.finished('one-a');
    const { lastStarted } = await jobs.told('one', { lastRun: { deleted: 1 } });
    // Runs are distinguished by the second in which they start.
    await eventually(() => {
      expect(Date.now()).toBeGreaterThan(Date.parse(lastStarted!) + 2_000);
    });
    await jobs.finished('one-b');
    await walk.toldTwice('one', 'Deleted');

    await jobs.finished('changed-a');
    await jobs.watch('changed', { completedTTL: '10h' });
    await jobs.told('changed', { lastRun: { matched: 1 } });
    const heard = walk.losing(jobType, 'changed-a');
    await jobs.annotate('changed-a', { 'example.com/seen': 'no' });
    await jobs.adjust('changed', { completedTTL: '0s' });
    await jobs.left('changed-');
    heard();

    await jobs.watch('gone', { completedTTL: '0s' });
    await jobs.condition('gone', { type: 'Ready', status: 'True' });
    walk.losing(jobWatcher.type, 'gone');
    await cluster.delete(jobs.watcherPlace('gone'));
    await jobs.finished('gone-a');
    await jobs.left('gone-');
  },
};

const dns = { protocol: 'UDP', upstream: { service: 'dns', port: 53 } } as const;

function nginxOf({ cluster, namespace, user }: Walk): IngressNginx {
  return new IngressNginx(cluster, user, 'nginx', `${namespace}-ingress`);
}

/** Opens TCP and UDP ports of an ingress-nginx and of a Gateway, while others change them unseen. */
const streamIngressWalk: WalkedKind = {
  kind: streamIngress,
  byAdmission: ['update streamingresses/finalizers.nginx-stream.jeffthecoder.xyz'],
  surroundings: async (walk) => {
    const { cluster, namespace } = walk;
    const nginx = nginxOf(walk);
    await nginx.put({ type: namespaceType, name: nginx.namespace }, {}, 'test');
    await nginx.makeService();
    await makeUpstream(cluster, namespace);
    await makeUpstream(cluster, namespace, 'dns', { port: { port: 53, protocol: 'UDP' } });
    const ingress = { ingressNamespace: nginx.namespace, ingressController: 'Deployment/nginx' };
    const targets = [
      { name: 'nginx', ...ingress },
      { name: 'edge', kind: 'Gateway', gateway: 'gateways/edge' },
    ];
    const file = `${cluster.sandbox.dir}/${namespace}.policy`;
    await writeFile(file, JSON.stringify({ streamingress: { targets } }));
    return ['--policy', file];
  },
  steps: async (walk) => {
    await throughNginx(walk);
    await throughGateway(walk);
  },
};

async function throughNginx(walk: Walk): Promise<void> {
  const { cluster, namespace } = walk;
  const nginx = nginxOf(walk);
  const open = async (listen: number): Promise<void> => {
    await nginx.ask(namespace, `tcp-${listen}`, { listen });
    await nginx.ask(namespace, `udp-${listen}`, { ...dns, listen });
    await eventually(async () => {
      expect(await nginx.entries(nginx.tcp)).toHaveProperty(String(listen));
      expect(await nginx.entries(nginx.udp)).toHaveProperty(String(listen));
      expect((await nginx.ports()).filter((port) => port.includes(`${listen}/`))).toHaveLength(2);
    });
  };
  await open(9000);
  const edited = await nginx.ask(namespace, 'edited', { listen: 9005 });
  for (const [of, ResolvedRefs] of [
    ['elsewhere', 'False RefNotPermitted'],
    [null, 'True ResolvedRefs'],
    ['elsewhere', 'False RefNotPermitted'],
  ] as const) {
    await cluster.merge(edited.place, { spec: { upstream: { namespace: of } } });
    await edited.is({ ResolvedRefs });
  }
  await walk.toldTwice('edited', 'RefNotPermitted');

  // Others come in their place, which no watch reports.
  for (const place of [nginx.tcp, nginx.udp, nginx.service]) {
    const { type, namespace: ingress = '', name } = place;
    walk.losing(type, name);
    await cluster.delete(place);
    const spec = { selector: { app: 'nginx' }, ports: [{ name: 'http', port: 80 }] };
    await cluster.create(type, {
      ...{ apiVersion: type.apiVersion, kind: type.kind, metadata: { namespace: ingress, name } },
      ...(type === services && { spec }),
    });
  }
  await open(9001);
}

async function throughGateway(walk: Walk): Promise<void> {
  const { cluster, namespace } = walk;
  const ports = new GatewayPorts(cluster, namespace);
  const open = async (name: string, listen: number): Promise<void> => {
    await ports.ask(`${name}-tcp`, { listen, className: 'edge' });
    await ports.ask(`${name}-udp`, { ...dns, listen, className: 'edge' });
    await ports.has(`${name}-tcp`, 'ListenerSet', 'TCPRoute');
    await ports.has(`${name}-udp`, 'ListenerSet', 'UDPRoute');
  };
  await open('seen', 9100);
  await cluster.delete(ports.place('seen-tcp', tcpRoutes));
  await ports.has('seen-tcp', 'ListenerSet', 'TCPRoute');
  await walk.unseen([listenerSets, tcpRoutes, udpRoutes], () => open('unseen', 9101));
  // Not permitted there, which closes what is open.
  for (const name of ['seen-tcp', 'seen-udp']) {
    await ports.lead(name, { namespace: 'default' });
    await ports.has(name);
  }
}

const walks = [appServiceWalk, streamIngressWalk, jobWatcherWalk].flatMap((walked) => [
  [walked.kind.name, 'in the whole cluster', walked, false] as const,
  [walked.kind.name, 'by Roles alone', walked, true] as const,
]);

test.for(walks)(
  'every right that is installed is used, and none is missing: %s, %s',
  async ([, , walked, namespaced]) => {
    await using walk = await Walk.start(walked, own.sandbox, namespaced);
    expect(walk.rights.length).toBeGreaterThan(10);

    await walked.steps(walk);

    await walk.usedAll();
  },
);
