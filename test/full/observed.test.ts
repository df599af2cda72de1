import { expect, test } from 'vitest';
import { loadKind } from '../support/bundle.js';
import { configMaps, eventually, putStatus, services } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();

/** The custom resources of the first kind of a configuration, with an operator of their own. */
async function operated(path: string, user: string): Promise<Subject> {
  const { kind, config } = await loadKind(path);
  const subject = await Subject.make(cluster, kind, 'observed');
  await startController({ ...{ cluster, user, kinds: [kind], config }, namespaces: [subject.namespace] });
  return subject;
}

async function said(of: Subject, name: string): Promise<Readonly<Record<string, string>>> {
  return (await cluster.get<{ data: Record<string, string> }>(of.childPlace(configMaps, name))).data;
}

test('what a child says is rendered into another one, and nothing is written any more then', async () => {
  const user = 'operator-60';
  const addresses = await operated('examples/public-address/reconstruct.config.mjs', user);
  await addresses.create('web', { app: 'web' });
  await addresses.ready('web');
  expect(await said(addresses, 'web')).toEqual({ address: 'pending' });

  const balancer = (ip: string): object => ({ loadBalancer: { ingress: [{ ip }] } });
  for (const ip of ['192.0.2.1', '192.0.2.2']) {
    await putStatus(cluster, addresses.childPlace(services, 'web'), balancer(ip));
    await eventually(async () => {
      expect(await said(addresses, 'web')).toEqual({ address: ip });
    });
  }
  await addresses.ready('web');
  await settled(cluster, user, { namespace: addresses.namespace });
  const requests = await requestsFromNowOn(cluster, user, addresses.namespace);
  await addresses.touch('web');
  await settled(cluster, user, { namespace: addresses.namespace });
  expect(writes(await requests()).map(summary)).toEqual([]);
});

test('what never settles is stalled and named, until an edit', async () => {
  const user = 'operator-61';
  const gates = await operated('test/support/kinds/gate.config.mjs', user);
  await gates.create('swing', { swings: true });
  const { message } = await gates.stalled('swing', 'NeverSettles');
  expect(message).toMatch(
    /^Gate observed-\w+\/swing was rendered \d+ times without an edit, the last time with another ConfigMap observed-\w+\/swing: /,
  );
  await settled(cluster, user, { namespace: gates.namespace });
  const requests = await requestsFromNowOn(cluster, user, gates.namespace);
  await putStatus(cluster, gates.childPlace(services, 'swing'), {
    loadBalancer: { ingress: [{ ip: '192.0.2.3' }] },
  });
  await settled(cluster, user, { namespace: gates.namespace });
  expect(writes(await requests()).map(summary)).toEqual([]);
  await cluster.delete(gates.childPlace(configMaps, 'swing'));
  await eventually(async () => {
    expect(await cluster.find({ ...gates.childPlace(configMaps, 'swing') })).toBeDefined();
  });
  await gates.stalled('swing', 'NeverSettles');
  await gates.edit('swing', {});
  await gates.ready('swing');
  expect(await said(gates, 'swing')).toEqual({ address: '192.0.2.3' });
});
