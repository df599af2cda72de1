import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, test } from 'vitest';
import type { AuditEntry } from '../../sandbox/audit.js';
import { repoFolder } from '../../sandbox/paths.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { accountKubeconfig, eventually } from '../support/cluster.js';
import { Reconstruct } from '../support/commands.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import type { LiveResource } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-9';
const count = 200;
const idleMilliseconds = 60_000;
const names = Array.from({ length: count }, (_, index) => `web-${index}`);
const cluster = openCluster();
let apps: Subject;
let controller: RunningController;

const start = (): Promise<RunningController> =>
  startController({ cluster, user, kinds: [appService], namespaces: [apps.namespace] });

beforeAll(async () => {
  apps = await Subject.make(cluster, appService, 'scale');
  controller = await start();
});

async function allReady(): Promise<void> {
  await eventually(
    async () => {
      const live = await cluster.list<LiveResource>(appService.type, apps.namespace);
      const ready = live.filter(({ metadata, status }) =>
        status?.conditions?.some(
          ({ type, status, observedGeneration }) =>
            type === 'Ready' && status === 'True' && observedGeneration === metadata.generation,
        ),
      );
      expect(ready).toHaveLength(count);
    },
    { deadlineMilliseconds: 240_000, intervalMilliseconds: 200 },
  );
}

/** How often something was written, by resource: `deployments`, `services`, `appservices/status`. */
function byResource(entries: readonly AuditEntry[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { objectRef } of entries) {
    const { resource = '', subresource } = objectRef ?? {};
    const what = subresource === undefined ? resource : `${resource}/${subresource}`;
    counts[what] = (counts[what] ?? 0) + 1;
  }
  return counts;
}

/** What an overloaded API server answers, and what it notes where nobody waits for its answer any more. */
const isBusy = ({ code }: AuditEntry): boolean => code === 429 || code === 504;

test('200 custom resources at once all become Ready, with one request for each child', async () => {
  const requests = await requestsFromNowOn(cluster, user);
  const startedAt = Date.now();
  const spec = { size: 1, image: 'example.com/web:1', ports: [{ port: 80 }] };
  await Promise.all(names.map((name) => apps.create(name, spec)));
  await allReady();
  const seconds = (Date.now() - startedAt) / 1000;
  await settled(cluster, user);

  const sent = await requests();
  // What an API server with too much to do refuses is asked for again.
  const busy = sent.filter(isBusy);
  const answered = sent.filter((entry) => !isBusy(entry));
  expect(busy.length, 'refusals').toBeLessThan(count / 2);
  const { 'appservices/status': statuses = 0, ...children } = byResource(writes(answered));
  expect(children, busy.map(summary).join('\n')).toEqual({ deployments: count, services: count });
  expect(answered.filter(({ code = 0 }) => code >= 400).map(summary)).toEqual([]);
  expect(sent.filter(({ verb }) => verb === 'get' || verb === 'list')).toEqual([]);
  // Two requests for the children of each; the rest are changes of its status that happened.
  expect(statuses).toBeGreaterThanOrEqual(count);
  expect(statuses).toBeLessThanOrEqual(8 * count);
  const perResource = (2 + statuses / count).toFixed(2);
  console.info(`All Ready after ${seconds.toFixed(1)} s; ${perResource} requests for each`);
}, 300_000);

test('a restart over them writes nothing', async () => {
  expect(await controller.stop()).toBe(0);
  const requests = await requestsFromNowOn(cluster, user);

  controller = await start();
  await eventually(() => {
    const seen = new Set(controller.log.filter(({ msg }) => msg === 'reconciled').map(({ name }) => name));
    expect(seen.size).toBe(count);
  });

  // One stream for each type, which delivers what is there and then follows.
  const types = [appService.type, ...appService.children, ...appService.related];
  const sent = (await requests()).map(summary);
  expect(sent.filter((request) => !/^watch .* 200$/.test(request))).toEqual([]);
  expect(sent, sent.join('\n')).toHaveLength(types.length);
});

test('what a version would change of them costs one request for each object that would change, and none for others', async () => {
  const differ = new Reconstruct('diff', await accountKubeconfig(cluster, user), [
    '--all',
    '-n',
    apps.namespace,
  ]);
  const requests = await requestsFromNowOn(cluster, user);
  const same = await differ.run('--kinds', 'appservice');
  expect(same, same.stderr).toMatchObject({
    code: 0,
    stdout: `${count} AppService compared, with ${2 * count} objects: no changes\n`,
  });
  const asked = (await requests()).map(({ verb }) => verb);
  expect(asked.filter((verb) => verb !== 'list' && verb !== 'get')).toEqual([]);
  // Far fewer than there are objects.
  expect(asked.length).toBeLessThan(count / 4);

  const next = join(repoFolder(), 'test/support/kinds/next-version.config.mjs');
  const later = await requestsFromNowOn(cluster, user);
  const { code, stdout, stderr } = await differ.run('--config', next);
  expect([code, stdout], stderr).toEqual([
    1,
    `${count} AppService compared, with ${2 * count} objects: ${count} to change

Deployment: .spec.template.spec.containers[].imagePullPolicy changed in ${count} of ${count}
  e.g. ${['web-0', 'web-1', 'web-10'].map((name) => `${apps.namespace}/${name}`).join(', ')}; pods are replaced
- IfNotPresent
+ Always
`,
  ]);
  const verbs = (await later()).map(({ verb }) => verb);
  expect(verbs.filter((verb) => verb === 'patch')).toHaveLength(count);
  expect(verbs.length - count).toBeLessThan(count / 4);
});

test('idle over them, it sends no request for 60 s', async () => {
  const requests = await requestsFromNowOn(cluster, user);

  // The measurement itself: a window in which nothing may happen.
  await delay(idleMilliseconds);

  expect((await requests()).map(summary)).toEqual([]);
  // The watches that are open do work.
  await apps.edit('web-0', { size: 0, image: 'example.com/web:2' });
  await apps.asRendered('web-0');
});
