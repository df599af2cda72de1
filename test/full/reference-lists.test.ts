import { expect, test } from 'vitest';
import { resourceType } from '../../src/contract/resource.js';
import { loadKind } from '../support/bundle.js';
import { configMaps, eventually } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
const accounts = resourceType({ apiVersion: 'v1', kind: 'ServiceAccount' });
const namespaces = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });
const ZONES = 'collage-zones';

test('lists by names, by a selector and of all in a namespace of the author follow what is there, with rights on that alone', async () => {
  const { kind, config } = await loadKind('test/support/kinds/lists.config.mjs');
  const user = 'operator-77';
  const collages = await Subject.make(cluster, kind, 'collages');
  await cluster.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: ZONES } });
  await startController({ ...{ cluster, user, kinds: [kind], config }, namespaces: [collages.namespace] });
  const put = async (name: string, labels: Readonly<Record<string, string>> = {}): Promise<void> => {
    const metadata = { name, namespace: collages.namespace, labels };
    await cluster.create(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
  };
  const says = async (data: object): Promise<void> =>
    eventually(async () => {
      expect((await cluster.find(collages.childPlace(configMaps, 'web')))?.data).toEqual(data);
    });

  await put('b', { tier: 'gold' });
  await put('a', { tier: 'silver' });
  await put('c', { tier: 'iron' });
  await collages.create('web', { parts: ['b', 'later', 'a'], tiers: ['gold', 'silver'] });
  await says({ parts: 'b,a', peers: 'a,b', zones: 'default' });
  const missing = async (...parts: string[]): Promise<void> =>
    eventually(async () => {
      expect((await collages.get('web')).status).toMatchObject({ missing: parts });
    });
  await missing('later');
  await put('later', { tier: 'gold' });
  const zone = { name: 'zone', namespace: ZONES };
  await cluster.create(accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: zone });
  await says({ parts: 'b,later,a', peers: 'a,b,later', zones: 'default,zone' });
  await missing();
  await cluster.delete({ type: accounts, ...zone });
  await collages.edit('web', { parts: ['a'], tiers: [] });
  await says({ parts: 'a', peers: '', zones: 'default' });

  await settled(cluster, user);
  const requests = await requestsFromNowOn(cluster, user);
  await collages.touch('web');
  await settled(cluster, user);
  expect(writes(await requests()).map(summary)).toEqual([]);
});
