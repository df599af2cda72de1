import { beforeAll, expect, test } from 'vitest';
import { loadKind } from '../support/bundle.js';
import { configMaps, eventually } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { settled } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-41';
const { kind, config } = await loadKind('test/support/kinds/faulty.config.mjs');
const cluster = openCluster();
let faulties: Subject;
let controller: RunningController;

const start = (): Promise<RunningController> =>
  startController({ ...{ cluster, user, kinds: [kind], config, namespaces: [faulties.namespace] } });

beforeAll(async () => {
  faulties = await Subject.make(cluster, kind, 'faulty');
  controller = await start();
});

test.each([
  [
    'construct',
    'RenderFailed',
    { Ready: 'False', Reconciling: 'False', Stalled: 'True' },
    /^Faulty faulty-\w+\/construct can't be rendered: the construct has a bug \(at test\/support\/kinds\/faulty\.config\.mjs:19:41\)$/,
  ],
  [
    'status',
    'StatusFailed',
    { Ready: 'False', Reconciling: 'True', Stalled: 'False' },
    /^The status of Faulty faulty-\w+\/status can't be computed: the status function has a bug \(at test\/support\/kinds\/faulty\.config\.mjs:30:36\)$/,
  ],
] as const)(
  'a bug in the %s is reported in the conditions, an event and the log, each with its place',
  async (bug, reason, conditions, message) => {
    await faulties.create(bug, { bug });

    for (const [type, status] of Object.entries(conditions) as ['Ready', 'True' | 'False'][])
      expect((await faulties.condition(bug, { type, status, reason })).message).toMatch(message);
    await eventually(async () => {
      expect(await faulties.events(bug)).toMatchObject([
        { type: 'Warning', reason, note: expect.stringMatching(message) as string },
      ]);
    });
    const line = await controller.logged(({ name, msg }) => name === bug && msg === 'reconcile failed');
    expect(line).toMatchObject({
      ...{ level: 'warn', reason, error: expect.stringMatching(message) as string },
      err: { type: 'TypeError', stack: expect.stringContaining('faulty.config.mjs') as string },
    });

    await faulties.edit(bug, {});

    await faulties.ready(bug);
    expect((await faulties.get(bug)).status).toMatchObject({ seen: true });
  },
);

test('where the status function has a bug, the children are made all the same', async () => {
  await faulties.create('made', { bug: 'status' });

  await faulties.condition('made', { type: 'Ready', status: 'False', reason: 'StatusFailed' });

  expect(await cluster.find({ type: configMaps, namespace: faulties.namespace, name: 'made' })).toBeDefined();
});

test('what a construct renders differently each time is applied once at most, and is reported', async () => {
  await faulties.create('clock', { bug: 'clock' });
  const place = faulties.childPlace(configMaps, 'clock');
  expect((await faulties.stalled('clock', 'NotDeterministic')).message).toMatch(
    /renders ConfigMap faulty-\w+\/clock with "[0-9a-f-]+" at \.data\.at, and the next time with "[0-9a-f-]+"\. A construct/,
  );
  await settled(cluster, user);
  expect(await cluster.find(place)).toBeUndefined();

  await faulties.edit('clock', {});
  await faulties.ready('clock');
});

test('one that is nested too deeply stalls alone, also after a restart, until it is less deep', async () => {
  const free = JSON.parse(`${'{"a":'.repeat(2_500)}{}${'}'.repeat(2_500)}`) as object;
  await faulties.create('deep', { free });
  const { message } = await faulties.stalled('deep', 'TooDeep');
  expect(message).toMatch(/^Faulty faulty-\w+\/deep is nested more than 200 levels deep, /);
  await controller.logged(({ msg }) => msg.startsWith(message));
  await faulties.create('beside', {});
  await faulties.ready('beside');
  await settled(cluster, user);

  expect(await controller.stop()).toBe(0);
  controller = await start();
  await faulties.edit('beside', { bug: 'status' });
  await faulties.condition('beside', { type: 'Ready', status: 'False', reason: 'StatusFailed' });
  await faulties.edit('beside', {});
  await faulties.ready('beside');
  await faulties.edit('deep', {});
  await faulties.ready('deep');
});
