import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { setTimeout as delay } from 'node:timers/promises';
import { openSandbox } from '../../sandbox/client.js';
import type { AnyObject, ObjectRef } from '../../src/contract/object.js';
import { ApiError } from '../../src/engine/api-error.js';
import { rulesFor } from '../../src/install/rules.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { Cluster, events, services } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { eventually } from './support/eventually.js';
import { requestsFromNowOn, summary, writes } from './support/requests.js';
import { grant } from './support/rights.js';
import { Subject } from './support/subject.js';

const user = 'operator-5';
const size = 0;
const image = 'example.com/web:1';
const cluster = new Cluster(openSandbox(inject('sandbox')));
let apps: Subject;
let controller: RunningController;

beforeAll(async () => {
  await installCrd(cluster, appService);
  apps = new Subject(cluster, appService, await cluster.makeNamespace('errors'));
  const policy = join(mkdtempSync(join(tmpdir(), 'errors-')), 'policy.yaml');
  writeFileSync(policy, `appservice: { maxSize: ${MAX_SIZE} }`);
  controller = await startController({
    ...{ cluster, user, kinds: [appService], namespaces: [apps.namespace], args: ['--policy', policy] },
  });
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

/** What the policy allows. The API server knows nothing of it, so that what is above fails in the renderer. */
const MAX_SIZE = 9;

/** The events about a custom resource. */
async function eventsOf(name: string): Promise<AnyObject[]> {
  const all = await cluster.list<AnyObject & { regarding: ObjectRef }>(events, apps.namespace);
  return all.filter(({ regarding }) => regarding.kind === 'AppService' && regarding.name === name);
}

const mistakes = [
  {
    what: "a custom resource that can't be rendered",
    name: 'oversized',
    reason: 'PolicyDenied',
    message: 'spec.size',
    spec: { size: MAX_SIZE + 1 },
    // The status and the event.
    requests: [/^patch appservices\/status .*\/oversized 200$/, /^create events /],
  },
  {
    what: 'a custom resource whose Service the API server refuses',
    name: 'out-of-range',
    reason: 'Invalid',
    message: 'spec.ports[0].nodePort',
    spec: { ports: [{ port: 80, nodePort: 1 }] },
    requests: [
      /^patch deployments .*\/out-of-range 201$/,
      /^patch services .*\/out-of-range 422$/,
      /^patch appservices\/status .*\/out-of-range 200$/,
      /^create events /,
    ],
  },
  {
    what: 'a custom resource whose Deployment the API server refuses',
    name: 'without-claim',
    reason: 'Invalid',
    message: 'claims',
    spec: { resources: { claims: [{ name: 'nothing' }] } },
    requests: [
      /^patch deployments .*\/without-claim 422$/,
      /^patch appservices\/status .*\/without-claim 200$/,
      /^create events /,
    ],
  },
];

test.for(mistakes)(
  '$what is told so once, is left alone, holds nobody up, and heals when it is edited',
  async ({ name, reason, message, spec, requests: expected }) => {
    const requests = await requestsFromNowOn(cluster, user);
    await apps.create(name, { size, image, ...spec });

    const ready = await apps.condition(name, { type: 'Ready', status: 'False', reason });
    expect(ready.message).toContain(message);
    await apps.condition(name, { type: 'Stalled', status: 'True', reason });
    await apps.condition(name, { type: 'Reconciling', status: 'False' });

    // Reconciled again, for a change that mends nothing.
    const from = controller.log.length;
    await cluster.merge(apps.place(name), { metadata: { annotations: { 'example.com/touched': 'yes' } } });
    await controller.logged((line) => line.msg === 'Reconciled' && line.name === name, from);
    await apps.create(`${name}-neighbour`, { size, image, ports: [{ port: 80 }] });
    await apps.ready(`${name}-neighbour`);
    // Not until something happens: to see that nothing does.
    await delay(3_000);

    const sent = writes(await requests()).map(summary);
    const about = sent.filter((line) => !line.includes('-neighbour'));
    const statusWrites = about.filter((line) => line.includes('appservices/status'));
    // What its Deployment goes through may be told besides.
    expect(statusWrites.length).toBeLessThanOrEqual(4);
    const rest = about.filter((line) => !line.includes('appservices/status'));
    expect(rest.length, about.join('\n')).toBe(expected.length - 1);
    for (const pattern of expected)
      expect(
        about.some((line) => pattern.test(line)),
        String(pattern),
      ).toBe(true);
    const told = await eventsOf(name);
    expect(told).toMatchObject([{ type: 'Warning', reason, action: 'Reconcile' }]);
    const warnings = controller.log.filter((line) => line.name === name && line.level === 'warn');
    expect(warnings).toMatchObject([{ reason, msg: 'Reconcile failed' }]);

    await apps.edit(name, { size, image, ports: [{ port: 80 }] });
    await apps.ready(name);
    await apps.asRendered(name);
  },
);

test('a right that is missing is told in a condition, and the custom resource heals when it is granted', async () => {
  const other = 'operator-6';
  const inside = new Subject(cluster, appService, await cluster.makeNamespace('forbidden'));
  const rules = rulesFor([appService]).map((rule) =>
    rule.resources.includes('services') ? { ...rule, verbs: ['get', 'list', 'watch'] } : rule,
  );
  const namespaces = [inside.namespace];
  await using restricted = await startController({
    ...{ cluster, user: other, kinds: [appService], namespaces, rights: () => rules },
  });

  await inside.create('web', { size, image, ports: [{ port: 80 }] });

  const ready = await inside.condition('web', { type: 'Ready', status: 'False', reason: 'Forbidden' });
  expect(ready.message).toContain('services');
  await inside.condition('web', { type: 'Reconciling', status: 'True', reason: 'Forbidden' });
  await inside.create('worker', { size, image });
  await inside.ready('worker');
  expect(await cluster.find(inside.childPlace(services, 'web'))).toBeUndefined();

  await grant(cluster, { user: other, rules: rulesFor([appService]), namespaces });

  // Nothing tells of it, so it is tried every minute or two.
  await eventually(() => inside.ready('web'), { deadlineMilliseconds: 130_000 });
  await inside.asRendered('web');
  expect(restricted.strayOutput).toEqual([]);
}, 300_000);

test('a type that may not be watched yet is waited for', async () => {
  const other = 'operator-7';
  const inside = new Subject(cluster, appService, await cluster.makeNamespace('blind'));
  const namespaces = [inside.namespace];
  const rules = rulesFor([appService]).filter(({ resources }) => !resources.includes('services'));
  await using blind = await startController({
    ...{ cluster, user: other, kinds: [appService], namespaces, rights: () => rules, awaitStart: false },
  });
  const line = await blind.logged(({ resource }) => resource === 'services');
  expect(line).toMatchObject({ level: 'warn', watchNamespace: inside.namespace });
  expect(line.error).toContain('forbidden');
  await inside.create('web', { size, image, ports: [{ port: 80 }] });

  await grant(cluster, { user: other, rules: rulesFor([appService]), namespaces });

  await inside.ready('web');
});

test('a namespace that is being deleted ends what is in it, without a loop', async () => {
  const requests = await requestsFromNowOn(cluster, user);
  await apps.create('doomed', { size, image, ports: [{ port: 80 }] });
  await apps.ready('doomed');
  const gone = new Subject(cluster, appService, await cluster.makeNamespace('doomed'));
  await using watching = await startController({
    ...{ cluster, user: 'operator-8', kinds: [appService], namespaces: [gone.namespace] },
  });
  for (let index = 0; index < 5; index++)
    await gone.create(`web-${index}`, { size, image, ports: [{ port: 80 }] });
  for (let index = 0; index < 5; index++) await gone.ready(`web-${index}`);
  const during = await requestsFromNowOn(cluster, 'operator-8');

  await cluster.send('DELETE', `/api/v1/namespaces/${gone.namespace}`);

  await eventually(async () => {
    const { status } = await cluster.send('GET', `/api/v1/namespaces/${gone.namespace}`);
    expect(status).toBe(404);
  });
  const writesMeanwhile = writes(await during()).map(summary);
  // Children may go first, and each is missed once before the rest follows.
  expect(writesMeanwhile.length, writesMeanwhile.join('\n')).toBeLessThan(60);
  expect(watching.log.filter(({ level }) => level === 'error')).toEqual([]);
  expect((await requests()).length).toBeGreaterThan(0);
});

test.for([
  ['/apis/none.example.com/v1/foos', true],
  ['/apis/kosmos.io/v9/appservices', true],
  ['/apis/kosmos.io/v1/foos', true],
  ['/apis/apps/v9/deployments', true],
  ['/apis/apps/v1/foos', true],
  ['/api/v9/pods', true],
  ['/api/v1/foos', true],
  ['/apis/apps/v1/namespaces/default/deployments/none', false],
  ['/apis/kosmos.io/v1/namespaces/default/appservices/none', false],
  ['/api/v1/namespaces/none', false],
] as const)('of what there is not, %s is a kind that is not served: %s', async ([path, notServed]) => {
  const { status, body } = await cluster.send('GET', path);
  expect(status).toBe(404);
  expect(new ApiError('Read', { status, body }).kindNotServed, JSON.stringify(body)).toBe(notServed);
});
