import type { V1Deployment } from '@kubernetes/client-node';
import { expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import type { Wire } from '../../src/kinds/app-service/spec.js';
import { replicasManagers, scaleAsAutoscaler } from '../full/support/autoscaler.js';
import { deployments } from '../full/support/cluster.js';
import { eventually } from '../full/support/eventually.js';
import { changesOf, Recording } from '../full/support/recording.js';
import type { LiveResource } from '../full/support/subject.js';
import { Gate } from './support/faults.js';
import { writesTo } from './support/proxied-request.js';
import type { Matcher } from './support/proxied-request.js';
import { Scenario } from './support/scenario.js';

type Deployment = AnyObject & Wire<Pick<V1Deployment, 'spec'>>;

const autoscalers = resourceType({ apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler' });
const fixed = {
  ...{ size: 4, image: 'example.com/web:1', ports: [{ port: 80 }] },
  resources: { requests: { cpu: '100m' } },
};
const scaling = { ...fixed, autoscaling: { maxReplicas: 20, cpu: 50 } };

/** The controller is killed with SIGKILL while a request waits that never reaches the API server; the next one starts. */
async function replaceWhileHeld(
  scenario: Scenario,
  held: Matcher,
  meanwhile: () => Promise<void>,
): Promise<void> {
  const gate = new Gate();
  const rule = scenario.proxy.on(held, gate.fault);
  await meanwhile();
  await eventually(() => {
    expect(gate.held).toBe(1);
  });
  await scenario.controller.kill();
  rule.remove();
}

const appliedBy =
  (manager: string): Matcher =>
  (request) =>
    writesTo('deployments', 'web')(request) && request.query.get('fieldManager') === manager;

test.each([
  { half: 'the first', held: 'appservice-replicas', left: ['appservice-controller'] },
  {
    half: 'the second',
    held: 'appservice-controller',
    left: ['appservice-controller', 'appservice-replicas'],
  },
])(
  'killed before $half half of the hand-over to an autoscaler, replicas never move',
  async ({ held, left }) => {
    await using scenario = await Scenario.start({ purpose: 'handed-over' });
    const { cluster, subject: apps } = scenario;
    const place = apps.childPlace(deployments, 'web');
    const managers = async (): Promise<string[]> => replicasManagers(await cluster.get(place));
    await apps.create('web', fixed);
    await apps.ready('web');
    await using recording = await Recording.start<Deployment>(cluster, place);

    await replaceWhileHeld(scenario, appliedBy(held), () => apps.edit('web', scaling));
    expect((await managers()).sort()).toEqual(left);
    await scenario.startController();
    await apps.asRendered('web');
    await eventually(async () => {
      expect(await managers()).toEqual(['appservice-replicas']);
    });
    await apps.ready('web');

    const replicas = (await recording.states()).map(({ spec }) => spec?.replicas);
    expect(changesOf(replicas)).toEqual([4]);
    await scenario.endsWell();
  },
);

/** What nobody owned before a write through `/scale` has no owner after it either. */
test.each([
  { what: 'while the first number is on its way', held: true },
  { what: 'before the first number is said', held: false },
])(
  'scaled by the autoscaler $what, a new Deployment keeps what the autoscaler has said',
  async ({ held }) => {
    await using scenario = await Scenario.prepare({ purpose: 'scaled-early' });
    const { cluster, subject: apps, namespace } = scenario;
    const place = apps.childPlace(deployments, 'web');
    const gate = new Gate();
    const rule = scenario.proxy.on(appliedBy('appservice-replicas'), gate.fault);
    await scenario.startController();
    await apps.create('web', scaling);
    await eventually(() => {
      expect(gate.held).toBe(1);
    });
    await using recording = await Recording.start<Deployment>(cluster, place);
    await using told = await Recording.start<AnyObject & Pick<LiveResource, 'status'>>(
      cluster,
      apps.place('web'),
    );
    await scaleAsAutoscaler(cluster, { namespace, name: 'web' }, 6);

    if (held) gate.open();
    else await scenario.controller.kill();
    rule.remove();
    if (!held) await scenario.startController();
    await eventually(async () => {
      expect(replicasManagers(await cluster.get(place))).toEqual(['appservice-replicas']);
    });
    await apps.ready('web');
    await scaleAsAutoscaler(cluster, { namespace, name: 'web' }, 1);
    await apps.edit('web', { ...scaling, size: 5 });
    await apps.asRendered('web');
    await apps.ready('web');

    const replicas = (await recording.states()).map(({ spec }) => spec?.replicas);
    expect(changesOf(replicas)).toEqual([1, 6, 1]);
    // A plan that was made on a stale view is no news.
    const reasons = (await told.states()).flatMap(({ status }) =>
      (status?.conditions ?? []).map(({ reason }) => reason),
    );
    expect(reasons).not.toContain('Conflict');
    await scenario.endsWell();
  },
);

test('killed between taking replicas back and deleting the autoscaler, which scales once more, they end at the size', async () => {
  await using scenario = await Scenario.start({ purpose: 'taken-back' });
  const { cluster, subject: apps } = scenario;
  const place = apps.childPlace(deployments, 'web');
  await apps.create('web', scaling);
  await apps.ready('web');
  await scaleAsAutoscaler(cluster, { namespace: apps.namespace, name: 'web' }, 6);
  await apps.ready('web');
  await using recording = await Recording.start<Deployment>(cluster, place);

  await replaceWhileHeld(scenario, writesTo('horizontalpodautoscalers', 'web'), () =>
    apps.edit('web', fixed),
  );
  await scaleAsAutoscaler(cluster, { namespace: apps.namespace, name: 'web' }, 5);
  await scenario.startController();
  await apps.asRendered('web');
  await apps.ready('web');

  expect(await cluster.find(apps.childPlace(autoscalers, 'web'))).toBeUndefined();
  expect(replicasManagers(await cluster.get(place))).toEqual(['appservice-controller']);
  const replicas = (await recording.states()).map(({ spec }) => spec?.replicas);
  expect(changesOf(replicas)).toEqual([6, 4, 5, 4]);
  await scenario.endsWell();
});
