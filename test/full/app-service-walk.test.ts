import fc from 'fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { isReached, nameOf } from '../../src/testing/walk.js';
import type { Chance } from '../../src/testing/walk.js';
import { anyRoute } from './support/any-route.js';
import { Cluster } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { settled } from './support/settled.js';
import { Subject } from './support/subject.js';
import { chanceOf } from './support/walk/chance.js';
import { goals, planWalks, topGoals } from './support/walk/plan.js';
import type { Walk } from './support/walk/plan.js';
import type { Spec } from './support/walk/shape.js';
import { Walker } from './support/walk/walker.js';
import type { Means, Step } from './support/walk/walker.js';

/** Another one makes other walks. */
const seed = Number(process.env.WALK_SEED ?? 5);

const user = 'operator-34';
const cluster = new Cluster(openSandbox(inject('sandbox')));
let apps: Subject;
let controller: RunningController;

beforeAll(async () => {
  await installCrd(cluster, appService);
  apps = new Subject(cluster, appService, await cluster.makeNamespace('walk'));
  const namespaces = [apps.namespace];
  controller = await startController({ cluster, user, kinds: [appService], namespaces, args: anyRoute });
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

interface Edit {
  readonly spec: Spec;
  readonly means: Means;
}

/** A third of the custom resources is only replaced, a third only applied, and a third as it comes. */
function withMeans(chance: Chance, walk: Walk, place: number): Edit[] {
  const means = (): Means => {
    if (place % 3 === 2) return chance.one(['replace', 'apply']);
    return place % 3 === 0 ? 'replace' : 'apply';
  };
  return walk.map((spec) => ({ spec, means: means() }));
}

/** Each walker goes its way; once one has failed, the others stop where they are. */
async function walkAll(
  ways: readonly { readonly walker: Walker; readonly edits: readonly Edit[] }[],
): Promise<void> {
  let failed = false;
  const walk = async ({ walker, edits }: (typeof ways)[number]): Promise<void> => {
    for (const [index, { spec, means }] of edits.entries()) {
      if (failed) return;
      try {
        await walker.edit(spec, means);
      } catch (error) {
        failed = true;
        throw told(
          error,
          `${walker.name}, edit ${index} (${means}), ${JSON.stringify(walker.steps.at(-1)?.spec)}\n-> ${JSON.stringify(spec)}\n`,
        );
      }
    }
  };
  await Promise.all(ways.map(walk));
}

/** The error itself, which carries the difference. */
function told(error: unknown, where: string): unknown {
  if (error instanceof Error) error.message = `${where}: ${error.message}`;
  return error;
}

function requireAllReached(walked: readonly (readonly Step[])[]): void {
  const steps = walked.flat();
  const count = (means: Means): number => steps.filter((step) => step.means === means).length;
  const refused = steps.filter((step) => step.refused).length;
  console.log(
    `${steps.length} steps, ${count('replace')} by replacing and ${count('apply')} by applying; ${refused} refused`,
  );
  expect(steps.length).toBeGreaterThanOrEqual(300);
  expect(Math.min(count('replace'), count('apply'))).toBeGreaterThan(50);
  const edits = walked.flatMap((walk) =>
    walk.slice(1).map(({ spec }, index) => [walk[index]!.spec, spec] as const),
  );
  const missed = [...goals, ...topGoals].filter(
    (goal) => !edits.some(([before, after]) => isReached(goal, before, after)),
  );
  expect(missed.map(nameOf)).toEqual([]);
}

test(
  'whatever is set, changed and removed, the children are those of a new custom resource with that spec',
  { timeout: 300_000 },
  async () => {
    const property = fc.asyncProperty(fc.gen(), async (generator) => {
      const chance = chanceOf(generator);
      const ways = (await planWalks(chance, { walks: 12, leastEdits: 320 })).map((walk, place) => ({
        walker: new Walker(apps, place),
        edits: withMeans(chance, walk, place),
      }));

      await walkAll(ways);
      await settled(cluster, user);
      await Promise.all(ways.map(({ walker }) => walker.checkAgain()));

      requireAllReached(ways.map(({ walker }) => walker.steps));
    });
    // Not made smaller: what is left of a walk leads somewhere else.
    const { errorInstance } = await fc.check(property, { seed, numRuns: 1, endOnFailure: true });
    if (errorInstance) throw told(errorInstance, `WALK_SEED=${seed}`);
  },
);
