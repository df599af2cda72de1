import { setInterval as every } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import { configMap, loadBundle } from '../support/bundle.js';
import { collection, configMaps, deny, eventually, jobs } from '../support/cluster.js';
import { Reconstruct } from '../support/commands.js';
import { startController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-22';
const { kind: bundle, config } = await loadBundle();
const cluster = openCluster();
let bundles: Subject;

beforeAll(async () => {
  bundles = await Subject.make(cluster, bundle, 'contested');
  await startController({
    ...{ cluster, user, kinds: [bundle], config, namespaces: [bundles.namespace] },
  });
  const path = collection(jobs, bundles.namespace);
  await deny(cluster, {
    ...{
      namespace: bundles.namespace,
      group: 'batch',
      resource: 'jobs',
      operation: 'CREATE',
      reason: 'Forbidden',
    },
    expression: "object.spec.template.spec.containers[0].image != 'denied'",
    message: 'no new Job may have it',
    probe: () => cluster.send('POST', path, { query: { dryRun: 'All' }, body: job('probe', 'denied') }),
  });
});

async function isContested(name: string): Promise<boolean> {
  const { status } = await bundles.get(name);
  return status?.conditions?.some(({ reason }) => reason === 'FieldContested') ?? false;
}

async function dataOf(name: string): Promise<unknown> {
  return (await cluster.get(bundles.childPlace(configMaps, name))).data;
}

test('a writer that changes a field of ours again and again is named once, and met with few writes', async () => {
  await bundles.create('fought', {
    objects: [configMap('fought', { level: 'ours' }), configMap('beside', { of: 'fought' })],
  });
  await bundles.ready('fought');
  const requests = await requestsFromNowOn(cluster, user);

  // Twenty times what a polite controller would do, for four seconds; longer where it is met so slowly.
  let rounds = 0;
  for await (const level of every(200, 'theirs')) {
    await cluster.merge(
      bundles.childPlace(configMaps, 'fought'),
      { data: { level: `${level}-${rounds}` } },
      'rival-controller',
    );
    if (++rounds >= 20 && ((await isContested('fought')) || rounds === 200)) break;
  }

  const contested = await bundles.condition('fought', {
    type: 'Ready',
    status: 'False',
    reason: 'FieldContested',
  });
  expect(contested.message).toContain('rival-controller');
  expect(contested.message).toContain('.data.level');
  const applies = async (): Promise<string[]> =>
    writes(await requests())
      .filter(({ objectRef }) => objectRef?.resource === 'configmaps')
      .map(summary);
  expect((await applies()).length).toBeLessThanOrEqual(6);
  await settled(cluster, user);
  await eventually(async () => {
    const told = (await bundles.events('fought')).filter(({ reason }) => reason === 'FieldContested');
    expect(told).toMatchObject([{ type: 'Warning', note: contested.message }]);
  });

  // What is no longer asked for goes, although the fight lasts.
  await bundles.edit('fought', { objects: [configMap('fought', { level: 'ours' })] });
  await eventually(async () => {
    expect(await cluster.find(bundles.childPlace(configMaps, 'beside'))).toBeUndefined();
  });
  await bundles.condition('fought', { type: 'Ready', status: 'False', reason: 'FieldContested' });

  // An edit of the custom resource isn't kept waiting.
  await bundles.edit('fought', { objects: [configMap('fought', { level: 'ours', other: 'new' })] });
  await eventually(async () => {
    expect(await dataOf('fought')).toEqual({ level: 'ours', other: 'new' });
  });
  await cluster.merge(
    bundles.childPlace(configMaps, 'fought'),
    { data: { level: 'theirs' } },
    'rival-controller',
  );
  await bundles.condition('fought', { type: 'Ready', status: 'False', reason: 'FieldContested' });

  // It has stopped, so the field is corrected, and the condition clears by itself.
  await eventually(
    async () => {
      expect(await dataOf('fought')).toEqual({ level: 'ours', other: 'new' });
    },
    // As long as the sixth correction is followed by a pause, and again as long.
    { deadlineMilliseconds: 45_000 },
  );
  await bundles.ready('fought');
  expect((await applies()).length).toBeLessThanOrEqual(8);
});

function job(name: string, image: string, labels: Readonly<Record<string, string>> = {}): object {
  const spec = { containers: [{ name: 'main', image }], restartPolicy: 'Never' };
  return {
    ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name, labels } },
    spec: { suspend: true, template: { spec } },
  };
}

async function uidOf(name: string): Promise<string | undefined> {
  return (await cluster.get(bundles.childPlace(jobs, name))).metadata.uid;
}

/** What `diff` says of the one child that a Bundle would have. */
async function predicted(name: string, object: object): Promise<object | undefined> {
  const { apiVersion, kind } = bundle.type;
  const metadata = { name, namespace: bundles.namespace };
  const differ = new Reconstruct('diff', cluster.sandbox.adminKubeconfig, ['--config', config]);
  const { objects } = await differ.diff([{ apiVersion, kind, metadata, spec: { objects: [object] } }]);
  return objects.find((found) => found.kind !== 'Bundle');
}

const refused = [
  {
    what: 'and is invalid',
    name: 'changed-and-invalid',
    edit: (name: string) => job(name, 'new', { note: 'not a label' }),
    message: 'not a label',
    reason: 'Invalid',
  },
  {
    what: 'to what a policy denies new objects alone',
    name: 'denied-anew',
    edit: (name: string) => job(name, 'denied'),
    message: 'no new Job may have it',
    reason: 'Refused',
  },
  {
    what: 'in the words of a value alone',
    name: 'invalid-alone',
    edit: (name: string) => job(name, 'old', { note: '/: field is immutable' }),
    message: 'a valid label must be',
    reason: 'Invalid',
  },
];

test.for(refused)(
  'an edit that changes what cannot be changed keeps the object that works, and stalls with the reason: $what',
  async ({ name, edit, message, reason }) => {
    await bundles.create(name, { objects: [job(name, 'old')] });
    const uid = await eventually(() => uidOf(name));

    expect(await predicted(name, edit(name))).toMatchObject({ action: 'failed', reason });
    await bundles.edit(name, { objects: [edit(name)] });

    const stalled = await bundles.stalled(name, reason);
    expect(stalled.message).toContain(message);
    expect(await uidOf(name)).toBe(uid);

    expect(await predicted(name, job(name, 'new'))).toMatchObject({ action: 'recreated' });
    await bundles.edit(name, { objects: [job(name, 'new')] });
    await eventually(async () => {
      expect(await uidOf(name)).not.toBe(uid);
    });
  },
);
