import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { anyRoute } from './support/any-route.js';
import { Cluster } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { requestsFromNowOn, summary, writes } from './support/requests.js';
import { Subject } from './support/subject.js';

const user = 'operator-31';
const cluster = new Cluster(openSandbox(inject('sandbox')));
let apps: Subject;
let controller: RunningController;

beforeAll(async () => {
  await installCrd(cluster, appService);
  apps = new Subject(cluster, appService, await cluster.makeNamespace('optional'));
  const namespaces = [apps.namespace];
  controller = await startController({ cluster, user, kinds: [appService], namespaces, args: anyRoute });
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

/** Renders a Deployment, and each of the fields below one object more. */
const base = {
  ...{ size: 2, image: 'example.com/web:1', resources: { requests: { cpu: '100m' } } },
  ports: [{ port: 80 }],
};
const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'other' };
const optional = [
  {
    type: resourceType({ apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler' }),
    field: { autoscaling: { minReplicas: 2, maxReplicas: 3, cpu: 50 } },
    foreignSpec: { scaleTargetRef, maxReplicas: 2 },
  },
  {
    type: resourceType({ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' }),
    field: { disruption: {} },
    foreignSpec: { maxUnavailable: 2, selector: { matchLabels: { app: 'other' } } },
  },
  {
    type: resourceType({ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute' }),
    field: { route: { parentRefs: [{ name: 'edge' }] } },
    foreignSpec: { parentRefs: [{ name: 'other' }] },
  },
].map((each) => ({ ...each, kind: each.type.kind, name: each.type.kind.toLowerCase() }));
const everything = Object.assign({}, base, ...optional.map(({ field }) => field)) as object;

type Optional = (typeof optional)[number];

function foreign({ type: { apiVersion, kind }, foreignSpec }: Optional, name: string): AnyObject {
  return { apiVersion, kind, metadata: { name, namespace: apps.namespace }, spec: foreignSpec };
}

/** What nobody has touched since: its UID, its owners and what it asks for. */
async function state({ type }: Optional, name: string): Promise<object> {
  const { metadata, spec } = await cluster.get(apps.childPlace(type, name));
  const { uid, ownerReferences, annotations, labels } = metadata;
  return { uid, ownerReferences, annotations, labels, spec };
}

describe('a field that goes', () => {
  test.for(optional)('takes its $kind along and nothing else; back again, it is made anew', async (each) => {
    const name = `${each.name}-field`;
    const others = optional.filter((other) => other !== each);
    const without = Object.assign({}, base, ...others.map(({ field }) => field)) as object;
    await apps.create(name, everything);
    await apps.asRendered(name);
    await apps.ready(name);
    const uidOf = async ({ type }: Optional): Promise<string | undefined> =>
      (await cluster.find(apps.childPlace(type, name)))?.metadata.uid;
    const before = await Promise.all(optional.map(uidOf));
    const requests = await requestsFromNowOn(cluster, user);

    await apps.edit(name, without);
    await apps.asRendered(name);
    await apps.ready(name);

    const after = await Promise.all(optional.map(uidOf));
    expect(after).toEqual(before.map((uid, index) => (optional[index] === each ? undefined : uid)));
    const deletes = writes(await requests()).filter(({ verb }) => verb === 'delete');
    // Refused with 409 where its own controller has written its status meanwhile: only what was seen is deleted.
    const carriedOut = deletes.filter(({ code }) => code !== 409);
    expect(carriedOut.map(summary)).toEqual([`delete ${each.type.plural} ${apps.namespace}/${name} 200`]);
    expect(new Set(deletes.map(({ objectRef }) => objectRef?.resource))).toEqual(new Set([each.type.plural]));

    await apps.edit(name, everything);
    await apps.asRendered(name);
    expect(before).not.toContain(await uidOf(each));
  });
});

describe('an object that is not ours', () => {
  test.for(optional)('a $kind of the name is refused, and left alone when the field goes', async (each) => {
    const name = `${each.name}-foreign`;
    await cluster.create(each.type, foreign(each, name));
    const before = await state(each, name);
    await apps.create(name, base);
    await apps.ready(name);

    await apps.edit(name, { ...base, ...each.field });
    await apps.condition(name, { type: 'Stalled', status: 'True', reason: 'OwnershipConflict' });
    await apps.edit(name, base);
    await apps.ready(name);

    expect(await state(each, name)).toEqual(before);
  });

  test.for(optional)('a $kind that was released stays when the field goes', async (each) => {
    const name = `${each.name}-released`;
    await apps.create(name, { ...base, ...each.field });
    await apps.asRendered(name);
    await cluster.merge(apps.childPlace(each.type, name), { metadata: { ownerReferences: null } });
    await apps.condition(name, { type: 'Stalled', status: 'True', reason: 'OwnershipConflict' });
    const before = await state(each, name);

    await apps.edit(name, base);
    await apps.ready(name);

    expect(await state(each, name)).toEqual(before);
  });

  test.for(optional)(
    'a $kind that has replaced ours behind a controller that was asleep is not taken for ours',
    async (each) => {
      const names = Array.from({ length: 8 }, (_, index) => `${each.name}-replaced-${index}`);
      for (const name of names) await apps.create(name, { ...base, ...each.field });
      for (const name of names) await apps.asRendered(name);

      controller.signal('SIGSTOP');
      // The edit first, so that it is looked at before the rest is known.
      for (const name of names) {
        await apps.edit(name, base);
        await cluster.delete(apps.childPlace(each.type, name));
        await cluster.create(each.type, foreign(each, name));
      }
      const before = await Promise.all(names.map((name) => state(each, name)));
      controller.signal('SIGCONT');

      for (const name of names) await apps.ready(name);
      expect(await Promise.all(names.map((name) => state(each, name)))).toEqual(before);
    },
  );
});
