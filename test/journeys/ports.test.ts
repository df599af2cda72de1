import { beforeAll, describe, expect, test } from 'vitest';
import { appService } from '../../src/kinds/app-service/kind.js';
import { services } from '../support/cluster.js';
import { summary, writes } from '../support/requests.js';
import type { Subject } from '../support/subject.js';
import { exposedPorts } from './support/exposed-ports.js';
import type { ExposedPort } from './support/exposed-ports.js';
import { cluster, journey, logFromNowOn, operator } from './support/operator.js';
import { admin, http, portEdits } from './support/port-edits.js';
import type { Port } from './support/port-edits.js';

const image = 'example.com/web:1';
let apps: Subject;

beforeAll(async () => {
  apps = await journey(appService, 'ports');
});

const exposed = (name: string) => exposedPorts(apps, name);
const withPorts = (...ports: readonly Port[]): object => ({ size: 0, image, ports });

describe('a port that', () => {
  test.for(portEdits.map((edit, index) => ({ ...edit, name: `edit-${index}` })))(
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
  const [first, second] = [30_022, 30_023];

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
    const [from, to] = [30_024, 30_025];
    await apps.create('swapped', withPorts({ ...http, nodePort: from }, { ...admin, nodePort: to }));
    await exposed('swapped');

    await apps.edit('swapped', withPorts({ ...http, nodePort: to }, { ...admin, nodePort: from }));

    expect(await exposed('swapped')).toMatchObject([
      { name: 'http', nodePort: to },
      { name: 'admin', nodePort: from },
    ]);
    await apps.ready('swapped');
  });

  test('gives and another Service has stalls without a loop, changes nothing, and is allocated once it is free', async () => {
    // GIVEN
    const holder = { type: services, namespace: apps.namespace, name: 'holder' };
    // None that was given up a moment ago, as the API server may choose.
    const nodePort = 30_026;
    await cluster.create(services, {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: holder.name, namespace: holder.namespace } },
      spec: { type: 'NodePort', ports: [{ port: 80, nodePort }] },
    });
    await apps.create('blocked', withPorts(http));
    const [before] = await exposed('blocked');
    await operator.settled(apps.namespace);
    const requests = await operator.requestsFromNowOn(apps.namespace);
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

    const log = logFromNowOn();
    for (const touched of ['once', 'twice']) {
      await cluster.merge(holder, { metadata: { annotations: { 'example.com/touched': touched } } });
      await cluster.merge(apps.place('blocked'), {
        metadata: { annotations: { 'example.com/touched': touched } },
      });
    }
    await log.logged((line) => line.msg === 'reconciled' && line.name === 'blocked');
    await operator.settled(apps.namespace);
    expect(await sent()).toEqual([`patch services ${apps.namespace}/blocked 422`]);

    await cluster.delete(holder);
    expect(await exposed('blocked')).toMatchObject([{ name: 'http', nodePort }]);
    await apps.ready('blocked');
    // The API server tells that a Service has gone before it releases what it had.
    expect((await sent()).length).toBeLessThan(14);
    expect((await sent()).at(-1)).toBe(`patch services ${apps.namespace}/blocked 200`);
  });
});
