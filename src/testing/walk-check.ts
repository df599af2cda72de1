import { OperatorError } from '../contract/error.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { APPLY } from '../client/api.js';
import { collection } from './cluster.js';
import type { Normal } from './compare.js';
import { notApplicable, withoutMoment } from './report.js';
import type { Failure, Outcome } from './report.js';
import { isDecorator, rendered, renderedSamples } from './tested-kind.js';
import type { Sample } from './tested-kind.js';
import {
  attempt,
  becomes,
  hasCondition,
  removeNamespace,
  several,
  undisturbed,
  unlessRefused,
} from './trial.js';
import type { ConformanceRun, Trial } from './trial.js';
import { fieldsOf, goalsOf, pathsTo, planWalks, shorten } from './walk.js';
import type { Fields, Spec, Walk, WalkPlan } from './walk.js';

const WALKS = 4;
/** Maximum number of edits; more where a spec has many fields. */
const MAX_EDITS = 120;
const EDITS_PER_GOAL = 0.35;
const SHORTENING_MILLISECONDS = 60_000;
/** Time in which a fault has to show while a walk is shortened. */
const HASTY_MILLISECONDS = 4_000;
const NOT_AGAIN = 'it did not come again when the same edits were made once more';

interface Walked {
  readonly edits: number;
  readonly refused: number;
  /** Edits whose conditions alone are compared, since they are stalled. */
  readonly stalled: number;
  /** Number of others' objects that were deleted. */
  readonly gone: number;
  /** Number of others' objects that were left. */
  readonly there: number;
  readonly failures: readonly Failure[];
  /** Specs up to where it went wrong. */
  readonly until: Walk;
}

/** Checks that after any edits of the spec the objects are those of a new custom resource with that spec. */
export async function walk(run: ConformanceRun): Promise<Outcome> {
  if (isDecorator(run.kind)) return notApplicable('the API server judges the spec alone');
  const { cluster, samples } = run;
  const specs = samples.map(({ spec }) => spec);
  const fields = fieldsOf(run.kind, specs, run.notWalked, imagesOf(run));
  const nothing = notApplicable('nothing of its spec can be edited');
  const goals = goalsOf(fields).length;
  if (goals === 0) return nothing;
  const starts = Array.from({ length: WALKS }, (_, index) => specs[index % specs.length] ?? {});
  const maxEdits = Math.max(MAX_EDITS, Math.ceil(goals * EDITS_PER_GOAL));
  const props = { starts, minEdits: 12, maxEdits, maxFailures: 150 };
  const namespace = await cluster.makeNamespace('sweep');
  const plan = await planWalks(fields, run.random, props, acceptance(run, namespace)).finally(() =>
    removeNamespace(cluster, namespace),
  );
  if (plan.walks.every(({ length }) => length < 2)) return nothing;
  const walked = await several(plan.walks, (one) => walkOne(run, one));
  const hasty = { ...run, convergenceMilliseconds: HASTY_MILLISECONDS };
  const started = performance.now();
  // One is enough to look for, and each takes its time to be shortened.
  const first = walked.find(({ failures }) => failures.length > 0);
  let failures: readonly Failure[] = [];
  if (first)
    failures = await shortened(first, {
      walk: async (one, isHasty) => (await walkOne(isHasty ? hasty : run, one)).failures,
      isValid: (spec) => fields.problems(spec).length === 0,
      hasTime: () => performance.now() - started < SHORTENING_MILLISECONDS,
    });
  else if (walked.every(({ edits }) => edits === 0)) {
    const sequence = specs.map((spec) => `create it with ${JSON.stringify(spec)}`);
    failures = [{ what: 'every spec of the walk is refused', sequence }];
  }
  // The fields for which there is no value.
  const without = fields.leaves.filter(
    (path) =>
      pathsTo(path).some((one) => fields.isBarred(one)) &&
      !pathsTo(path).some((one) => run.notWalked.includes(one.join('.'))),
  );
  const notWalked = without.map((path) => path.join('.'));
  return { tried: triedBy(run, fields, plan, walked, notWalked), failures, notDone: plan.open, notWalked };
}

/** Returns the images of the containers that the samples are rendered to. */
function imagesOf(run: ConformanceRun): ReadonlySet<unknown> {
  const images = new Set<unknown>();
  JSON.stringify(renderedSamples(run), (key, value: unknown) => {
    if (key === 'image') images.add(value);
    return value;
  });
  return images;
}

function triedBy(
  run: ConformanceRun,
  fields: Fields,
  plan: WalkPlan,
  walked: readonly Walked[],
  barred: readonly string[],
): string {
  const sum = (of: 'edits' | 'refused' | 'stalled' | 'gone' | 'there'): number =>
    walked.reduce((total, one) => total + one[of], 0);
  const fixed = fields.leaves.filter((path) => fields.isFixed?.(path)).map((path) => path.join('.'));
  const kept = plan.walks.flat().filter((spec) => run.keepsEarlier(spec)).length;
  const listed = (names: readonly string[]): string =>
    names.slice(0, 5).join(', ') + (names.length > 5 ? ` and ${names.length - 5} more` : '');
  const parts: readonly (readonly [isSaid: number, text: string])[] = [
    [1, `${sum('edits')} edits, ${plan.goals - plan.open.length} of ${plan.goals} things to do to fields`],
    [plan.open.length, `not done: ${listed(plan.open)}`],
    [barred.length, `no sample has ${listed(barred)}`],
    [fixed.length, `can't be changed: ${listed(fixed)}`],
    [run.notWalked.length, `left out: ${listed(run.notWalked)}`],
    [kept, `${kept} compared by their conditions alone, since they keep what was before`],
    [sum('stalled'), `${sum('stalled')} compared by their conditions alone, since they are stalled`],
    [run.removes.length, `others' objects: ${sum('gone')} deleted, ${sum('there')} left`],
    [sum('refused'), `${sum('refused')} refused`],
  ];
  return parts.flatMap(([isSaid, text]) => (isSaid > 0 ? text : [])).join('; ');
}

async function walkOne(run: ConformanceRun, specs: Walk): Promise<Walked> {
  const samples = specs.map((spec) => ({ ...run.samples[0], spec }));
  const count = { edits: 0, refused: 0, stalled: 0, gone: 0, there: 0 };
  let failedAt = -1;
  let ahead: Promise<unknown> = Promise.resolve();
  const failures = await attempt(run, async (trial) => {
    await trial.start();
    for (const [index, sample] of samples.entries()) {
      failedAt = index;
      const next = samples[index + 1];
      // The expected state of the next spec takes as long as the edit itself.
      if (next) ahead = undisturbed(run, next).catch(() => undefined);
      const state = await goTo(trial, sample, count.edits > 0);
      count[state ? 'edits' : 'refused']++;
      if (!state) continue;
      if (hasCondition(state, 'Stalled')) count.stalled++;
      for (const left of Object.values(state['<found>'] as Record<string, 'gone' | 'there'>)) count[left]++;
    }
  });
  await ahead;
  return { ...count, failures, until: specs.slice(0, failedAt + 1) };
}

/** Gives a custom resource a spec, and compares. @returns the expected state, or undefined where the API server refuses the spec */
async function goTo(trial: Trial, sample: Sample, isThere: boolean): Promise<Normal | undefined> {
  const { run } = trial;
  const expected = await unlessRefused(() => undisturbed(run, sample));
  if (!expected) return undefined;
  const isTaken = await unlessRefused(async () => {
    await (isThere ? trial.edit(sample) : trial.create(sample));
    return true;
  });
  if (!isTaken) {
    trial.steps.push('which the API server refuses');
    return undefined;
  }
  if (isThere) {
    await trial.settled();
    await trial.renew();
  }
  await becomes(trial, expected, hasCondition(expected, 'Stalled') || run.keepsEarlier(sample.spec));
  return expected;
}

interface Shortening {
  /** Walks from the start. In haste, a slow state counts as wrong. */
  readonly walk: (specs: Walk, isHasty: boolean) => Promise<readonly Failure[]>;
  readonly isValid: (spec: Spec) => boolean;
  readonly hasTime: () => boolean;
}

/**
 * Returns the failure of the shortest walk found in time that goes wrong in the same place once more, without haste. One
 * that doesn't come again may hang on an order or a moment: it remains a failure, which says so.
 */
export async function shortened(
  { failures, until }: Pick<Walked, 'failures' | 'until'>,
  { walk: walkAgain, ...props }: Shortening,
): Promise<readonly Failure[]> {
  const placeOf = ([failure]: readonly Failure[]): string | undefined =>
    failure && withoutMoment(failure.what).split(/ is |; /)[0];
  const isTheSame = (found: readonly Failure[]): boolean => placeOf(found) === placeOf(failures);
  const goesWrong = async (specs: Walk): Promise<boolean> => isTheSame(await walkAgain(specs, true));
  let again: readonly Failure[] = [];
  for (const specs of new Set([await shorten(until, { ...props, goesWrong }), until])) {
    again = await walkAgain(specs, false);
    if (isTheSame(again)) return again;
  }
  return [...failures.map(({ what, sequence }) => ({ what: `${what}; ${NOT_AGAIN}`, sequence })), ...again];
}

/** Asks the cluster by dry runs whether it accepts what a spec is rendered to, once for each object. */
function acceptance(run: ConformanceRun, namespace: string): (spec: Spec) => Promise<boolean> {
  const { cluster, types, kind } = run;
  const answers = new Map<string, Promise<boolean>>();
  const query = { dryRun: 'All', fieldManager: 'conformance', force: 'true' };
  const ask = async (object: AnyObject): Promise<boolean> => {
    const type = types.find((one) => groupKind(one) === groupKind(object));
    if (!type) return true;
    const path = `${collection(type, object.metadata.namespace)}/${object.metadata.name}`;
    const { status } = await cluster.send('PATCH', path, { body: object, contentType: APPLY, query });
    // A type that isn't installed is no fault of the spec.
    return status < 400 || status === 404;
  };
  return async (spec) => {
    if (!('each' in kind.rendering)) return true;
    try {
      const asked = rendered(run, { metadata: { name: 'accepted', namespace }, spec }).map((object) => {
        const id = JSON.stringify(object);
        const answer = answers.get(id) ?? ask(object);
        answers.set(id, answer);
        return answer;
      });
      return (await Promise.all(asked)).every(Boolean);
    } catch (error) {
      if (error instanceof OperatorError) return false;
      throw error;
    }
  };
}
