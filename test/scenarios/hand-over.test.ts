import type { V1Deployment } from '@kubernetes/client-node';
import { expect, test } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import type { Wire } from '../../src/author/kubernetes-types.js';
import { deployments, eventually } from '../support/cluster.js';
import { writesTo } from '../support/faults.js';
import type { Matcher } from '../support/faults.js';
import { changesOf, Recording } from '../support/requests.js';
import { Scenario } from '../support/stages.js';
import { replicasManagers } from '../support/subject.js';

type Deployment = AnyObject & Wire<Pick<V1Deployment, 'spec'>>;
const fixed = {
  ...{ size: 4, image: 'example.com/web:1', ports: [{ port: 80 }] },
  resources: { requests: { cpu: '100m' } },
};
const scaling = { ...fixed, autoscaling: { maxReplicas: 20, cpu: 50 } };

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

    await scenario.killedWhileHeld(appliedBy(held), () => apps.edit('web', scaling));
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
