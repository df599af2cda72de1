import { beforeAll, describe, expect, test } from 'vitest';
import type { AuditEntry } from '../../sandbox/audit.js';
import { childrenFieldManager, replicasFieldManager } from '../../src/contract/names.js';
import { resourceType } from '../../src/contract/resource.js';
import type { ResourceType } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { loadKind } from '../support/bundle.js';
import type { ConfiguredKind } from '../support/bundle.js';
import {
  autoscalers,
  configMaps,
  deployments,
  eventually,
  httpRoutes,
  pods,
  services,
} from '../support/cluster.js';
import { anyRoute, startController } from '../support/operator.js';
import type { ControllerProps, RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

/** A kind that every test below is passed with. */
interface KindUnderTest extends ConfiguredKind {
  readonly users: readonly [string, string];
  readonly args?: readonly string[];
  /** Renders a child of every type, and starts nothing that changes by itself. */
  readonly spec: object;
  /** The same without the child that is optional. */
  readonly specWithoutOptional: object;
  readonly optional: ResourceType;
  /** One edit by others per child, of a field that is rendered. */
  readonly drifts: readonly { readonly child: ResourceType; readonly patch: object }[];
}

const withoutService = {
  ...{ size: 0, image: 'example.com/web:1', resources: { requests: { cpu: '100m' } } },
  ...{ autoscaling: { maxReplicas: 3, cpu: 50 }, disruption: {} },
};
const task = { schedule: '0 0 29 2 *', image: 'example.com/task:1' };

const tested: readonly KindUnderTest[] = [
  {
    ...{ kind: appService, users: ['operator-0', 'operator-1'], args: anyRoute },
    spec: { ...withoutService, ports: [{ port: 80 }], route: { parentRefs: [{ name: 'edge' }] } },
    ...{ specWithoutOptional: withoutService, optional: services },
    drifts: [
      { child: deployments, patch: { spec: { template: { metadata: { labels: { app: 'other' } } } } } },
      { child: services, patch: { spec: { type: 'ClusterIP' } } },
      { child: autoscalers, patch: { spec: { maxReplicas: 9 } } },
      {
        child: resourceType({ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' }),
        patch: { spec: { maxUnavailable: 9 } },
      },
      { child: httpRoutes, patch: { spec: { parentRefs: [{ name: 'other' }] } } },
    ],
  },
  {
    ...(await loadKind('examples/scheduled-task/reconstruct.config.mjs')),
    users: ['operator-2', 'operator-3'],
    spec: { ...task, script: 'true\n' },
    ...{ specWithoutOptional: task, optional: configMaps },
    drifts: [
      {
        child: resourceType({ apiVersion: 'batch/v1', kind: 'CronJob' }),
        patch: { spec: { schedule: '1 1 1 1 1' } },
      },
      { child: configMaps, patch: { data: { 'script.sh': 'false\n' } } },
    ],
  },
];

const cluster = openCluster();

/** What every kind of `defineKind` does in a cluster, so that the engine need not know any. */
describe.each(tested)('$kind.name', ({ kind, config, args, users, spec, ...rest }) => {
  const { optional, specWithoutOptional, drifts } = rest;
  const [user, otherUser] = users;
  let subject: Subject;
  let controller: RunningController;

  const props = (): ControllerProps => ({
    ...{ cluster, user, kinds: [kind], namespaces: [subject.namespace] },
    ...(config !== undefined && { config }),
    ...(args && { args }),
  });
  const isMissing = async (type: ResourceType, name: string, where = subject): Promise<void> => {
    expect(await cluster.find(where.childPlace(type, name)), type.kind).toBeUndefined();
  };
  const rendered = async (name: string): Promise<void> => {
    await subject.create(name, spec);
    await subject.asRendered(name);
  };

  beforeAll(async () => {
    subject = await Subject.make(cluster, kind, kind.name);
    controller = await startController(props());
  });

  test('a new custom resource gets its children and becomes Ready', async () => {
    await rendered('created');
    await subject.ready('created');
  });

  test('an edit that makes a child superfluous deletes it, and one that wants it again creates another', async () => {
    await rendered('pruned');
    const child = subject.childPlace(optional, 'pruned');
    const { metadata: before } = await cluster.get(child);

    await subject.edit('pruned', specWithoutOptional);
    await eventually(() => isMissing(optional, 'pruned'));
    await subject.ready('pruned');

    await subject.edit('pruned', spec);
    await subject.asRendered('pruned');
    expect((await cluster.get(child)).metadata.uid).not.toBe(before.uid);
  });

  test.for(drifts)('drift of a $child.kind is corrected', async ({ child, patch }) => {
    const name = `drifted-${child.kind.toLowerCase()}`;
    await rendered(name);

    await cluster.merge(subject.childPlace(child, name), patch);

    await subject.asRendered(name);
    expect(await cluster.get(subject.childPlace(child, name))).not.toMatchObject(patch);
  });

  test.for(kind.children)('a $kind that is deleted is created again', async (child) => {
    const name = `missing-${child.kind.toLowerCase()}`;
    const place = subject.childPlace(child, name);
    await rendered(name);
    const { metadata: before } = await cluster.get(place);

    await cluster.delete(place);

    await eventually(async () => {
      expect((await cluster.get(place)).metadata.uid).not.toBe(before.uid);
    });
    await subject.asRendered(name);
    await subject.ready(name);
  });

  test.for(['Background', 'Foreground'] as const)(
    'a custom resource that is deleted takes its children along (%s)',
    async (propagationPolicy) => {
      const name = `deleted-${propagationPolicy.toLowerCase()}`;
      await rendered(name);

      await subject.delete(name, { propagationPolicy });

      await eventually(async () => {
        for (const type of [kind.type, ...kind.children]) await isMissing(type, name);
      });
    },
  );

  test('a restart over settled custom resources writes nothing', async () => {
    await subject.create('settled', spec);
    await subject.ready('settled');
    // A pod that goes is counted in the status until it has gone.
    await eventually(async () => {
      const all = await cluster.list(pods, subject.namespace);
      expect(all.filter(({ metadata }) => metadata.deletionTimestamp)).toEqual([]);
    });
    await settled(cluster, user);
    const live = await cluster.list(kind.type, subject.namespace);

    expect(await controller.stop()).toBe(0);
    const requests = await requestsFromNowOn(cluster, user);
    controller = await startController(props());
    for (const { metadata } of live) await controller.reconciled(metadata.name);

    expect(writes(await requests()).map(summary)).toEqual([]);
    expect((await requests()).map(({ verb }) => verb).sort()).toEqual(
      [kind.type, ...kind.children, ...kind.related].map(() => 'watch'),
    );
  });

  test('additions of others to a child stay, and are not fought', async () => {
    await rendered('shared');
    await subject.ready('shared');
    await settled(cluster, user);
    const requests = await requestsFromNowOn(cluster, user);
    const addition = { metadata: { labels: { team: 'shop' }, annotations: { 'example.com/note': 'kept' } } };
    const from = controller.log.length;

    for (const child of kind.children) await cluster.merge(subject.childPlace(child, 'shared'), addition);

    await controller.reconciled('shared', from);
    await settled(cluster, user);
    // The status may report that the cluster looks at the child again.
    const written = writes(await requests()).filter(({ objectRef }) => objectRef?.subresource !== 'status');
    expect(written.map(summary)).toEqual([]);
    for (const child of kind.children)
      expect(await cluster.get(subject.childPlace(child, 'shared'))).toMatchObject(addition);
    await subject.asRendered('shared');
  });

  test('with Roles in its own namespaces alone, it works there and nowhere else', async () => {
    expect(await controller.stop()).toBe(0);
    const [here, there] = [
      await Subject.make(cluster, kind, 'one'),
      await Subject.make(cluster, kind, 'two'),
    ];
    const namespaces = [here.namespace, there.namespace];
    await using other = await startController({ ...props(), user: otherUser, namespaces });

    await subject.create('elsewhere', spec);
    for (const inside of [here, there]) {
      await inside.create('inside', spec);
      await inside.ready('inside');
      await inside.asRendered('inside');
    }
    await here.delete('inside');
    await eventually(async () => {
      for (const type of kind.children) await isMissing(type, 'inside', here);
    });

    expect(await other.stop()).toBe(0);
    expect(other.log.filter(({ level }) => level !== 'info' && level !== 'debug')).toEqual([]);
    for (const type of kind.children) await isMissing(type, 'elsewhere');
    // A status may be on its way to a custom resource that is deleted in that moment, which is then looked for once.
    const toTheDeleted = ({ code, objectRef }: AuditEntry): boolean =>
      code === 404 && objectRef?.resource === kind.type.plural && objectRef.namespace === here.namespace;
    // The first number of replicas is for a Deployment as it was seen, and sent again if its own controller was faster.
    const overtaken = ({ code, uri }: AuditEntry): boolean =>
      code === 409 && uri.includes(`fieldManager=${replicasFieldManager(kind.type.kind)}&`);
    const refused = (await cluster.sandbox.audit(otherUser)).filter(({ code = 0 }) => code >= 400);
    expect(refused.filter((request) => !toTheDeleted(request) && !overtaken(request))).toEqual([]);
  });

  test('the custom resource itself is never written, except for its status', async () => {
    const written = writes(await cluster.sandbox.audit(user)).filter(
      ({ objectRef }) => objectRef?.resource === kind.type.plural,
    );

    expect(new Set(written.map(({ objectRef }) => objectRef?.subresource))).toEqual(new Set(['status']));
    expect(childrenFieldManager(kind.type.kind)).toBe(`${kind.name}-controller`);
  });
});
