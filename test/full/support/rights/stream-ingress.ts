import { writeFile } from 'node:fs/promises';
import { expect } from 'vitest';
import { streamIngress as kind } from '../../../../src/kinds/stream-ingress/kind.js';
import { losing } from '../../../scenarios/support/faults.js';
import { watches } from '../../../scenarios/support/proxied-request.js';
import type { Cluster, Place } from '../cluster.js';
import { eventually } from '../eventually.js';
import { listenerSets, tcpRoutes, udpRoutes } from '../gateway-api.js';
import { GatewayPorts, makeService } from '../gateway-ports.js';
import { namespaceType, Proxy } from '../stream-proxy.js';
import type { Ask } from '../stream-proxy.js';
import type { Walk, WalkedKind } from './walk.js';

const dns = { protocol: 'UDP', upstream: { service: 'dns', port: 53 } } as const satisfies Omit<
  Ask,
  'listen'
>;

/** Opens TCP and UDP ports of an ingress-nginx and of a Gateway, whoever changes what behind its back. */
export const streamIngressWalk: WalkedKind = {
  ...{ kind, surroundings, byAdmission: ['update streamingresses/finalizers.nginx-stream.jeffthecoder.xyz'] },
  steps: async (walk) => {
    await throughNginx(walk);
    await throughGateway(walk);
  },
};

function proxyOf({ cluster, namespace, user }: Walk): Proxy {
  return new Proxy(cluster, user, 'nginx', `${namespace}-ingress`);
}

async function surroundings(walk: Walk): Promise<readonly string[]> {
  const { cluster, namespace } = walk;
  const proxy = proxyOf(walk);
  await proxy.put({ type: namespaceType, name: proxy.namespace }, {}, 'test');
  await proxy.makeService();
  await makeService(cluster, { namespace, name: 'db' }, 5432);
  await makeService(cluster, { namespace, name: 'dns' }, 53, 'UDP');
  const nginx = { name: 'nginx', ingressNamespace: proxy.namespace, ingressController: 'Deployment/nginx' };
  const edge = { name: 'edge', kind: 'Gateway', gateway: 'gateways/edge' };
  const file = `${cluster.sandbox.dir}/${namespace}.policy`;
  await writeFile(file, JSON.stringify({ streamingress: { targets: [nginx, edge] } }));
  return ['--policy', file];
}

async function throughNginx(walk: Walk): Promise<void> {
  const { cluster, namespace } = walk;
  const proxy = proxyOf(walk);
  const open = async (listen: number): Promise<void> => {
    await proxy.ask(namespace, `tcp-${listen}`, { listen });
    await proxy.ask(namespace, `udp-${listen}`, { ...dns, listen });
    await eventually(async () => {
      expect(await proxy.entries(proxy.tcp)).toHaveProperty(String(listen));
      expect(await proxy.entries(proxy.udp)).toHaveProperty(String(listen));
      expect((await proxy.ports()).filter((port) => port.includes(`${listen}/`))).toHaveLength(2);
    });
  };
  await open(9000);
  const edited = await proxy.ask(namespace, 'edited', { listen: 9005 });
  for (const [of, ResolvedRefs] of [
    ['elsewhere', 'False RefNotPermitted'],
    [null, 'True ResolvedRefs'],
    ['elsewhere', 'False RefNotPermitted'],
  ] as const) {
    await cluster.merge(edited.place, { spec: { upstream: { namespace: of } } });
    await edited.is({ ResolvedRefs });
  }
  await walk.toldTwice('edited', 'RefNotPermitted');

  // Others come in their place, of which no watch tells.
  for (const place of [proxy.tcp, proxy.udp, proxy.service]) {
    walk.proxy.onEvents(watches(place.type.plural), losing(place.name));
    await replace(cluster, place);
  }
  await open(9001);
}

/** Another object of the name, without the ports of ours. */
async function replace(cluster: Cluster, place: Place): Promise<void> {
  const { type, namespace = '', name } = place;
  await cluster.delete(place);
  const { apiVersion, kind: of } = type;
  const spec = { selector: { app: 'nginx' }, ports: [{ name: 'http', port: 80 }] };
  const content = of === 'Service' ? { spec } : {};
  await cluster.create(type, { apiVersion, kind: of, metadata: { namespace, name }, ...content });
}

async function throughGateway(walk: Walk): Promise<void> {
  const { cluster, namespace } = walk;
  const ports = new GatewayPorts(cluster, namespace);
  const open = async (name: string, listen: number): Promise<void> => {
    await ports.ask(`${name}-tcp`, { listen, className: 'edge' });
    await ports.ask(`${name}-udp`, { ...dns, listen, className: 'edge' });
    await ports.has(`${name}-tcp`, ['ListenerSet', 'TCPRoute']);
    await ports.has(`${name}-udp`, ['ListenerSet', 'UDPRoute']);
  };
  await open('seen', 9100);
  await cluster.delete(ports.place('seen-tcp', tcpRoutes));
  await ports.has('seen-tcp', ['ListenerSet', 'TCPRoute']);
  await walk.unseen([listenerSets, tcpRoutes, udpRoutes], () => open('unseen', 9101));
  // Not permitted there, which closes what is open.
  for (const name of ['seen-tcp', 'seen-udp']) {
    await cluster.merge(ports.place(name), { spec: { upstream: { namespace: 'default' } } });
    await ports.has(name, []);
  }
}
