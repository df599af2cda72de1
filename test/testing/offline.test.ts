import { createHash } from 'node:crypto';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { expect, test } from 'vitest';
import { defineKind } from '../../src/contract/define-kind.js';
import type { CustomResourceProps, Kind } from '../../src/contract/kind.js';
import { Random, chanceOf } from '../../src/testing/random.js';
import { fieldsOf } from '../../src/testing/sweep/kind-fields.js';
import { listKeys, rendering } from '../../src/testing/sweep/offline.js';
import type { Outcome } from '../../src/testing/sweep/outcome.js';
import { sweptOf } from '../../src/testing/sweep/stand.js';
import type { Spec, Swept } from '../../src/testing/sweep/stand.js';
import type { Fields } from '../../src/testing/walk/fields.js';
import { planTakenWalks, planWalks } from '../../src/testing/walk/plan.js';
import type { AnyObject } from '../../src/contract/object.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { jobWatcherSamples } from '../scenarios/support/job-watcher-swept.js';
import { streamIngressSamples } from '../scenarios/support/stream-ingress-swept.js';
import { plantedCrd, plantedSamples } from '../scenarios/planted/crd.js';
import type { PlantedSpec } from '../scenarios/planted/crd.js';
import * as faults from '../scenarios/planted/faults.js';
import { sound } from '../scenarios/planted/sound.js';

const samples = plantedSamples.map(({ spec }) => ({ spec: spec as Spec }));

type Samples = Swept['samples'];

/** What these checks read of it; they ask for no cluster. */
const standFor = (kind: Kind, of = samples): Swept => sweptOf({ kind, samples: of as unknown as Samples });

const specsOf = (all: readonly AnyObject[]): { readonly spec: Spec }[] =>
  all.map(({ spec }) => ({ spec: spec as Spec }));

test.each<[fault: string, kind: Kind, check: (stand: Swept) => Outcome, message: RegExp]>([
  ['a timestamp in the render', faults.timestamp, rendering, /at \.data\.rendered, and the next time with/],
  [
    'a timestamp in what a later sample alone renders',
    faults.laterTimestamp,
    rendering,
    /^rendered on another day, .*data\.rendered is "\d{4}-\d\d-\d\d" instead of/,
  ],
  [
    'a field remembered from an earlier spec',
    faults.remembered,
    rendering,
    /after another spec.*data\.color is/,
  ],
  ['an undeclared child kind', faults.undeclared, rendering, /add \{ apiVersion: 'v1', kind: 'ConfigMap' \}/],
  ['a name that collides', faults.colliding, rendering, /ConfigMap parts is made for two/],
  ['a list without keys', faults.unkeyed, listKeys, /spec\.parts is a list of objects without keys/],
])('%s is found without a cluster', (_fault, kind, check, message) => {
  const { failures } = check(standFor(kind));

  expect(failures[0]?.what).toMatch(message);
  expect(failures[0]?.sequence).not.toEqual([]);
});

test.each([rendering, listKeys])('of a sound kind nothing is reported', (check) => {
  expect(check(standFor(sound)).failures).toEqual([]);
});

test('a hash of a text that has the name in it is no difference', () => {
  class Hashing extends Construct {
    constructor(scope: Construct, id: string, { metadata: { name } }: CustomResourceProps<PlantedSpec>) {
      super(scope, id);
      const peers = `${name}-0.${name}`;
      const data = { peers, hash: createHash('sha256').update(peers).digest('hex') };
      new ApiObject(this, 'Map', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data });
    }
  }
  const children = [{ apiVersion: 'v1', kind: 'ConfigMap' }];
  const kind = defineKind({ crd: plantedCrd(), construct: Hashing, children });

  expect(rendering(standFor(kind)).failures).toEqual([]);
});

test('a kind that renders nothing is left out, and that is said', () => {
  expect(rendering(standFor(jobWatcher, specsOf(jobWatcherSamples)))).toMatchObject({
    ...{ failures: [], notApplicable: 'it renders no objects' },
  });
});

test('what is rendered together is held against another day too', () => {
  const { rendering: sound_ } = streamIngress;
  if (!('together' in sound_)) throw new Error('It is rendered one by one');
  const today = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'today' } };
  const dated: Kind = {
    ...streamIngress,
    rendering: {
      together: (...given) => {
        const { manifests } = sound_.together(...given);
        return { manifests: [...manifests, { objects: [{ ...today, data: { at: Date.now() } }] }] };
      },
    },
  };
  const all = specsOf(streamIngressSamples);

  expect(rendering(standFor(streamIngress, all))).toEqual({ tried: '4 samples', failures: [] });
  expect(rendering(standFor(dated, all)).failures[0]?.what).toMatch(/on another day.*data\.at is/);
});

test('a kind whose objects must have shorter names is held against shorter ones', () => {
  class Nightly extends Construct {
    constructor(scope: Construct, id: string, { metadata: { name } }: CustomResourceProps<PlantedSpec>) {
      super(scope, id);
      new ApiObject(this, 'Job', { apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name } });
    }
  }
  const children = [{ apiVersion: 'batch/v1', kind: 'CronJob' }];

  const { failures } = rendering(standFor(defineKind({ crd: plantedCrd(), construct: Nightly, children })));

  expect(failures).toEqual([]);
});

function planOf(seed: number) {
  const fields = fieldsOf(
    sound,
    samples.map(({ spec }) => spec),
  );
  const starts = samples.map(({ spec }) => spec);
  return {
    fields,
    plan: planWalks(fields, chanceOf(new Random(seed)), { starts, leastEdits: 20, mostEdits: 200 }),
  };
}

test('a walk does everything to every field, by valid specs, and its seed repeats it', () => {
  const { fields, plan } = planOf(3);

  expect(plan.open).toEqual([]);
  expect(plan.goals).toBeGreaterThan(8);
  expect(plan.walks.flat().flatMap((spec) => fields.problems(spec))).toEqual([]);
  expect(planOf(3).plan).toEqual(plan);
  expect(planOf(4).plan).not.toEqual(plan);
});

test('a walk leaves alone what can never be changed, and what it is told to', () => {
  const specs = specsOf(streamIngressSamples).map(({ spec }) => spec);
  const fields = fieldsOf(streamIngress, specs, ['proxyProtocol']);
  const { walks, open } = planWalks(fields, chanceOf(new Random(1)), {
    ...{ starts: specs, leastEdits: 40, mostEdits: 120 },
  });

  const fixed = ['listen', 'protocol', 'is_service', 'upstream'].filter((field) => fields.isFixed?.([field]));
  expect(fixed).toEqual(['listen', 'protocol']);
  expect(open).toEqual([]);
  const edits = walks.flatMap((walk) => walk.slice(1).map((spec, index) => [walk[index], spec] as const));
  expect(edits.length).toBeGreaterThanOrEqual(40);
  for (const [before, after] of edits) {
    expect(fields.problems(after, before)).toEqual([]);
    // A spec may be made anew as a whole, without it.
    if (!before?.proxyProtocol) expect(after.proxyProtocol).toBeUndefined();
  }
});

test('a walk that can go no further ends by itself, and the others go on', () => {
  const fields = fieldsOf(
    sound,
    samples.map(({ spec }) => spec),
  );
  const first = { image: 'one:1', color: 'stuck' };
  const stuck: Fields = {
    ...fields,
    problems: (spec, before) =>
      before === first ? [{ path: ['spec', 'image'], message: 'it stays' }] : fields.problems(spec, before),
  };
  const props = { starts: [first, { image: 'one:1' }], leastEdits: 20, mostEdits: 200 };

  const { walks, open } = planWalks(stuck, chanceOf(new Random(3)), props);

  expect(walks[0]).toEqual([first]);
  expect(walks[1]?.length).toBeGreaterThan(20);
  expect(open).toEqual([]);
});

test('what the cluster never takes is tried, and left out of nearly all specs', async () => {
  const specs = samples.map(({ spec }) => spec);
  const fields = fieldsOf(sound, specs);
  const isTaken = (spec: Spec): Promise<boolean> => Promise.resolve(spec.color === undefined);
  const props = { starts: specs.filter(({ color }) => color === undefined), leastEdits: 40, mostEdits: 80 };

  const { walks, open } = await planTakenWalks(
    ...([fields, chanceOf(new Random(2)), { ...props, mostInVain: 50 }, isTaken] as const),
  );

  expect(open.toSorted()).toEqual(['change: color', 'remove: color', 'set: color']);
  const all = walks.flat();
  const refused = all.filter(({ color }) => color !== undefined);
  expect(refused.length).toBeGreaterThan(0);
  expect(refused.length).toBeLessThan(all.length / 5);
});
