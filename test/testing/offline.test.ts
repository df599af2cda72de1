import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
import { expect, test } from 'vitest';
import { defineKind } from '../../src/contract/define-kind.js';
import type { CustomResourceProps, Kind } from '../../src/contract/kind.js';
import { Random } from '../../src/testing/random.js';
import { fieldsOf } from '../../src/testing/sweep/kind-fields.js';
import { listKeys, rendering } from '../../src/testing/sweep/offline.js';
import type { Outcome } from '../../src/testing/sweep/outcome.js';
import type { Spec, Stand } from '../../src/testing/sweep/stand.js';
import { chanceOf } from '../../src/testing/walk/chance.js';
import { planWalks } from '../../src/testing/walk/plan.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { plantedCrd, plantedSamples } from '../scenarios/planted/crd.js';
import type { PlantedSpec } from '../scenarios/planted/crd.js';
import * as faults from '../scenarios/planted/faults.js';
import { sound } from '../scenarios/planted/sound.js';

const samples = plantedSamples.map(({ spec }) => ({ spec: spec as Spec }));

/** What these checks read of it; they ask for no cluster. */
const standFor = (kind: Kind): Stand => ({ kind, samples }) as unknown as Stand;

test.each<[fault: string, kind: Kind, check: (stand: Stand) => Outcome, message: RegExp]>([
  ['a timestamp in the render', faults.timestamp, rendering, /on another day.*data\.rendered is/],
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

test('what renders all custom resources together is left out, and that is said', () => {
  expect(rendering(standFor(jobWatcher))).toMatchObject({
    notApplicable: 'it renders all custom resources together',
  });
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
