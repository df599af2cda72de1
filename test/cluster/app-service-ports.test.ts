import type { V1Service } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import type { AppServiceSpec } from '../../src/kinds/app-service/spec.js';
import type { Wire } from '../../src/kinds/app-service/wire.js';
import { Cluster, services } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { exposedPorts } from './support/exposed-ports.js';
import type { ExposedPort } from './support/exposed-ports.js';
import { requestsFromNowOn, summary, writes } from './support/requests.js';
import { settled } from './support/settled.js';
import { Subject } from './support/subject.js';

type Service = Wire<V1Service>;
type Port = NonNullable<AppServiceSpec['ports']>[number];

const user = 'operator-28';
const image = 'example.com/web:1';
const cluster = new Cluster(openSandbox(inject('sandbox')));
let apps: Subject;
let controller: RunningController;

beforeAll(async () => {
  await installCrd(cluster, appService);
  apps = new Subject(cluster, appService, await cluster.makeNamespace('ports'));
  controller = await startController({ cluster, user, kinds: [appService], namespaces: [apps.namespace] });
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

const exposed = (name: string) => exposedPorts(apps, name);
const withPorts = (...ports: readonly Port[]): object => ({ size: 0, image, ports });

const http = { name: 'http', port: 80 };
const admin = { name: 'admin', port: 9000 };
const dns = { name: 'dns', port: 53 };

/** `keeps` says which port has the node port of which one before, by their names; any other has a new one. */
const edits: readonly {
  readonly title: string;
  readonly from: readonly Port[];
  readonly to: readonly Port[];
  readonly keeps: Readonly<Record<string, string>>;
}[] = [
  {
    title: 'is renumbered under its name',
    from: [http, admin],
    to: [{ ...http, port: 8080 }, admin],
    keeps: { http: 'http', admin: 'admin' },
  },
  {
    title: 'swaps its number with another',
    from: [http, admin],
    to: [
      { name: 'http', port: 9000 },
      { name: 'admin', port: 80 },
    ],
    // By number, since that is what names an item of the list.
    keeps: { http: 'admin', admin: 'http' },
  },
  { title: 'is renamed', from: [http], to: [{ name: 'web', port: 80 }], keeps: { web: 'http' } },
  {
    title: 'is renamed and renumbered',
    from: [http],
    to: [{ name: 'web', port: 81 }],
    keeps: {},
  },
  { title: 'gets a name beside a second one', from: [{ port: 80 }], to: [http, admin], keeps: { http: '' } },
  {
    title: 'gets a twin of another protocol',
    from: [dns],
    to: [dns, { name: 'dns-udp', port: 53, protocol: 'UDP' }],
    keeps: { dns: 'dns' },
  },
  {
    title: 'gets its twin in front, which takes its name',
    from: [dns],
    to: [
      { name: 'dns', port: 53, protocol: 'UDP' },
      { name: 'dns-tcp', port: 53 },
    ],
    keeps: { 'dns-tcp': 'dns' },
  },
  {
    title: 'changes its protocol',
    from: [http, dns],
    to: [http, { ...dns, protocol: 'UDP' }],
    keeps: { http: 'http', dns: 'dns' },
  },
  { title: 'goes', from: [http, admin], to: [admin], keeps: { admin: 'admin' } },
  {
    title: 'changes its place',
    from: [http, admin],
    to: [admin, http],
    keeps: { http: 'http', admin: 'admin' },
  },
];

describe('a port that', () => {
  test.for(edits.map((edit, index) => ({ ...edit, name: `edit-${index}` })))(
    '$title leaves the Service with what it says, and the node ports that the API server keeps',
    async ({ name, from, to, keeps }) => {
      await apps.create(name, withPorts(...from));
      const before = await exposed(name);
      const nodePortOf = (ports: readonly ExposedPort[], wanted: string): number | undefined =>
        ports.find((port) => (port.name ?? '') === wanted)?.nodePort;

      await apps.edit(name, withPorts(...to));
      const after = await exposed(name);

      const asked = to.map(({ name, port, protocol = 'TCP' }) => `${name} ${port} ${protocol}`);
      expect(after.map(({ name, port, protocol }) => `${name} ${port} ${protocol}`).sort()).toEqual(
        asked.sort(),
      );
      const kept = after.flatMap(({ name, nodePort }) => {
        const old = before.find((port) => port.nodePort === nodePort);
        return old ? [[name, old.name ?? '']] : [];
      });
      expect(Object.fromEntries(kept)).toEqual(keeps);
      for (const { name } of to) expect(nodePortOf(after, name ?? '')).toBeGreaterThan(0);
      await apps.ready(name);
    },
  );
});

describe('a node port that the custom resource', () => {
  // Below those that the API server chooses from, and named by no other test.
  const [first, second] = [30_061, 30_062];

  test('gives, changes and gives up again is had, changed and kept', async () => {
    await apps.create('given', withPorts(http));
    expect((await exposed('given'))[0]!.nodePort).not.toBe(first);

    for (const nodePort of [first, second]) {
      await apps.edit('given', withPorts({ ...http, nodePort }));
      expect(await exposed('given')).toMatchObject([{ name: 'http', nodePort }]);
    }
    for (const ports of [[http], [http, admin], [{ ...http, port: 8080 }]]) {
      await apps.edit('given', withPorts(...ports));
      expect((await exposed('given')).find(({ name }) => name === 'http')!.nodePort).toBe(second);
    }
    await apps.ready('given');
  });

  test('swaps between two ports are swapped', async () => {
    const [from, to] = [30_063, 30_064];
    await apps.create('swapped', withPorts({ ...http, nodePort: from }, { ...admin, nodePort: to }));
    await exposed('swapped');

    await apps.edit('swapped', withPorts({ ...http, nodePort: to }, { ...admin, nodePort: from }));

    expect(await exposed('swapped')).toMatchObject([
      { name: 'http', nodePort: to },
      { name: 'admin', nodePort: from },
    ]);
    await apps.ready('swapped');
  });

  test('gives and somebody else has stalls without a loop, changes nothing, and is had once it is free', async () => {
    // GIVEN
    const holder = { type: services, namespace: apps.namespace, name: 'holder' };
    const { spec } = (await cluster.create(services, {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: holder.name, namespace: holder.namespace } },
      spec: { type: 'NodePort', ports: [{ port: 80 }] },
    })) as unknown as Service;
    const nodePort = spec!.ports![0]!.nodePort!;
    await apps.create('blocked', withPorts(http));
    const [before] = await exposed('blocked');
    await settled(cluster, user);
    const requests = await requestsFromNowOn(cluster, user);
    const sent = async (): Promise<string[]> =>
      writes(await requests())
        .map(summary)
        .filter((line) => line.startsWith('patch services'));

    // WHEN
    await apps.edit('blocked', withPorts({ ...http, nodePort }));

    // THEN
    const wanted = { reason: 'NodePortConflict' };
    const { message } = await apps.condition('blocked', { type: 'Stalled', status: 'True', ...wanted });
    await apps.condition('blocked', { type: 'Ready', status: 'False', ...wanted });
    await apps.condition('blocked', { type: 'Reconciling', status: 'False', ...wanted });
    expect(message).toContain(String(nodePort));
    expect((await apps.get('blocked')).status?.ports).toEqual([before]);

    const from = controller.log.length;
    for (const touched of ['once', 'twice']) {
      await cluster.merge(holder, { metadata: { annotations: { 'example.com/touched': touched } } });
      await cluster.merge(apps.place('blocked'), {
        metadata: { annotations: { 'example.com/touched': touched } },
      });
    }
    await controller.logged((line) => line.msg === 'Reconciled' && line.name === 'blocked', from);
    await settled(cluster, user);
    expect(await sent()).toEqual([`patch services ${apps.namespace}/blocked 422`]);

    await cluster.delete(holder);
    expect(await exposed('blocked')).toMatchObject([{ name: 'http', nodePort }]);
    await apps.ready('blocked');
    // The API server tells that a Service has gone before it releases what it had.
    expect((await sent()).length).toBeLessThan(14);
    expect((await sent()).at(-1)).toBe(`patch services ${apps.namespace}/blocked 200`);
  });
});
