import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { Construct } from 'constructs';
import { expect, test } from 'vitest';
import { defineCrd } from '../../src/author/define-crd.js';
import { defineKind } from '../../src/author/define-kind.js';
import { ApiError } from '../../src/client/api-error.js';
import {
  APPLIED_HASH_ANNOTATION,
  COMPOSED_ANNOTATION,
  SHARED_HASH_PREFIX,
} from '../../src/contract/names.js';
import type { AnyObject } from '../../src/contract/object.js';
import { fieldAt } from '../../src/engine/steps/managed-fields.js';
import { digestsOf, normal } from '../../src/testing/compare.js';
import type { Normal } from '../../src/testing/compare.js';
import { ownedLeaves, withValueAt } from '../../src/testing/drift.js';
import { testedKind } from '../../src/testing/tested-kind.js';
import {
  ended,
  endState,
  hasCondition,
  isReady,
  Pace,
  Trial,
  unlessRefused,
} from '../../src/testing/trial.js';
import type { ConformanceRun, Rolling } from '../../src/testing/trial.js';

/** State at a moment: pods that are there, those that are asked for, and conditions. */
interface Moment {
  readonly available: number;
  readonly wanted: number;
  readonly isReconciling: boolean;
  readonly isStuck?: boolean;
  /** Reason of the scheduler against its pod. */
  readonly unplaced?: string;
}

/**
 * A custom resource with a Deployment, in each state from that time on, in milliseconds.
 * @param slow number of the wait for rest that takes 4 s
 */
function course(moments: Readonly<Record<number, Moment>>, slow?: number) {
  let [now, waits] = [0, 0];
  const at = (): Moment =>
    Object.entries(moments).reduce(
      (latest, [time, moment]) => (Number(time) <= now ? moment : latest),
      moments[0]!,
    );
  const clock = {
    now: () => now,
    wait: (milliseconds: number) => {
      now += milliseconds;
      return Promise.resolve();
    },
  };
  const trial: Rolling = {
    ...{ run: { pace: new Pace() }, isAlive: true },
    // Quiet is waited for.
    settled: () => clock.wait(++waits === slow ? 4_000 : 400) as Promise<never>,
    objects: () => Promise.resolve([deployment(at())]),
    pods: () => Promise.resolve([pod(at())]),
    state: () => Promise.resolve({ '<readiness>': { Reconciling: at().isReconciling ? 'True' : 'False' } }),
  };
  return { clock, trial };
}

function deployment({ available, wanted, isStuck = false }: Moment): AnyObject {
  const counts = { replicas: wanted, updatedReplicas: wanted, availableReplicas: available };
  const conditions = isStuck ? [{ type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate' }] : [];
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', generation: 1 } },
    spec: { replicas: wanted },
    status: { observedGeneration: 1, ...counts, unavailableReplicas: wanted - available, conditions },
  };
}

function pod({ unplaced }: Moment): AnyObject {
  const scheduled = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: unplaced };
  const status = { conditions: unplaced === undefined ? [] : [scheduled] };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' }, status };
}

test.each([
  ['that has no volume yet is waited for', 'pod has unbound immediate PersistentVolumeClaims', 'False'],
  ['that no node takes is not', "node(s) didn't match Pod's node affinity/selector", 'True'],
])('a pod %s', async (_what, unplaced, Reconciling) => {
  const { clock, trial } = course({
    0: { available: 0, wanted: 1, isReconciling: true, unplaced },
    9_000: { available: 1, wanted: 1, isReconciling: false },
  });

  expect(await endState(trial, clock)).toEqual({ '<readiness>': { Reconciling } });
});

test('pods that an autoscaler asks for when all seems to be over are waited for', async () => {
  // It asks for them after the pods were looked at, and before the state is.
  const { clock, trial } = course({
    0: { available: 1, wanted: 1, isReconciling: false },
    401: { available: 1, wanted: 2, isReconciling: true },
    2_000: { available: 2, wanted: 2, isReconciling: true },
    3_000: { available: 2, wanted: 2, isReconciling: false },
  });

  expect(await endState(trial, clock)).toEqual({ '<readiness>': { Reconciling: 'False' } });
  expect(clock.now()).toBeLessThan(6_000);
});

test.each([
  [1, 3_900, 5_000],
  [2, 4_400, 6_000],
])(
  'of what is complete since a moment, the operator need not know: slow at look %i',
  async (slow, ...times) => {
    const [complete, known] = times;
    const moments = {
      0: { available: 0, wanted: 1, isReconciling: true },
      [complete]: { available: 1, wanted: 1, isReconciling: true },
      [known]: { available: 1, wanted: 1, isReconciling: false },
    };
    const { clock, trial } = course(moments, slow);

    expect(await endState(trial, clock)).toEqual({ '<readiness>': { Reconciling: 'False' } });
  },
);

test('what depends on others is waited for, too, where all of these are there', async () => {
  const { clock, trial } = course({
    0: { available: 1, wanted: 1, isReconciling: true },
    2_000: { available: 1, wanted: 1, isReconciling: false },
  });

  await ended({ ...trial, conditions: () => trial.state() }, 'any', clock);

  expect(clock.now()).toBeGreaterThanOrEqual(2_000);
});

test.each([
  ['a custom resource that waits for others is taken as it is after a moment', 1, false],
  ['pods that the cluster cannot make are not waited for', 0, true],
])('%s', async (_what, available, isStuck) => {
  const { clock, trial } = course({ 0: { available, wanted: 1, isReconciling: true, isStuck } });

  expect(await endState(trial, clock)).toEqual({ '<readiness>': { Reconciling: 'True' } });
  expect(clock.now()).toBeLessThan(8_000);
});

const child = { apiVersion: 'apps.example.com/v1', kind: 'Part' };

/** Begins a trial of a kind that has such children, in a cluster of which some answers are given. */
function trialOfParts(type: object, answers: object): Promise<Trial> {
  const spec = { type: 'object', properties: {} } as const;
  const crd = defineCrd({ group: 'apps.example.com', kind: 'Whole', description: 'Any.', spec });
  const kind = defineKind({ crd, construct: Construct, children: [{ ...child, ...type }] });
  const cluster = { makeNamespace: (purpose: string) => Promise.resolve(purpose), ...answers };
  const tested = testedKind(kind, [{ spec: {} }], undefined);
  return Trial.begin({ ...tested, cluster } as unknown as ConformanceRun);
}

test.each([1, 2, 3])('a state at rest has what is made after read %i of it, too', async (last) => {
  const metadata = { namespace: 'sweep', name: 'any', annotations: { [APPLIED_HASH_ANNOTATION]: 'any' } };
  let reads = -Infinity;
  const isMade = (): boolean => ++reads > last;
  const trial = await trialOfParts(
    {},
    {
      listIfServed: () => Promise.resolve(isMade() ? [{ ...child, metadata }] : []),
      get: () => {
        const condition = { type: 'Reconciling', status: isMade() ? 'False' : 'True', reason: 'Any' };
        return Promise.resolve({ metadata: { name: 'whole' }, status: { conditions: [condition] } });
      },
    },
  );

  reads = 0;
  const state = await trial.state();

  const isThere = Object.keys(state).some((id) => id.startsWith('Part'));
  expect(isThere || hasCondition(state, 'Reconciling')).toBe(true);
});

test('an object is judged by the status that `keep` of its type returns, and is otherwise as it is', async () => {
  const keep = ({ status }: AnyObject) => ({
    status: { conditions: [{ type: 'Ready', status: (status as { health: string }).health }] },
  });
  const annotations = { [APPLIED_HASH_ANNOTATION]: 'any' };
  const parts = ['True', 'False'].map((health) => ({
    ...{ ...child, metadata: { namespace: 'sweep', name: health, annotations }, spec: { of: 'any' } },
    status: { health },
  }));
  const trial = await trialOfParts({ keep }, { listIfServed: () => Promise.resolve(parts) });

  const objects = await trial.objects();

  expect(objects.map(isReady)).toEqual([true, false]);
  expect(objects).toMatchObject(parts.map(({ status: _, ...part }) => part));
});

test.each([
  [422, undefined],
  [403, 'refused'],
])('a spec that is answered by %i leads to %s in a walk', async (status, failure) => {
  const refused = unlessRefused(() => Promise.reject(new ApiError('PATCH', { status, body: {} })));

  expect(await refused.catch(() => 'refused')).toBe(failure);
});

test('what one manager has applied is compared, whatever another has', () => {
  const entry = (manager: string, spec: object) => ({
    ...{ manager, operation: 'Apply' },
    fieldsV1: {
      'f:metadata': { 'f:annotations': { [`f:${SHARED_HASH_PREFIX}${manager}`]: {} } },
      'f:spec': spec,
    },
  });
  const port = { 'k:{"port":80,"protocol":"TCP"}': { 'f:port': {}, 'f:nodePort': {} } };
  const metadata = {
    ...{ namespace: 'shop', name: 'web', uid: 'own-uid' },
    managedFields: [entry('ports', { 'f:ports': port }), entry('selector', { 'f:selector': {} })],
  };
  const ports = [{ port: 80, nodePort: 30_001 }];
  const service = { apiVersion: 'v1', kind: 'Service', metadata, spec: { clusterIP: '10.0.0.1', ports } };

  expect(normal([service], { name: 'web', namespace: 'shop', uid: 'uid-of-web', digests: [] })).toMatchObject(
    {
      'Service <name>': { spec: { clusterIP: 'chosen', ports } },
    },
  );
});

test('nodes and token volumes of Pods are the choice of the cluster, and a hash in a name is no difference', () => {
  const podOf = (name: string, digest: string, chosen: string): AnyObject => ({
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'shop', name: `${name}-${digest}` } },
    spec: {
      nodeName: `node-${chosen}`,
      volumes: [{ name: `kube-api-access-${chosen}` }],
      containers: [{ name, volumeMounts: [{ name: `kube-api-access-${chosen}` }] }],
    },
  });
  const normalOf = (name: string, digests: string[], chosen: string): Normal =>
    normal(
      digests.map((digest) => podOf(name, digest, chosen)),
      { name, namespace: 'shop', uid: 'uid', digests },
    );

  const [one, two] = [
    normalOf('one', ['d2a4c6', 'a1b2c3'], 'abcde'),
    normalOf('two', ['0f1e2d', 'b3c4d5'], 'vwxyz'),
  ];

  expect(one).toEqual(two);
  expect(Object.keys(one)).toEqual(['Pod <name>-<digest>', 'Pod <name>-<digest> 2']);
});

test('the record of texts in a Secret is no difference', () => {
  const normalOf = (record: string): Normal => {
    const annotations = { [COMPOSED_ANNOTATION]: record };
    const metadata = { namespace: 'shop', name: 'web', annotations };
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata };
    return normal([secret], { name: 'web', namespace: 'shop', uid: 'uid', digests: [] });
  };

  expect(normalOf('c1d28a ef44b3 a1')).toEqual(normalOf('c8b9e7 f3648b b2'));
});

test('texts in a Secret have no names of the site, also where they are compressed; bytes stay', () => {
  const normalOf = (name: string, namespace: string, value: string): Normal => {
    const text = `postgres://${name}.${namespace}.svc`;
    const [plain, zip] = [Buffer.from(text), gzipSync(text)].map((bytes) => bytes.toString('base64'));
    const data = { plain, zip, bytes: '//4=', broken: 'H4sB', generated: value };
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { namespace, name }, data };
    return normal([secret], { name, namespace, uid: 'uid', digests: [value] });
  };

  const [one, two] = [normalOf('one', 'shop', 'YWJj'), normalOf('other', 'store', 'eHl6')];

  expect(one).toEqual(two);
  const text = 'postgres://<name>.<namespace>.svc';
  expect(one).toMatchObject({
    'Secret <name>': {
      data: { plain: text, zip: text, bytes: '//4=', broken: 'H4sB', generated: '<digest>' },
    },
  });
});

test('owned fields are found, read and replaced where they are, but for the keys of items', () => {
  const fields = {
    'f:metadata': { 'f:labels': { 'f:app': {} } },
    'f:spec': {
      'f:containers': { 'k:{"name":"web"}': { '.': {}, 'f:name': {}, 'f:image': {} } },
      'f:set': { 'v:"a"': {} },
    },
  };
  const object = { spec: { containers: [{ name: 'side' }, { name: 'web', image: 'one' }], set: ['a'] } };

  const paths = ownedLeaves(fields);

  expect(paths).toEqual([
    ['f:metadata', 'f:labels', 'f:app'],
    ['f:spec', 'f:containers', 'k:{"name":"web"}', 'f:image'],
  ]);
  const image = paths[1]!;
  expect(fieldAt(object, image)).toBe('one');
  expect(withValueAt(withValueAt(object, image, 'two'), image, 'one')).toEqual(object);
  expect(withValueAt(object, image, undefined)).toEqual({
    spec: { containers: [{ name: 'side' }, { name: 'web' }], set: ['a'] },
  });
});

const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16);

test.each<[what: string, data: (name: string) => Readonly<Record<string, unknown>>, found: string[]]>([
  [
    'a hash of a text that has the name in it',
    (name) => ({ hash: hash(`peers: ${name}-0`), other: hash('nothing'), of: name }),
    [hash('peers: one-0')],
  ],
  [
    'a hash in a name that has the name in it',
    (name) => ({
      job: `${name}-init-${hash(name)}`,
      url: `http://${name}-${hash(name)}.${name}:80`,
      of: name,
    }),
    [hash('one')],
  ],
  ['no name', (name) => ({ text: `nats://${name}-0.${name}-peers:6222` }), []],
  ['no words', (name) => ({ text: name === 'one' ? 'red or blue' : 'red or pink' }), []],
])('%s is a digest', (_what, data, found) => {
  const made = (name: string): AnyObject[] => [
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: data(name) },
  ];

  expect(digestsOf(made, 'one')).toEqual(found);
});
