import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { AuditEntry } from '../../../sandbox/audit.js';
import { openSandbox } from '../../../sandbox/client.js';
import { storedVersion } from '../../../src/contract/crd.js';
import { childrenFieldManager, replicasFieldManager } from '../../../src/contract/names.js';
import { leavesOf } from '../../kinds/app-service/schema-walk.js';
import { Cluster } from './cluster.js';
import { startController } from './controller.js';
import type { ControllerProps, RunningController } from './controller.js';
import { installCrd } from './crds.js';
import { eventually } from './eventually.js';
import { pods } from './jobs.js';
import type { KindUnderTest } from './kind-under-test.js';
import { requestsFromNowOn, summary, writes } from './requests.js';
import { settled } from './settled.js';
import { Subject } from './subject.js';

/** What every kind made by `defineKind` does in a cluster, so that the engine need not know any. */
export function behavesAsAnOperator(tested: KindUnderTest, users: readonly [string, string]): void {
  const { kind, spec, optional } = tested;
  const cluster = new Cluster(openSandbox(inject('sandbox')));
  const [user, otherUser] = users;
  let subject: Subject;
  let controller: RunningController;

  const props = (): ControllerProps => ({
    ...{ cluster, user, kinds: [kind] },
    ...(tested.config !== undefined && { config: tested.config }),
    ...(tested.args && { args: tested.args }),
    ...(!tested.clusterWide && { namespaces: [subject.namespace] }),
  });

  beforeAll(async () => {
    await installCrd(cluster, kind);
    subject = new Subject(cluster, kind, await cluster.makeNamespace(kind.name));
    controller = await startController(props());
  });
  afterAll(async () => {
    await controller.kill();
    await cluster.close();
  });

  test('a new custom resource gets its children and becomes Ready', async () => {
    await subject.create('created', spec);

    await subject.ready('created');
    await subject.asRendered('created');
  });

  describe('an edit of the spec', () => {
    test('is tried for every field', () => {
      const schema = storedVersion(kind.crd).schema.openAPIV3Schema.properties!.spec!;
      const all = leavesOf(schema, 'string').map(({ path }) => path.join('.'));
      const tried = [...tested.fields.map(({ path }) => path), ...(tested.barredFields ?? [])];
      expect(tried.sort()).toEqual(all.map((path) => path.replace('walk.example/key', '*')).sort());
    });

    test.for(tested.fields)(
      'that sets, changes and removes $path leads to what a new rendering says',
      async ({ path, without, set, changed, refusedWith }) => {
        const name = nameFor(path);
        const outcome = async (): Promise<void> => {
          if (refusedWith === undefined) await subject.asRendered(name);
          else await subject.condition(name, { type: 'Stalled', status: 'True', reason: refusedWith });
        };
        await subject.create(name, without);
        await subject.asRendered(name);

        await subject.edit(name, set);
        await outcome();
        await subject.edit(name, changed);
        await outcome();
        await subject.edit(name, without);
        await subject.asRendered(name);

        await subject.ready(name);
        await subject.delete(name);
      },
    );

    test('that makes a child superfluous deletes it, and one that wants it again makes it anew', async () => {
      await subject.create('pruned', spec);
      await subject.asRendered('pruned');
      const child = subject.childPlace(optional, 'pruned');
      const { metadata: before } = await cluster.get(child);

      await subject.edit('pruned', tested.specWithoutOptional);
      await eventually(async () => {
        expect(await cluster.find(child)).toBeUndefined();
      });
      await subject.ready('pruned');

      await subject.edit('pruned', spec);
      await subject.asRendered('pruned');
      expect((await cluster.get(child)).metadata.uid).not.toBe(before.uid);
    });
  });

  test.for(tested.drifts)(
    'a change of a $child.kind by somebody else is put right',
    async ({ child, patch }) => {
      const name = `drifted-${child.kind.toLowerCase()}`;
      await subject.create(name, spec);
      await subject.asRendered(name);

      await cluster.merge(subject.childPlace(child, name), patch);

      await subject.asRendered(name);
      expect(await cluster.get(subject.childPlace(child, name))).not.toMatchObject(patch);
    },
  );

  test.for(kind.children)('a $kind that is deleted is made anew', async (child) => {
    const name = `missing-${child.kind.toLowerCase()}`;
    await subject.create(name, spec);
    await subject.asRendered(name);
    const { metadata: before } = await cluster.get(subject.childPlace(child, name));

    await cluster.delete(subject.childPlace(child, name));

    await eventually(async () => {
      expect((await cluster.get(subject.childPlace(child, name))).metadata.uid).not.toBe(before.uid);
    });
    await subject.asRendered(name);
    await subject.ready(name);
  });

  test.for(['Background', 'Foreground'])(
    'a custom resource that is deleted takes its children along (%s)',
    async (propagationPolicy) => {
      const name = `deleted-${propagationPolicy.toLowerCase()}`;
      await subject.create(name, spec);
      await subject.asRendered(name);

      await subject.delete(name, { propagationPolicy });

      await eventually(async () => {
        for (const type of [kind.type, ...kind.children])
          expect(await cluster.find(subject.childPlace(type, name)), type.kind).toBeUndefined();
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
    const names = (await cluster.list(kind.type, subject.namespace)).map(({ metadata }) => metadata.name);

    expect(await controller.stop()).toBe(0);
    const requests = await requestsFromNowOn(cluster, user);
    controller = await startController(props());
    for (const name of names)
      await controller.logged((line) => line.msg === 'Reconciled' && line.name === name);

    expect(writes(await requests()).map(summary)).toEqual([]);
    expect((await requests()).map(({ verb }) => verb).sort()).toEqual(
      [kind.type, ...kind.children, ...kind.related].map(() => 'watch'),
    );
  });

  test("what somebody else adds to a child stays, and isn't fought", async () => {
    await subject.create('shared', spec);
    await subject.asRendered('shared');
    await subject.ready('shared');
    await settled(cluster, user);
    const requests = await requestsFromNowOn(cluster, user);
    const addition = { metadata: { labels: { team: 'shop' }, annotations: { 'example.com/note': 'kept' } } };
    const from = controller.log.length;

    for (const child of kind.children) await cluster.merge(subject.childPlace(child, 'shared'), addition);

    await controller.logged((line) => line.msg === 'Reconciled' && line.name === 'shared', from);
    await settled(cluster, user);
    // The status may tell that the cluster looks at the child anew.
    const written = writes(await requests()).filter(({ objectRef }) => objectRef?.subresource !== 'status');
    expect(written.map(summary)).toEqual([]);
    for (const child of kind.children)
      expect(await cluster.get(subject.childPlace(child, 'shared'))).toMatchObject(addition);
    await subject.asRendered('shared');
  });

  test('with Roles in its own namespaces alone, it works there and nowhere else', async () => {
    expect(await controller.stop()).toBe(0);
    const [first, second] = [await cluster.makeNamespace('one'), await cluster.makeNamespace('two')];
    const [here, there] = [first, second].map((namespace) => new Subject(cluster, kind, namespace));
    await using other = await startController({
      ...{ ...props(), user: otherUser, namespaces: [first, second] },
    });

    await subject.create('elsewhere', spec);
    for (const inside of [here!, there!]) {
      await inside.create('inside', spec);
      await inside.ready('inside');
      await inside.asRendered('inside');
    }
    await here!.delete('inside');
    await eventually(async () => {
      for (const type of kind.children)
        expect(await cluster.find(here!.childPlace(type, 'inside'))).toBeUndefined();
    });

    expect(await other.stop()).toBe(0);
    expect(other.log.filter(({ level }) => level !== 'info' && level !== 'debug')).toEqual([]);
    for (const type of kind.children)
      expect(await cluster.find(subject.childPlace(type, 'elsewhere'))).toBeUndefined();
    // A status may be on its way to a custom resource that is deleted in that moment, which is then looked for once.
    const toTheDeleted = ({ code, objectRef }: AuditEntry): boolean =>
      code === 404 && objectRef?.resource === kind.type.plural && objectRef.namespace === first;
    // The first number of replicas is for a Deployment as it was seen, and said again if its own controller was faster.
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
}

/** The end of the path says most, and a label holds 63 characters. */
function nameFor(path: string): string {
  const words = path.replaceAll(/[A-Z]/g, '-$&').toLowerCase();
  return words
    .replaceAll(/[^a-z]+/g, '-')
    .replace(/-$/, '-any')
    .slice(-50)
    .replace(/^-/, '');
}
