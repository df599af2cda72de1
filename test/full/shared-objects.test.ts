import { expect, test } from 'vitest';
import { loadKind } from '../support/bundle.js';
import { configMaps, eventually } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-35';
const { kind, config } = await loadKind('test/support/kinds/share.config.mjs');
const cluster = openCluster();

test('of custom resources that share a ConfigMap, one that is dropped takes its key alone along, and what others have there stays', async () => {
  const shares = await Subject.make(cluster, kind, 'shares');
  const { namespace } = shares;
  const start = () => startController({ cluster, user, kinds: [kind], config, namespaces: [namespace] });
  const has = (data: Readonly<Record<string, string>>): Promise<void> =>
    eventually(async () => {
      expect((await cluster.get(shares.childPlace(configMaps, 'entries'))).data).toEqual(data);
    });
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name: 'entries' } };
  await cluster.apply(configMaps, { ...object, data: { theirs: 'foreign', wanted: 'foreign' } }, 'helm');
  const controller = await start();

  for (const key of ['a', 'b', 'wanted']) await shares.create(key, {});
  await has({ a: 'ours', b: 'ours', theirs: 'foreign', wanted: 'foreign' });
  for (const key of ['a', 'wanted']) await shares.delete(key);
  await has({ b: 'ours', theirs: 'foreign', wanted: 'foreign' });

  await settled(cluster, user);
  await controller.kill();
  const requests = await requestsFromNowOn(cluster, user);
  await (await start()).reconciled(namespace);
  expect(writes(await requests()).map(summary)).toEqual([]);
});

test('an object that a custom resource names wakes its key when it appears, changes and goes', async () => {
  const shares = await Subject.make(cluster, kind, 'named');
  const { namespace } = shares;
  const place = { type: configMaps, namespace, name: 'source' };
  const has = (value: string): Promise<void> =>
    eventually(async () => {
      expect((await cluster.get(shares.childPlace(configMaps, 'entries'))).data).toEqual({ a: value });
    });
  const configMap = (name: string, data: object) => ({
    ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name }, data },
  });
  await cluster.create(configMaps, configMap('entries', {}));
  const start = () => startController({ cluster, user, kinds: [kind], config, namespaces: [namespace] });
  const controller = await start();
  await shares.create('a', { from: 'source' });
  await has('ours');
  // A new one has written nothing, which would wake the key too.
  await controller.stop();
  await (await start()).reconciled(namespace);
  await cluster.create(configMaps, configMap('source', { value: 'first' }));
  await has('first');
  await cluster.merge(place, { data: { value: 'second' } });
  await has('second');
  await cluster.delete(place);
  await has('ours');
});
