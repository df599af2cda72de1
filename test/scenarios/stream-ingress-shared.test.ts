import { expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { eventually } from '../support/cluster.js';
import { writesTo } from '../support/faults.js';
import { Recording } from '../support/requests.js';
import { IngressStage } from '../support/stages.js';
import { chartPorts } from '../support/streams.js';
import type { ChartPort } from '../support/streams.js';
import { appliedBy } from '../support/subject.js';

const foreign = { 7000: 'a/b:1' };

async function withOpenPorts(purpose: string): Promise<IngressStage> {
  const stage = await IngressStage.start(purpose);
  await stage.applyKeys(foreign, 'helm');
  for (const listen of [9000, 9001]) await stage.ask(listen);
  await eventually(() => stage.requireOpen([9000, 9001], foreign));
  await stage.atRest();
  return stage;
}

test.concurrent.for(['runs', 'is down'])(
  'a ConfigMap that others delete while the controller %s is created again with our entries alone',
  async (controller) => {
    const isDown = controller === 'is down';
    await using stage = await withOpenPorts('deleted-map');
    const { cluster } = stage;
    const { tcp } = stage.nginx;
    const { metadata: before } = await cluster.get(tcp);
    const shared = await stage.sharedWritesFromNowOn();

    if (isDown) await stage.controller.kill();
    await cluster.delete(tcp);
    if (isDown) await stage.startController();

    await eventually(() => stage.requireOpen([9000, 9001]));
    await stage.atRest();
    expect((await cluster.get(tcp)).metadata.uid).not.toBe(before.uid);
    expect(await stage.nginx.entries()).toEqual(stage.ourEntries([9000, 9001]));
    expect(await shared()).toEqual(['patch configmaps 201']);
    // Whoever had keys there brings them back himself, and is not in anybody's way.
    await stage.applyKeys(foreign, 'helm');
    await stage.ask(9002);
    await eventually(() => stage.requireOpen([9000, 9001, 9002], foreign));
    stage.logsNoError();
  },
);

/** The chart's next release has ports of its own, one of which was ours. */
const nextPorts = [
  ...chartPorts,
  { name: 'metrics', port: 10_254, targetPort: 'metrics' },
  { name: 'own', port: 9001, targetPort: 'own' },
];

test.concurrent.for(['runs', 'is down'])(
  'a Service that its chart creates again while the controller %s gets our ports back, but for those that are the chart’s now',
  async (controller) => {
    const isDown = controller === 'is down';
    await using stage = await withOpenPorts('reborn-service');
    const { cluster } = stage;
    const { tcp, service } = stage.nginx;
    await using recording = await Recording.start<AnyObject & { data: Record<string, string> }>(cluster, tcp);

    if (isDown) await stage.controller.kill();
    await cluster.delete(service);
    if (!isDown)
      await eventually(async () => {
        for (const listen of [9000, 9001])
          expect(await stage.told(listen)).toMatchObject({ status: 'False', reason: 'TargetNotFound' });
      });
    // The entries wait, whatever else happens meanwhile.
    await stage.ask(9002);
    await stage.nginx.makeService({ ports: nextPorts });
    if (isDown) await stage.startController();

    await eventually(() => stage.requireOpen([9000, 9002], foreign, nextPorts));
    const told = await stage.told(9001);
    expect(told).toMatchObject({ status: 'False', reason: 'PortUnavailable' });
    expect(told!.message).toContain('helm');
    const { spec } = appliedBy('helm', await cluster.get(service)) as AnyObject & {
      readonly spec: { readonly ports: unknown[] };
    };
    expect(spec.ports).toEqual(nextPorts.map((port) => expect.objectContaining(port) as ChartPort));
    for (const { data } of await recording.states())
      expect(data).toMatchObject({ ...stage.ourEntries([9000]), ...foreign });
    stage.logsNoError();
  },
);

test.concurrent(
  'a Service that is deleted while our ports are on their way is not brought back by us, but by its chart',
  async () => {
    await using stage = await withOpenPorts('write-on-its-way');
    const { cluster, proxy } = stage;
    const { service } = stage.nginx;
    const gate = await stage.held(writesTo('services'), () => stage.ask(9002));
    const requests = stage.requestsFromNowOn();
    const [held] = proxy.underWay(writesTo('services'));

    await cluster.delete(service);
    gate.open();
    await eventually(() => {
      expect(held!.record.status).toBe(409);
    });
    await eventually(async () => {
      expect(await stage.told(9002)).toMatchObject({ status: 'False', reason: 'TargetNotFound' });
    });
    expect(await cluster.find(service)).toBeUndefined();
    expect(requests().filter(writesTo('services'))).toEqual([]);

    await stage.nginx.makeService();
    await eventually(() => stage.requireOpen([9000, 9001, 9002], foreign));
    stage.logsNoError();
  },
);
