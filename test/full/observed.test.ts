import { beforeAll, expect, test } from 'vitest';
import { loadKind } from '../support/bundle.js';
import { configMaps, eventually, putStatus, services } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-60';
const { kind, config } = await loadKind('test/support/kinds/gate.config.mjs');
const cluster = openCluster();
let gates: Subject;

beforeAll(async () => {
  gates = await Subject.make(cluster, kind, 'gates');
  await startController({ ...{ cluster, user, kinds: [kind], config }, namespaces: [gates.namespace] });
});

async function said(name: string): Promise<Readonly<Record<string, string>>> {
  return (await cluster.get<{ data: Record<string, string> }>(gates.childPlace(configMaps, name))).data;
}

test('what a child says is rendered into another one, and nothing is written any more then', async () => {
  await gates.create('web', {});
  await gates.ready('web');
  expect(await said('web')).toEqual({ address: 'pending' });

  const balancer = (ip: string): object => ({ loadBalancer: { ingress: [{ ip }] } });
  for (const ip of ['192.0.2.1', '192.0.2.2']) {
    await putStatus(cluster, gates.childPlace(services, 'web'), balancer(ip));
    await eventually(async () => {
      expect(await said('web')).toEqual({ address: ip });
    });
  }
  await gates.ready('web');
  await settled(cluster, user, { namespace: gates.namespace });
  const requests = await requestsFromNowOn(cluster, user, gates.namespace);
  await gates.touch('web');
  await settled(cluster, user, { namespace: gates.namespace });
  expect(writes(await requests()).map(summary)).toEqual([]);
});

test('what never settles is stalled and named, until an edit', async () => {
  await gates.create('swing', { swings: true });
  const { message } = await gates.stalled('swing', 'NeverSettles');
  expect(message).toMatch(
    /^Gate gates-\w+\/swing was rendered \d+ times within a minute without an edit, the last time with another ConfigMap gates-\w+\/swing: /,
  );
  await settled(cluster, user, { namespace: gates.namespace });
  const requests = await requestsFromNowOn(cluster, user, gates.namespace);
  await putStatus(cluster, gates.childPlace(services, 'swing'), {
    loadBalancer: { ingress: [{ ip: '192.0.2.3' }] },
  });
  await settled(cluster, user, { namespace: gates.namespace });
  expect(writes(await requests()).map(summary)).toEqual([]);
  await gates.edit('swing', {});
  await gates.ready('swing');
  expect(await said('swing')).toEqual({ address: '192.0.2.3' });
});
