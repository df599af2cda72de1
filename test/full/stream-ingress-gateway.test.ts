import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { streamIngress as kind } from '../../src/kinds/stream-ingress/kind.js';
import type { StreamIngressPolicy } from '../../src/kinds/stream-ingress/targets.js';
import { collection, eventually, installCrd, services } from '../support/cluster.js';
import { reconstruct } from '../support/commands.js';
import { watches } from '../support/faults.js';
import {
  GatewayPorts,
  installGatewayApi,
  listenerSets,
  OPEN,
  referenceGrants,
  streamTypes,
  tcpRoutes,
  udpRoutes,
} from '../support/gateway.js';
import type { Verdict } from '../support/gateway.js';
import { startController } from '../support/operator.js';
import type { LogLine, RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { sceneryFor, Stage } from '../support/stages.js';
import { makeUpstream } from '../support/streams.js';
import type { Words } from '../support/streams.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
const folder = mkdtempSync(join(tmpdir(), 'gateway-'));
const user = 'operator-44';
let shop: GatewayPorts;
let infra: string;
let policy: StreamIngressPolicy;
let controller: RunningController;

function start(user: string, namespaces: readonly string[], section: StreamIngressPolicy) {
  const file = join(folder, `${user}.yaml`);
  writeFileSync(file, JSON.stringify({ streamingress: section }));
  return startController({ cluster, user, kinds: [kind], namespaces, args: ['--policy', file] });
}

const startMain = (): Promise<RunningController> => start(user, [shop.namespace, infra], policy);

/** Makes the namespace of another operator, with the upstream `db`. */
async function newPorts(purpose: string): Promise<GatewayPorts> {
  const namespace = await cluster.makeNamespace(purpose);
  await makeUpstream(cluster, namespace);
  return new GatewayPorts(cluster, namespace);
}

beforeAll(async () => {
  await installCrd(cluster, kind);
  shop = await newPorts('gateway-shop');
  infra = await cluster.makeNamespace('gateway-infra');
  policy = {
    defaultClass: 'edge',
    targets: [
      { name: 'edge', kind: 'Gateway', gateway: 'gateways/edge' },
      { name: 'internal', kind: 'Gateway', gateway: 'gateways/internal', namespaces: [infra] },
    ],
  };
  const dns = { port: { name: 'dns', port: 53, protocol: 'UDP' } };
  await makeUpstream(cluster, shop.namespace, 'dns', dns);
  await makeUpstream(cluster, infra, 'broker', { port: { port: 5672 } });
  controller = await startMain();
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** A kind that isn't there is looked for every half minute, by the garbage collector too. */
const slow = { deadlineMilliseconds: 60_000 };

/** Asks for a port, and waits until the Gateway has opened it. */
async function opened(name: string, spec: object, ports = shop): Promise<void> {
  await ports.ask(name, spec);
  await ports.say(name, OPEN);
  await ports.told(name, { Ready: 'True Programmed' });
}

test('rule 11: where the Gateway API isn’t installed a port is stalled, and opened by itself once it is', async () => {
  await shop.ask('early', { listen: 9000 });
  await shop.told('early', { Stalled: 'True KindNotInstalled', Programmed: 'False KindNotInstalled' });

  await installGatewayApi(cluster, streamTypes);

  await eventually(async () => {
    expect(Object.keys(await shop.children('early'))).toEqual(['ListenerSet', 'TCPRoute']);
  }, slow);
  await shop.told('early', { Stalled: 'False Pending', Programmed: 'Unknown Pending' });
  await shop.say('early', OPEN);
  await shop.told('early', { Ready: 'True Programmed' });
  // What comes next needs all of them.
  for (const { plural } of streamTypes)
    for (const watchNamespace of [shop.namespace, infra]) {
      const isOf = (line: LogLine): boolean =>
        line.resource === plural && line.watchNamespace === watchNamespace;
      // Another test may have installed it before.
      if (controller.log.some((line) => isOf(line) && line.msg.startsWith('The kind is not')))
        await controller.logged((line) => isOf(line) && line.msg === 'the kind is served now');
    }
});

/** Returns the spec of a child. */
function specOf(children: Readonly<Record<string, AnyObject>>, of: string): unknown {
  return children[of]?.spec;
}

describe('rule 11: children', () => {
  test('are one ListenerSet and one route by the protocol, which the StreamIngress owns, and which go with it', async () => {
    await shop.ask('dns', { protocol: 'UDP', listen: 9001, upstream: { service: 'dns', port: 'dns' } });

    const children = await shop.has('dns', 'ListenerSet', 'UDPRoute');

    const group = 'gateway.networking.k8s.io';
    expect(specOf(children, 'ListenerSet')).toMatchObject({
      parentRef: { group, kind: 'Gateway', namespace: 'gateways', name: 'edge' },
      listeners: [{ name: 'udp-9001', port: 9001, protocol: 'UDP' }],
    });
    expect(specOf(children, 'UDPRoute')).toMatchObject({
      parentRefs: [{ group, kind: 'ListenerSet', name: 'dns', sectionName: 'udp-9001' }],
      rules: [{ backendRefs: [{ name: 'dns', port: 53 }] }],
    });
    for (const { metadata } of Object.values(children))
      expect(metadata).toMatchObject({
        name: 'dns',
        ownerReferences: [{ kind: kind.type.kind, name: 'dns' }],
      });
    await shop.say('dns', OPEN, udpRoutes);
    await shop.told('dns', { Ready: 'True Programmed' });

    await cluster.delete(shop.place('dns'));
    await eventually(async () => {
      expect(await cluster.find(shop.place('dns', listenerSets))).toBeUndefined();
      expect(await cluster.find(shop.place('dns', udpRoutes))).toBeUndefined();
    }, slow);
  });

  test('are corrected when others edit them, created again when they are deleted, and follow the upstream', async () => {
    await makeUpstream(cluster, shop.namespace, 'other', { port: { port: 7000 } });
    await shop.ask('kept', { listen: 9002 });
    const { TCPRoute: first } = await shop.has('kept', 'ListenerSet', 'TCPRoute');

    const listeners = [{ name: 'tcp-9002', port: 1, protocol: 'UDP' }];
    await cluster.merge(shop.place('kept', listenerSets), { spec: { listeners } });
    await cluster.delete(shop.place('kept', tcpRoutes));

    await eventually(async () => {
      const children = await shop.children('kept');
      expect(specOf(children, 'ListenerSet')).toMatchObject({
        listeners: [{ name: 'tcp-9002', port: 9002, protocol: 'TCP' }],
      });
      expect(children.TCPRoute?.metadata.uid).toEqual(expect.not.stringMatching(first!.metadata.uid!));
    });
    await shop.lead('kept', { service: 'other', port: 7000 });
    await eventually(async () => {
      expect(specOf(await shop.children('kept'), 'TCPRoute')).toMatchObject({
        rules: [{ backendRefs: [{ name: 'other', port: 7000 }] }],
      });
    });
  });

  test('that belong to others are left alone, and stall the StreamIngress of their name', async () => {
    const foreign = {
      ...{ apiVersion: tcpRoutes.apiVersion, kind: 'TCPRoute' },
      metadata: { namespace: shop.namespace, name: 'foreign' },
      spec: { rules: [{ backendRefs: [{ name: 'theirs', port: 1 }] }] },
    };
    const before = await cluster.create(tcpRoutes, foreign);

    await shop.ask('foreign', { listen: 9003 });

    await shop.told('foreign', { Stalled: 'True OwnershipConflict', Programmed: 'False OwnershipConflict' });
    expect(await cluster.get(shop.place('foreign', tcpRoutes))).toEqual(before);
    await cluster.delete(shop.place('foreign', tcpRoutes));
    await shop.has('foreign', 'ListenerSet', 'TCPRoute');
  });

  test('are made once the upstream is there, and stay when it goes', async () => {
    await shop.ask('waiting', { listen: 9004, upstream: { service: 'late', port: 1 } });
    await shop.told('waiting', { ResolvedRefs: 'False ServiceNotFound', Programmed: 'Unknown Pending' });
    expect(await shop.children('waiting')).toEqual({});

    await makeUpstream(cluster, shop.namespace, 'late', { port: { port: 1 } });
    await shop.say('waiting', OPEN);
    await shop.told('waiting', { Ready: 'True Programmed' });

    await cluster.delete({ type: services, namespace: shop.namespace, name: 'late' });
    await shop.told('waiting', { Ready: 'False ServiceNotFound', Programmed: 'True Programmed' });
    await shop.has('waiting', 'ListenerSet', 'TCPRoute');
  });
});

test('a listener stays open while the watch of Services is behind one that was made a moment ago, and the route moves', async () => {
  const scenery = await sceneryFor({ purpose: 'gateway-behind' });
  await using stage = new Stage(scenery);
  const { namespace, proxy } = stage;
  const ports = new GatewayPorts(stage.cluster, namespace);
  await makeUpstream(stage.cluster, namespace);
  const file = join(folder, 'behind.yaml');
  const target = { name: 'edge', kind: 'Gateway', gateway: 'gateways/edge' };
  writeFileSync(file, JSON.stringify({ streamingress: { defaultClass: 'edge', targets: [target] } }));
  await stage.run({ kinds: [kind], namespaces: [namespace], args: ['--policy', file] });
  await opened('edited', { listen: 9005 }, ports);
  const { ListenerSet: before } = await ports.has('edited', 'ListenerSet', 'TCPRoute');

  const behind = proxy.onEvents(watches('services'), () => 'swallow');
  await makeUpstream(stage.cluster, namespace, 'next');
  await ports.lead('edited', { service: 'next' });
  await ports.told('edited', { Ready: 'False ServiceNotFound', Programmed: 'Unknown Pending' });
  expect(behind.hits).toBeGreaterThan(0);
  behind.remove();
  // It goes on from the version that it has seen.
  expect(proxy.cut(watches('services'))).toBeGreaterThan(0);

  await ports.say('edited', OPEN);
  await ports.told('edited', { Ready: 'True Programmed' });
  const { ListenerSet: after, TCPRoute: route } = await ports.has('edited', 'ListenerSet', 'TCPRoute');
  expect(route?.spec).toMatchObject({ rules: [{ backendRefs: [{ name: 'next', port: 5432 }] }] });
  // Deleted and created again, it would be another one.
  expect(after!.metadata).toMatchObject({ uid: before!.metadata.uid, generation: 1 });
});

describe('rules 8 and 11: what the Gateway says', () => {
  const changes: readonly (readonly [string, Verdict, Words])[] = [
    ['nothing', {}, { Ready: 'Unknown Pending', Stalled: 'False Pending', Programmed: 'Unknown Pending' }],
    [
      'that it takes no ListenerSets of the namespace, as it does by default',
      { set: { Accepted: 'False NotAllowed', Programmed: 'False NotAllowed' } },
      { Ready: 'False NotAllowed', Stalled: 'True NotAllowed', Programmed: 'False NotAllowed' },
    ],
    [
      'that another has the port',
      {
        set: { Accepted: 'False ListenersNotValid', Programmed: 'False ListenersNotValid' },
        listener: {
          Accepted: 'True Accepted',
          Conflicted: 'True ProtocolConflict',
          Programmed: 'False Invalid',
        },
        route: { Accepted: 'False NoMatchingParent' },
      },
      { Stalled: 'True ProtocolConflict', Programmed: 'False ProtocolConflict' },
    ],
    [
      'that it is at work',
      { ...OPEN, set: { Accepted: 'True Accepted', Programmed: 'False ParentNotProgrammed' } },
      { Ready: 'False ParentNotProgrammed', Stalled: 'False ParentNotProgrammed' },
    ],
    [
      'that the route may not use the listener',
      { ...OPEN, route: { Accepted: 'False NotAllowedByListeners' } },
      { Stalled: 'True NotAllowedByListeners', Programmed: 'False NotAllowedByListeners' },
    ],
    [
      'that the Service is another namespace’s',
      { ...OPEN, route: { Accepted: 'True Accepted', ResolvedRefs: 'False RefNotPermitted' } },
      {
        Stalled: 'True RefNotPermitted',
        ResolvedRefs: 'False RefNotPermitted',
        Programmed: 'True Programmed',
      },
    ],
    [
      'that all is well',
      OPEN,
      { Ready: 'True Programmed', ResolvedRefs: 'True ResolvedRefs', Programmed: 'True Programmed' },
    ],
  ];

  test('is mirrored, with its own reasons', async () => {
    await shop.ask('mirror', { listen: 9010 });
    for (const [what, verdict, words] of changes) {
      await shop.say('mirror', verdict);
      await eventually(async () => {
        expect(await shop.words('mirror'), what).toMatchObject(words);
      });
    }
  });

  test('counts for the present generation alone', async () => {
    await shop.ask('stale', { listen: 9011 });
    await shop.say('stale', OPEN);
    await shop.told('stale', { Ready: 'True Programmed' });

    await makeUpstream(cluster, shop.namespace, 'newer', { port: { port: 7001 } });
    await shop.lead('stale', { service: 'newer', port: 7001 });

    await shop.told('stale', { Ready: 'Unknown Pending', Programmed: 'Unknown Pending' });
    await shop.say('stale', OPEN);
    await shop.told('stale', { Ready: 'True Programmed' });
  });
});

test('rule 11: a target serves the namespaces that the admin names, and nothing is made for others', async () => {
  await shop.ask('outside', { listen: 9020, className: 'internal' });
  await shop.told('outside', {
    Stalled: 'True NamespaceNotPermitted',
    Accepted: 'False NamespaceNotPermitted',
  });

  expect(await shop.children('outside')).toEqual({});
});

test('rules 2, 4 and 11: of two that ask for one port the older has it and the other nothing, until the older is gone', async () => {
  await shop.ask('z-older', { listen: 9030 });
  const { metadata } = await cluster.get(shop.place('z-older'));
  // Times are whole seconds: of one of the same second, the name would decide.
  await eventually(() => {
    expect(Date.now()).toBeGreaterThan(Date.parse(metadata.creationTimestamp!) + 1_000);
  });
  await shop.ask('a-younger', { listen: 9030 });
  await shop.ask('udp', { listen: 9030, protocol: 'UDP', upstream: { service: 'dns', port: 53 } });

  await shop.told('a-younger', { Stalled: 'True PortConflict', Accepted: 'False PortConflict' });
  await shop.has('z-older', 'ListenerSet', 'TCPRoute');
  await shop.has('udp', 'ListenerSet', 'UDPRoute');
  expect(await shop.children('a-younger')).toEqual({});

  await cluster.delete(shop.place('z-older'));
  await shop.has('a-younger', 'ListenerSet', 'TCPRoute');
  await shop.told('a-younger', { Accepted: 'True Accepted' });
});

test('rules 6 and 11: a grant that is revoked takes ListenerSet and route away, also while another port can’t be opened', async () => {
  await shop.ask('granted', { listen: 9040, upstream: { namespace: infra, service: 'broker', port: 5672 } });
  await shop.told('granted', { Stalled: 'True RefNotPermitted', ResolvedRefs: 'False RefNotPermitted' });
  expect(await shop.children('granted')).toEqual({});

  const grant = { type: referenceGrants, namespace: infra, name: 'shop' };
  await cluster.create(referenceGrants, {
    ...{ apiVersion: referenceGrants.apiVersion, kind: 'ReferenceGrant' },
    metadata: { namespace: infra, name: 'shop' },
    spec: {
      from: [{ group: kind.crd.spec.group, kind: kind.type.kind, namespace: shop.namespace }],
      to: [{ group: '', kind: 'Service', name: 'broker' }],
    },
  });
  const children = await shop.has('granted', 'ListenerSet', 'TCPRoute');
  expect(specOf(children, 'TCPRoute')).toMatchObject({
    rules: [{ backendRefs: [{ namespace: infra, name: 'broker', port: 5672 }] }],
  });
  await shop.say('granted', OPEN);
  await shop.told('granted', { Ready: 'True Programmed' });

  await cluster.create(tcpRoutes, {
    ...{ apiVersion: tcpRoutes.apiVersion, kind: 'TCPRoute' },
    metadata: { namespace: shop.namespace, name: 'failing' },
    spec: { rules: [{ backendRefs: [{ name: 'theirs', port: 1 }] }] },
  });
  await shop.ask('failing', { listen: 9041 });
  await shop.told('failing', { Stalled: 'True OwnershipConflict' });
  await settled(cluster, user);
  const failing = await cluster.get(shop.place('failing'));
  await cluster.delete(grant);

  await eventually(async () => {
    expect(await shop.children('granted')).toEqual({});
  });
  await shop.told('granted', { Stalled: 'True RefNotPermitted', Programmed: 'Unknown Pending' });
  // Its status was never something else meanwhile.
  await settled(cluster, user);
  expect(await cluster.get(shop.place('failing'))).toEqual(failing);
});

test('rule 11: steady state sends no requests, also after a restart', async () => {
  await opened('settled', { listen: 9050 });
  await settled(cluster, user);

  await controller.stop();
  const requests = await requestsFromNowOn(cluster, user);
  controller = await startMain();
  await controller.reconciled('edge');
  await settled(cluster, user);

  expect(writes(await requests()).map(summary)).toEqual([]);
});

/** What `synth` prints for a port of each protocol. */
async function rendered(section: StreamIngressPolicy): Promise<AnyObject[]> {
  const policyFile = join(folder, 'synth-policy.yaml');
  const source = join(folder, 'ports.yaml');
  const { apiVersion, kind: of } = kind.type;
  const port = (name: string, spec: object): object => ({
    ...{ apiVersion, kind: of, metadata: { namespace: shop.namespace, name }, spec },
  });
  const ports = [
    port('synth-tcp', { listen: 1, upstream: { service: 'db', port: 5432 } }),
    port('synth-udp', { listen: 65_535, protocol: 'UDP', upstream: { service: 'dns', port: 53 } }),
    port('s'.repeat(63), { listen: 2, upstream: { namespace: infra, service: 'broker', port: 5672 } }),
  ];
  writeFileSync(policyFile, JSON.stringify({ streamingress: section }));
  writeFileSync(source, ports.map((each) => JSON.stringify(each)).join('\n---\n'));
  const printed = await reconstruct('synth', '--policy', policyFile, source);
  return parseAllDocuments(printed).map((document) => document.toJS() as AnyObject);
}

test.for(['v1', 'v1alpha2'] as const)(
  'the API server takes what synth prints, with routes in the version %s',
  async (routeVersion) => {
    // Only there is the older version served too.
    if (routeVersion === 'v1alpha2') await installGatewayApi(cluster, [tcpRoutes, udpRoutes], 'experimental');
    const objects = await rendered({ ...policy, routeVersion });

    expect(objects.map(({ kind: of }) => of).sort()).toEqual([
      ...['ListenerSet', 'ListenerSet', 'ListenerSet', 'TCPRoute', 'TCPRoute', 'UDPRoute'],
    ]);
    const answers = await Promise.all(
      objects.map(async (object) => {
        const path = collection(resourceType(object), shop.namespace);
        const query = { dryRun: 'All', fieldValidation: 'Strict' };
        const { status, body } = await cluster.send('POST', path, { body: object, query });
        return [object.apiVersion, status, body.message];
      }),
    );
    const group = 'gateway.networking.k8s.io';
    expect(answers).toEqual(
      objects.map(({ kind: of }) => [
        `${group}/${of === 'ListenerSet' ? 'v1' : routeVersion}`,
        201,
        undefined,
      ]),
    );
  },
);

test('rule 11: routes move to another version as they are', async () => {
  await installGatewayApi(cluster, [tcpRoutes, udpRoutes], 'experimental');
  const ports = await newPorts('gateway-version');
  const run = (routeVersion: 'v1' | 'v1alpha2'): Promise<RunningController> =>
    start('operator-45', [ports.namespace], { ...policy, routeVersion });
  const older = await run('v1alpha2');
  await opened('moves', { listen: 9000 }, ports);
  const before = await ports.children('moves');
  await older.stop();

  await using newer = await run('v1');
  await newer.reconciled('edge');
  await settled(cluster, 'operator-45');

  const after = await ports.children('moves');
  const identity = (object?: AnyObject): unknown[] => [object?.metadata.uid, object?.metadata.generation];
  expect(identity(after.TCPRoute)).toEqual(identity(before.TCPRoute));
  expect(await ports.words('moves')).toMatchObject({ Ready: 'True Programmed' });
});

test('rule 11: a class that is no Gateway any more loses its ListenerSets and routes', async () => {
  const ports = await newPorts('gateway-class');
  const run = (...classes: readonly string[]): Promise<RunningController> => {
    const targets = classes.map((name) => ({ name, kind: 'Gateway' as const, gateway: `gateways/${name}` }));
    return start('operator-55', [ports.namespace], { targets });
  };
  const before = await run('stays', 'goes');
  await ports.ask('one', { listen: 9000, className: 'stays' });
  await ports.ask('two', { listen: 9000, className: 'goes' });
  await ports.has('one', 'ListenerSet', 'TCPRoute');
  await ports.has('two', 'ListenerSet', 'TCPRoute');
  await before.stop();

  await using after = await run('stays');
  await after.reconciled('goes');
  await ports.told('two', { Stalled: 'True ClassNotFound' });

  await ports.has('two');
  await ports.has('one', 'ListenerSet', 'TCPRoute');
});
