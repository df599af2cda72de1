import { setInterval as every } from 'node:timers/promises';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import type { AnyObject, ObjectRef } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import type { ResourceType } from '../../src/contract/resource.js';
import { bundleConfig, configMap, jobs, loadBundle, service } from './support/bundle.js';
import { Cluster, collection, configMaps, events, services } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { Differ } from './support/diff.js';
import { eventually } from './support/eventually.js';
import { requestsFromNowOn, summary, writes } from './support/requests.js';
import { settled } from './support/settled.js';
import { Subject } from './support/subject.js';

const user = 'operator-22';
const bundle = await loadBundle();
const cluster = new Cluster(openSandbox(inject('sandbox')));
let bundles: Subject;
let controller: RunningController;

beforeAll(async () => {
  await installCrd(cluster, bundle);
  bundles = new Subject(cluster, bundle, await cluster.makeNamespace('contested'));
  controller = await startController({
    ...{ cluster, user, kinds: [bundle], config: bundleConfig, namespaces: [bundles.namespace] },
  });
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

async function eventsOf(name: string): Promise<AnyObject[]> {
  const all = await cluster.list<AnyObject & { regarding: ObjectRef }>(events, bundles.namespace);
  return all.filter(({ regarding }) => regarding.kind === 'Bundle' && regarding.name === name);
}

async function isContested(name: string): Promise<boolean> {
  const { status } = await bundles.get(name);
  return status?.conditions?.some(({ reason }) => reason === 'FieldContested') ?? false;
}

async function dataOf(name: string): Promise<unknown> {
  return (await cluster.get(bundles.childPlace(configMaps, name))).data;
}

test('a writer that changes a field of ours again and again is named once, and met with few writes', async () => {
  await bundles.create('fought', {
    objects: [configMap('fought', { level: 'ours' }), configMap('beside', { of: 'fought' })],
  });
  await bundles.condition('fought', { type: 'Ready', status: 'True' });
  const requests = await requestsFromNowOn(cluster, user);

  // Twenty times what a polite controller would do, for four seconds; longer where it is met so slowly.
  let rounds = 0;
  for await (const level of every(200, 'theirs')) {
    await cluster.merge(
      bundles.childPlace(configMaps, 'fought'),
      { data: { level: `${level}-${rounds}` } },
      'rival-controller',
    );
    if (++rounds >= 20 && ((await isContested('fought')) || rounds === 200)) break;
  }

  const contested = await bundles.condition('fought', {
    type: 'Ready',
    status: 'False',
    reason: 'FieldContested',
  });
  expect(contested.message).toContain('rival-controller');
  expect(contested.message).toContain('.data.level');
  const applies = async (): Promise<string[]> =>
    writes(await requests())
      .filter(({ objectRef }) => objectRef?.resource === 'configmaps')
      .map(summary);
  expect((await applies()).length).toBeLessThanOrEqual(6);
  await settled(cluster, user);
  await eventually(async () => {
    const told = (await eventsOf('fought')).filter(({ reason }) => reason === 'FieldContested');
    expect(told).toMatchObject([{ type: 'Warning', note: contested.message }]);
  });

  // What is no longer asked for goes, although the fight lasts.
  await bundles.edit('fought', { objects: [configMap('fought', { level: 'ours' })] });
  await eventually(async () => {
    expect(await cluster.find(bundles.childPlace(configMaps, 'beside'))).toBeUndefined();
  });
  await bundles.condition('fought', { type: 'Ready', status: 'False', reason: 'FieldContested' });

  // What the custom resource says anew isn't kept waiting.
  await bundles.edit('fought', { objects: [configMap('fought', { level: 'ours', other: 'new' })] });
  await eventually(async () => {
    expect(await dataOf('fought')).toEqual({ level: 'ours', other: 'new' });
  });
  await cluster.merge(
    bundles.childPlace(configMaps, 'fought'),
    { data: { level: 'theirs' } },
    'rival-controller',
  );
  await bundles.condition('fought', { type: 'Ready', status: 'False', reason: 'FieldContested' });

  // It has stopped, so the field is put right, and the condition clears by itself.
  await eventually(
    async () => {
      expect(await dataOf('fought')).toEqual({ level: 'ours', other: 'new' });
    },
    // As long as the sixth correction is followed by a pause, and again as long.
    { deadlineMilliseconds: 45_000 },
  );
  await bundles.condition('fought', { type: 'Ready', status: 'True' });
  expect((await applies()).length).toBeLessThanOrEqual(8);
});

test('changes by people to many objects are put right one by one, and none has to wait', async () => {
  const names = Array.from({ length: 25 }, (_, index) => `peopled-${index}`);
  await bundles.create('peopled', { objects: names.map((name) => configMap(name, { level: 'ours' })) });
  await bundles.condition('peopled', { type: 'Ready', status: 'True' });
  const from = controller.log.length;

  for (const name of names) {
    await cluster.merge(bundles.childPlace(configMaps, name), { data: { level: 'theirs' } });
    await eventually(async () => {
      expect(await dataOf(name)).toEqual({ level: 'ours' });
    });
    // Who has to wait is told so.
    const contested = controller.log.slice(from).filter((line) => line.reason === 'FieldContested');
    expect(contested).toEqual([]);
  }

  await bundles.condition('peopled', { type: 'Ready', status: 'True' });
  expect((await eventsOf('peopled')).filter(({ type }) => type === 'Warning')).toEqual([]);
});

test('two custom resources that want the same child: the second is refused, and the child stays as it is', async () => {
  await bundles.create('first', { objects: [configMap('wanted', { by: 'first' })] });
  await bundles.condition('first', { type: 'Ready', status: 'True' });
  await bundles.create('second', { objects: [configMap('wanted', { by: 'second' })] });

  const stalled = await bundles.condition('second', {
    type: 'Stalled',
    status: 'True',
    reason: 'OwnershipConflict',
  });
  expect(stalled.message).toContain('controlled by Bundle first');
  await settled(cluster, user);
  const requests = await requestsFromNowOn(cluster, user);
  const touched = { metadata: { annotations: { 'example.com/touched': 'yes' } } };
  const from = controller.log.length;
  await cluster.merge(bundles.place('first'), touched);
  await cluster.merge(bundles.place('second'), touched);
  await controller.logged((line) => line.msg === 'Reconciled' && line.name === 'second', from);
  await settled(cluster, user);
  expect(writes(await requests()).map(summary)).toEqual([]);
  expect(await dataOf('wanted')).toEqual({ by: 'first' });

  await bundles.edit('first', { objects: [] });
  await bundles.condition('second', { type: 'Ready', status: 'True' });
  expect(await dataOf('wanted')).toEqual({ by: 'second' });
});

test('while one apply of several fails, nothing is pruned, the others are applied, and the status tells which', async () => {
  const [a, b] = [configMap('part-a', { a: '1' }), configMap('part-b', { b: '1' })];
  await bundles.create('parts', { objects: [a, b] });
  await bundles.condition('parts', { type: 'Ready', status: 'True' });

  const refused = service('part-c', [{ port: 80, nodePort: 1 }]);
  await bundles.edit('parts', { objects: [a, refused, configMap('part-d', { d: '1' })] });

  const stalled = await bundles.condition('parts', { type: 'Stalled', status: 'True', reason: 'Invalid' });
  expect(stalled.message).toContain('Service');
  expect(stalled.message).toContain('part-c');
  expect(await dataOf('part-b')).toEqual({ b: '1' });
  expect(await dataOf('part-d')).toEqual({ d: '1' });

  await bundles.edit('parts', { objects: [a, configMap('part-d', { d: '1' })] });
  await bundles.condition('parts', { type: 'Ready', status: 'True' });
  await eventually(async () => {
    expect(await cluster.find(bundles.childPlace(configMaps, 'part-b'))).toBeUndefined();
  });
});

function job(name: string, image: string, labels: Readonly<Record<string, string>> = {}): object {
  const spec = { containers: [{ name: 'main', image }], restartPolicy: 'Never' };
  return {
    ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name, labels } },
    spec: { suspend: true, template: { spec } },
  };
}

async function uidOf(type: ResourceType, name: string): Promise<string | undefined> {
  return (await cluster.get(bundles.childPlace(type, name))).metadata.uid;
}

/** What `diff` says of the one child that a Bundle would have. */
async function predicted(name: string, object: object): Promise<object | undefined> {
  const { apiVersion, kind } = bundle.type;
  const metadata = { name, namespace: bundles.namespace };
  const differ = new Differ(cluster.sandbox.adminKubeconfig, ['--config', bundleConfig]);
  const { objects } = await differ.json([{ apiVersion, kind, metadata, spec: { objects: [object] } }]);
  return objects.find((found) => found.kind !== 'Bundle');
}

const refusedAnew = [
  {
    what: 'and is invalid',
    name: 'changed-and-invalid',
    edit: (name: string) => job(name, 'new', { note: 'not a label' }),
    message: 'not a label',
  },
  {
    what: 'in the words of a value alone',
    name: 'invalid-alone',
    edit: (name: string) => job(name, 'old', { note: '/: field is immutable' }),
    message: 'a valid label must be',
  },
];

test.for(refusedAnew)(
  'an edit that changes what cannot be changed, $what, keeps the object that works, and stalls with the reason',
  async ({ name, edit, message }) => {
    await bundles.create(name, { objects: [job(name, 'old')] });
    const uid = await eventually(() => uidOf(jobs, name));

    expect(await predicted(name, edit(name))).toMatchObject({ action: 'failed', reason: 'Invalid' });
    await bundles.edit(name, { objects: [edit(name)] });

    const stalled = await bundles.condition(name, { type: 'Stalled', status: 'True', reason: 'Invalid' });
    expect(stalled.message).toContain(message);
    expect(await uidOf(jobs, name)).toBe(uid);

    expect(await predicted(name, job(name, 'new'))).toMatchObject({ action: 'recreated' });
    await bundles.edit(name, { objects: [job(name, 'new')] });
    await eventually(async () => {
      expect(await uidOf(jobs, name)).not.toBe(uid);
    });
  },
);

const policies = resourceType({
  ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingAdmissionPolicy', namespaced: false },
  plural: 'validatingadmissionpolicies',
});
const bindings = resourceType({
  ...{ apiVersion: policies.apiVersion, kind: 'ValidatingAdmissionPolicyBinding', namespaced: false },
});

test('where a policy or a quota refuses the new object, the one in its place stays; its own place in a quota is free for the new one', async () => {
  const { namespace } = bundles;
  const name = 'judged';
  await bundles.create(name, { objects: [job(name, 'old')] });
  const uid = await eventually(() => uidOf(jobs, name));

  const { apiVersion, kind } = policies;
  const metadata = { name: namespace };
  const rule = { apiGroups: ['batch'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['jobs'] };
  await cluster.create(policies, {
    ...{ apiVersion, kind, metadata },
    spec: {
      matchConstraints: { resourceRules: [rule] },
      validations: [
        {
          expression: "object.spec.template.spec.containers.all(c, c.image != 'denied')",
          message: 'the image is denied',
        },
      ],
    },
  });
  await cluster.create(bindings, {
    ...{ apiVersion, kind: bindings.kind, metadata },
    spec: {
      policyName: namespace,
      validationActions: ['Deny'],
      matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } },
    },
  });
  try {
    // Until the API server has heard of it.
    await eventually(async () => {
      const body = job('tried', 'denied');
      const answer = await cluster.send('POST', collection(jobs, namespace), {
        body,
        query: { dryRun: 'All' },
      });
      expect(answer.status).toBe(422);
    });
    const denied = job(name, 'denied');
    expect(await predicted(name, denied)).toMatchObject({ action: 'failed', reason: 'Invalid' });
    await bundles.edit(name, { objects: [denied] });
    const stalled = await bundles.condition(name, { type: 'Stalled', status: 'True', reason: 'Invalid' });
    expect(stalled.message).toContain('the image is denied');
    expect(await uidOf(jobs, name)).toBe(uid);
  } finally {
    await cluster.delete({ type: bindings, name: namespace });
    await cluster.delete({ type: policies, name: namespace });
  }

  const count = (await cluster.list(jobs, namespace)).length;
  const endQuota = await fullQuota(namespace, { 'count/jobs.batch': String(count) });
  await eventually(async () => {
    const answer = await cluster.send('POST', collection(jobs, namespace), {
      body: job('tried', 'new'),
      query: { dryRun: 'All' },
    });
    expect(answer.body.message).toContain('exceeded quota');
  });
  expect(await predicted(name, job(name, 'new'))).toMatchObject({ action: 'recreated' });
  await endQuota();
});

/** Makes a quota without room. Returns what deletes it. */
async function fullQuota(
  namespace: string,
  hard: Readonly<Record<string, string>>,
): Promise<() => Promise<unknown>> {
  const quotas = resourceType({ apiVersion: 'v1', kind: 'ResourceQuota' });
  const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'full', namespace } };
  await cluster.create(quotas, { ...quota, spec: { hard } });
  // As the controller of quotas does, where there is one.
  await cluster.send('PATCH', `${collection(quotas, namespace)}/full/status`, {
    body: { status: { hard, used: hard } },
    contentType: 'application/merge-patch+json',
  });
  return () => cluster.delete({ type: quotas, namespace, name: 'full' });
}

test('a Service whose address has to change keeps its node port, and stays where the new one is invalid', async () => {
  const name = 'moved';
  const own = await cluster.get<AnyObject & { spec: { clusterIP: string } }>({
    ...{ type: services, namespace: 'default', name: 'kubernetes' },
  });
  const [base] = /^.*[.:]/.exec(own.spec.clusterIP) ?? [];
  const at = (last: string, port = 80): object => {
    const { spec, ...rest } = service(name, [{ port, nodePort: 31_977 }]) as { spec: object };
    return { ...rest, spec: { ...spec, type: 'NodePort', clusterIP: `${base}${last}` } };
  };
  await bundles.create(name, { objects: [at('217')] });
  const uid = await eventually(() => uidOf(services, name));

  expect(await predicted(name, at('218', 70_000))).toMatchObject({ action: 'failed', reason: 'Invalid' });
  // Of other tests there may be more.
  const used = (await cluster.list(services, bundles.namespace))
    .flatMap((one) => (one as { spec?: { ports?: { nodePort?: number }[] } }).spec?.ports ?? [])
    .filter(({ nodePort }) => nodePort !== undefined).length;
  const endQuota = await fullQuota(bundles.namespace, { 'services.nodeports': String(used) });
  await eventually(async () => {
    const answer = await cluster.send('POST', collection(services, bundles.namespace), {
      body: { ...service('tried', [{ port: 80 }]), spec: { type: 'NodePort', ports: [{ port: 80 }] } },
      query: { dryRun: 'All' },
    });
    expect(answer.body.message).toContain('exceeded quota');
  });
  expect(await predicted(name, at('218'))).toMatchObject({ action: 'recreated' });
  await endQuota();
  await bundles.edit(name, { objects: [at('218')] });

  await eventually(async () => {
    const { metadata, spec } = await cluster.get<AnyObject & { spec: object }>(
      bundles.childPlace(services, name),
    );
    expect(metadata.uid).not.toBe(uid);
    expect(spec).toMatchObject({ clusterIP: `${base}218`, ports: [{ port: 80, nodePort: 31_977 }] });
  });
});
