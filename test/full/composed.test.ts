import { expect, test } from 'vitest';
import { loadKind } from '../support/bundle.js';
import { configMaps, eventually, secrets } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
const user = 'operator-78';

test('texts follow the custom resource, the values and a rotation, and nothing else; a failing one shows no value', async () => {
  const { kind, config } = await loadKind('test/support/kinds/composed.config.mjs');
  const accounts = await Subject.make(cluster, kind, 'accounts');
  const props = { ...{ cluster, user, kinds: [kind], config }, namespaces: [accounts.namespace] };
  const start = async (): Promise<RunningController> => startController(props);
  let controller = await start();
  const place = accounts.childPlace(secrets, 'web-account-generated');
  const read = async (): Promise<Readonly<Record<string, string>>> => {
    const { data } = await cluster.get<{ data: Readonly<Record<string, string>> }>(place);
    const decoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]);
    return Object.fromEntries(decoded) as Readonly<Record<string, string>>;
  };
  const checksum = async (): Promise<unknown> =>
    (await cluster.get<{ data: { checksum: string } }>(accounts.childPlace(configMaps, 'web'))).data.checksum;

  await accounts.create('web', {});
  await accounts.ready('web');
  const { password, ...texts } = await read();
  expect(password).toHaveLength(24);
  expect(texts).toEqual({ uri: `postgres://app:${password}@db`, pgpass: `# postgres://app:${password}@db` });
  const before = await checksum();

  await accounts.edit('web', { host: 'other' });
  await eventually(async () => {
    expect(await read()).toEqual({
      ...{ password, uri: `postgres://app:${password}@other` },
      pgpass: `# postgres://app:${password}@other`,
    });
  });
  await eventually(async () => {
    expect(await checksum()).not.toBe(before);
  });

  // Texts whose keys the custom resource chooses come and go with it, and take the place of no other.
  const composed = { uri: `postgres://app:${password}@other`, pgpass: `# postgres://app:${password}@other` };
  for (const template of [
    { DSN: 'password=PASSWORD', 'host.txt': 'other' },
    { DSN: 'host=other password=PASSWORD' },
  ]) {
    await accounts.edit('web', { host: 'other', template });
    const chosen = Object.entries(template).map(([key, text]) => [key, text.replace('PASSWORD', password!)]);
    await eventually(async () => {
      expect(await read()).toEqual({ password, ...composed, ...Object.fromEntries(chosen) });
    });
  }
  await accounts.edit('web', { host: 'other', template: { password: 'chosen' } });
  await accounts.condition('web', { type: 'Stalled', status: 'True', reason: 'Invalid' });
  expect((await read()).password).toBe(password);
  await accounts.edit('web', { host: 'other', template: {} });
  await accounts.ready('web');
  expect(await read()).toEqual({ password, ...composed });

  await settled(cluster, user);
  const requests = await requestsFromNowOn(cluster, user);
  await accounts.touch('web');
  await settled(cluster, user);
  expect(await controller.stop()).toBe(0);
  controller = await start();
  await controller.reconciled('web');
  await settled(cluster, user);
  expect(writes(await requests()).map(summary)).toEqual([]);

  const chosen = 'chosen-by-a-person';
  await cluster.merge(place, { data: { password: Buffer.from(chosen).toString('base64') } });
  await eventually(async () => {
    expect((await read()).uri).toBe(`postgres://app:${chosen}@other`);
  });
  await cluster.merge(place, { data: { pgpass: null } });
  await eventually(async () => {
    expect((await read()).pgpass).toBe(`# postgres://app:${chosen}@other`);
  });
  const annotations = { 'reconstruct.kosmos.io/rotate': '2' };
  await cluster.merge(accounts.place('web'), { metadata: { annotations } });
  await eventually(async () => {
    const { password: rotated, uri } = await read();
    expect(rotated).not.toBe(chosen);
    expect(uri).toBe(`postgres://app:${rotated}@other`);
  });
  const last = await read();

  await accounts.edit('web', { broken: true });
  const { message } = await accounts.condition('web', {
    type: 'Ready',
    status: 'False',
    reason: 'RenderFailed',
  });
  expect(message).not.toContain(last.password);
  expect(await read()).toEqual(last);
});
