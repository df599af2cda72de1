import { expect, test } from 'vitest';
import { CREATED_ANNOTATION } from '../../src/contract/names.js';
import { controllerOf } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { loadKind } from '../support/bundle.js';
import { collection, configMaps, deployments, eventually, events, pods } from '../support/cluster.js';
import type { Place } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary, writes } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();
const statefulSets = resourceType({ apiVersion: 'apps/v1', kind: 'StatefulSet' });
const user = 'operator-106';
const image = (version: number): string => `example.com/app:${version}`;

interface Workload extends AnyObject {
  readonly spec: {
    readonly replicas: number;
    readonly template: { readonly spec: { readonly containers: readonly { readonly image: string }[] } };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly availableReplicas?: number;
  };
}

let subject: Subject | undefined;

/** Works as one release of the kind. */
async function release(
  name: 'frozen' | 'frozen-before',
  work: (frozen: Subject, controller: RunningController) => Promise<void>,
): Promise<void> {
  const { kind, config } = await loadKind(`test/support/kinds/${name}.config.mjs`);
  subject ??= await Subject.make(cluster, kind, 'frozen');
  const props = { cluster, user, kinds: [kind], config, namespaces: [subject.namespace] };
  await using controller = await startController(props);
  await work(subject, controller);
  expect(await controller.stop()).toBe(0);
}

const place = (name: string): Place => subject!.childPlace(deployments, name);
const live = async (name: string): Promise<Workload> => cluster.get<Workload>(place(name));
/** Number of templates that its controller has rolled out. */
const revisionOf = ({ metadata }: AnyObject): string | undefined =>
  metadata.annotations?.['deployment.kubernetes.io/revision'];
const imageOf = ({ spec }: Workload): string => spec.template.spec.containers[0]!.image;

async function says(name: string, seen: string): Promise<void> {
  await eventually(async () => {
    const { data } = await cluster.get(subject!.childPlace(configMaps, name));
    expect(data).toEqual({ seen });
  });
}

/** Checks that nothing is written for a custom resource that is reconciled. */
async function isSteady(name: string, value: string): Promise<void> {
  await settled(cluster, user, { namespace: subject!.namespace });
  const requests = await requestsFromNowOn(cluster, user, subject!.namespace);
  await subject!.touch(name, value);
  await settled(cluster, user, { namespace: subject!.namespace });
  expect(writes(await requests()).map(summary)).toEqual([]);
}

test('a child stays as it was created over edits, drift, restarts and a lost record, until it is deleted', async () => {
  await release('frozen', async (frozen) => {
    await frozen.create('web', {});
    await frozen.ready('web');
    await says('web', 'Deployment true x');

    await frozen.edit('web', { image: image(2), tier: 'y' });
    await frozen.ready('web');
    await says('web', 'Deployment false y');
    expect(imageOf(await live('web'))).toBe(image(1));
    await isSteady('web', 'once');
    expect(revisionOf(await live('web'))).toBe('1');

    const containers = [{ name: 'app', image: image(3) }];
    await cluster.merge(place('web'), { spec: { replicas: 2, template: { spec: { containers } } } });
    await eventually(async () => {
      const now = await live('web');
      expect([imageOf(now), now.spec.replicas]).toEqual([image(1), 1]);
      // So that what the status says of it doesn't change any more.
      const { observedGeneration, replicas, availableReplicas } = now.status ?? {};
      expect([observedGeneration, replicas, availableReplicas]).toEqual([now.metadata.generation, 1, 1]);
    });
    await frozen.ready('web');
  });

  await release('frozen', async (frozen) => {
    await isSteady('web', 'restarted');
    const record = (await live('web')).metadata.annotations?.[CREATED_ANNOTATION];
    for (const broken of [null, 'nothing', 'q1YqVrJSUKoFAA==']) {
      await cluster.merge(place('web'), { metadata: { annotations: { [CREATED_ANNOTATION]: broken } } });
      await eventually(async () => {
        expect((await live('web')).metadata.annotations?.[CREATED_ANNOTATION]).toBe(record);
      });
    }
    expect(imageOf(await live('web'))).toBe(image(1));
    await isSteady('web', 'mended');

    await cluster.delete(place('web'));
    await says('web', 'Deployment true y');
    expect(imageOf(await live('web'))).toBe(image(2));
    await frozen.ready('web');
    await isSteady('web', 'again');
  });
});

test('where the option comes later, what is there stays as it is', async () => {
  await release('frozen-before', async (frozen) => {
    await frozen.create('late', { image: image(1) });
    await frozen.ready('late');
  });
  await subject!.edit('late', { image: image(2), tier: 'y' });
  await release('frozen', async () => {
    await says('late', 'Deployment false y');
    const now = await live('late');
    expect(imageOf(now)).toBe(image(1));
    expect(now.metadata.annotations?.[CREATED_ANNOTATION]).toBeDefined();
    await isSteady('late', 'later');
    expect(revisionOf(await live('late'))).toBe('1');
  });
});

test('a StatefulSet whose claim templates change is made again around its Pods', async () => {
  await release('frozen', async (frozen) => {
    await frozen.create('data', { claim: '1Gi' });
    const place = frozen.childPlace(statefulSets, 'data');
    const pod = { ...frozen.childPlace(pods, 'data-0') };
    const ownerOf = async (): Promise<string | undefined> => controllerOf(await cluster.get(pod))?.uid;
    const before = await eventually(async () => {
      expect(await ownerOf()).toBe((await cluster.get(place)).metadata.uid);
      return (await cluster.get(pod)).metadata.uid;
    });
    const replaced = async (spec: object): Promise<void> => {
      const was = await ownerOf();
      await frozen.edit('data', spec);
      await eventually(async () => {
        const { metadata } = await cluster.get(place);
        expect(metadata.uid).not.toBe(was);
        expect(await ownerOf()).toBe(metadata.uid);
      });
    };
    await replaced({ claim: '2Gi' });
    expect((await cluster.get(pod)).metadata.uid).toBe(before);

    // A running Pod can't get another volume, so it stays, too, as `compareRendered` says.
    await replaced({ claim: '2Gi', logs: '1Gi' });
    await eventually(async () => {
      const found = await cluster.list<AnyObject & { readonly reason?: string }>(events, frozen.namespace);
      expect(found.map(({ reason }) => reason)).toContain('FailedUpdate');
    });
    expect((await cluster.get(pod)).metadata.uid).toBe(before);
  });
});

interface Pod extends AnyObject {
  readonly spec: { readonly containers: readonly { readonly image: string }[] };
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

test('a construct that leaves out what is not current replaces its Pods one at a time', async () => {
  const { kind, config } = await loadKind('examples/ring/reconstruct.config.mjs');
  const rings = await Subject.make(cluster, kind, 'rings');
  await using controller = await startController({
    ...{ cluster, user: 'operator-107', kinds: [kind], config, namespaces: [rings.namespace] },
  });
  await rings.create('cache', { image: image(1) });
  await rings.ready('cache');
  const members = async (): Promise<Pod[]> => cluster.list<Pod>(pods, rings.namespace);
  const before = (await members()).map(({ metadata }) => metadata.uid);
  expect(before).toHaveLength(3);

  const end = new AbortController();
  const lines = await cluster.watch(collection(pods, rings.namespace), {}, end.signal);
  const ready = new Set<string>();
  const numbers: number[] = [];
  const following = (async () => {
    for await (const line of lines) {
      const { type, object } = JSON.parse(line) as { type: string; object: Pod };
      const { name, deletionTimestamp } = object.metadata;
      const isReady = object.status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True');
      if (isReady && !deletionTimestamp && type !== 'DELETED') ready.add(name);
      else ready.delete(name);
      numbers.push(ready.size);
    }
  })().catch((error: unknown) => {
    if (!end.signal.aborted) throw error;
  });
  await rings.edit('cache', { image: image(2) });
  await rings.ready('cache');
  const after = await members();
  expect(after.map(({ spec }) => spec.containers[0]?.image)).toEqual([image(2), image(2), image(2)]);
  expect(after.filter(({ metadata }) => before.includes(metadata.uid))).toEqual([]);
  await eventually(() => {
    expect(numbers.at(-1)).toBe(3);
  });
  end.abort();
  await following;
  expect(Math.min(...numbers.slice(numbers.indexOf(3)))).toBe(2);
  expect(await controller.stop()).toBe(0);
});
