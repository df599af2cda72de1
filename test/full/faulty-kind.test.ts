import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { repoFolder } from '../../sandbox/paths.js';
import { loadKinds } from '../../src/cli/config.js';
import type { OwnedKind } from '../../src/contract/kind.js';
import type { AnyObject, ObjectRef } from '../../src/contract/object.js';
import { Cluster, configMaps, events } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { settled } from './support/settled.js';
import { Subject } from './support/subject.js';

const user = 'operator-41';
const config = join(repoFolder(), 'test/full/kinds/faulty.config.mjs');
const cluster = new Cluster(openSandbox(inject('sandbox')));
let faulties: Subject;
let controller: RunningController;

beforeAll(async () => {
  const [kind] = await loadKinds({ config, builtIn: [], kinds: ['faulty'] });
  await installCrd(cluster, kind!);
  faulties = new Subject(cluster, kind as OwnedKind, await cluster.makeNamespace('faulty'));
  controller = await startController({
    ...{ cluster, user, kinds: [kind!], config, namespaces: [faulties.namespace] },
  });
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

async function eventsOf(name: string): Promise<AnyObject[]> {
  const all = await cluster.list<AnyObject & { regarding: ObjectRef }>(events, faulties.namespace);
  return all.filter(({ regarding }) => regarding.kind === 'Faulty' && regarding.name === name);
}

test.each([
  [
    'construct',
    'RenderFailed',
    { Ready: 'False', Reconciling: 'False', Stalled: 'True' },
    /^Faulty faulty-\w+\/construct can't be rendered: the construct has a bug \(at test\/full\/kinds\/faulty\.config\.mjs:19:41\)$/,
  ],
  [
    'status',
    'StatusFailed',
    { Ready: 'False', Reconciling: 'True', Stalled: 'False' },
    /^The status of Faulty faulty-\w+\/status can't be computed: the status function has a bug \(at test\/full\/kinds\/faulty\.config\.mjs:30:36\)$/,
  ],
] as const)(
  'a bug in the %s is told in the conditions, an event and the log, each with its place',
  async (bug, reason, conditions, message) => {
    await faulties.create(bug, { bug });

    for (const [type, status] of Object.entries(conditions) as ['Ready', 'True' | 'False'][])
      expect((await faulties.condition(bug, { type, status, reason })).message).toMatch(message);
    await eventually(async () => {
      expect(await eventsOf(bug)).toMatchObject([
        { type: 'Warning', reason, note: expect.stringMatching(message) as string },
      ]);
    });
    const line = await controller.logged(({ name, msg }) => name === bug && msg === 'Reconcile failed');
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

test('what a construct makes anew each time is applied once at most, and is told', async () => {
  await faulties.create('clock', { bug: 'clock' });
  const place = faulties.childPlace(configMaps, 'clock');
  const told = { type: 'Stalled', status: 'True', reason: 'NotDeterministic' } as const;
  expect((await faulties.condition('clock', told)).message).toMatch(
    /renders ConfigMap faulty-\w+\/clock with "[0-9a-f-]+" at \.data\.at, and the next time with "[0-9a-f-]+"\. A construct/,
  );
  await settled(cluster, user);
  expect(await cluster.find(place)).toBeUndefined();

  await faulties.edit('clock', {});
  await faulties.ready('clock');
});
