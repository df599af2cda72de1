import { storedVersion } from '../../contract/crd.js';
import { OperatorError } from '../../contract/error.js';
import type { RenderedKind } from '../../contract/kind.js';
import type { AnyObject, CustomResource } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import { applyDefaults } from '../../synth/defaults.js';
import { render } from '../../synth/render.js';
import { collection } from '../cluster.js';
import { chanceOf } from '../random.js';
import type { Fields, Path } from '../walk/fields.js';
import { goalsOf } from '../walk/goals.js';
import { planTakenWalks } from '../walk/plan.js';
import type { Walk, WalkPlan } from '../walk/plan.js';
import { becomes, fares, fresh } from './convergence.js';
import { fieldsOf } from './kind-fields.js';
import type { Normal } from './normal.js';
import { attempt, several } from './outcome.js';
import type { Failure, Outcome } from './outcome.js';
import { shortened } from './shortened.js';
import type { Sample, Stand, Spec } from './stand.js';
import { policyFor } from './stand.js';
import { unlessRefused } from './trial.js';
import type { Trial } from './trial.js';

const WALKS = 4;
/** Of a spec with many fields, there are more. */
const MOST_EDITS = 120;
const EDITS_PER_GOAL = 0.35;
const MOST_IN_VAIN = 150;
const SHORTENING_MILLISECONDS = 60_000;
const HASTY_MILLISECONDS = 4_000;

interface Walked {
  readonly edits: number;
  readonly refused: number;
  /** Of the edits, those that are stalled, as where objects of theirs are refused; these aren't compared. */
  readonly stalled: number;
  /** What of others' objects was to be deleted, and what was to be left. */
  readonly gone: number;
  readonly there: number;
  readonly failures: readonly Failure[];
  /** The specs up to where it went wrong. */
  readonly until: Walk;
}

const NOTHING_TO_EDIT: Outcome = {
  tried: '',
  failures: [],
  notApplicable: 'nothing of its spec can be edited',
};

/** Whatever is set, changed and removed in the spec, the objects are those of a new custom resource with that spec. */
export async function walk(stand: Stand): Promise<Outcome> {
  const fields = fieldsOf(
    stand.kind,
    stand.samples.map(({ spec }) => spec),
    stand.notWalked,
  );
  if (goalsOf(fields).length === 0) return NOTHING_TO_EDIT;
  const plan = await planned(stand, fields);
  if (plan.walks.every((specs) => specs.length < 2)) return NOTHING_TO_EDIT;
  const walked = await several(plan.walks, (specs) => walkOne(stand, specs));
  // One is enough to look for, and each takes its time to be made shorter.
  const first = walked.find(({ failures }) => failures.length > 0);
  return {
    tried: told(stand, fields, plan, walked).join('; '),
    failures: first ? await toldShortly(stand, fields, first) : ineffective(stand, walked),
    ...{ notDone: plan.open, notWalked: barredOf(stand, fields) },
  };
}

/** A walk of which nothing was taken shows nothing. */
function ineffective({ samples }: Stand, walked: readonly Walked[]): Failure[] {
  if (walked.some(({ edits }) => edits > 0)) return [];
  const sequence = samples.map(({ spec }) => `create it with ${JSON.stringify(spec)}`);
  return [{ what: 'every spec of the walk is refused', sequence }];
}

/** Nearly all of the specs are such that the cluster takes what is rendered of them, as it says beforehand. */
async function planned(stand: Stand, fields: Fields): Promise<WalkPlan> {
  const { cluster, samples } = stand;
  const starts = Array.from(
    { length: WALKS },
    (_, index) => (samples[index % samples.length] ?? samples[0]).spec,
  );
  const mostEdits = Math.max(MOST_EDITS, Math.ceil(goalsOf(fields).length * EDITS_PER_GOAL));
  const props = { starts, leastEdits: 12, mostEdits, mostInVain: MOST_IN_VAIN };
  const namespace = await cluster.makeNamespace('sweep');
  try {
    return await planTakenWalks(fields, chanceOf(stand.random), props, isTakenIn(stand, namespace));
  } finally {
    await cluster.send('DELETE', `/api/v1/namespaces/${namespace}`);
  }
}

/** What was tried, in words. */
function told(stand: Stand, fields: Fields, plan: WalkPlan, walked: readonly Walked[]): string[] {
  const sum = (of: (one: Walked) => number): number => walked.reduce((total, one) => total + of(one), 0);
  const barred = barredOf(stand, fields);
  const fixed = fields.leaves.filter((path) => fields.isFixed?.(path));
  const kept = plan.walks.flat().filter((spec) => stand.keepsEarlier(spec)).length;
  const [stalled, refused] = [sum((one) => one.stalled), sum((one) => one.refused)];
  return [
    `${sum(({ edits }) => edits)} edits, ${plan.goals - plan.open.length} of ${plan.goals} things to do to fields`,
    ...(plan.open.length > 0 ? [`not done: ${shown(plan.open)}`] : []),
    ...(barred.length > 0 ? [`no sample has ${shown(barred)}`] : []),
    ...(fixed.length > 0 ? [`can't be changed: ${shown(fixed.map((path) => path.join('.')))}`] : []),
    ...(stand.notWalked.length > 0 ? [`left out: ${shown(stand.notWalked)}`] : []),
    ...(kept > 0 ? [`${kept} compared by their conditions alone, since they keep what was before`] : []),
    ...(stalled > 0 ? [`${stalled} compared by their conditions alone, since they are stalled`] : []),
    ...(stand.removes.length > 0
      ? [`others' objects: ${sum(({ gone }) => gone)} deleted, ${sum(({ there }) => there)} left`]
      : []),
    ...(refused > 0 ? [`${refused} refused`] : []),
  ];
}

/** The fields for which there is no value. */
function barredOf({ notWalked }: Stand, fields: Fields): string[] {
  const isLeftOut = (path: Path): boolean =>
    path.some((_, end) => notWalked.includes(path.slice(0, end + 1).join('.')));
  return fields.leaves
    .filter((path) => !isLeftOut(path) && path.some((_, end) => fields.isBarred(path.slice(0, end + 1))))
    .map((path) => path.join('.'));
}

function shown(names: readonly string[]): string {
  const rest = names.length - 5;
  return names.slice(0, 5).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}

async function walkOne(stand: Stand, specs: Walk): Promise<Walked> {
  const samples = specs.map((spec) => ({ ...stand.samples[0], spec }));
  let [edits, refused, stalled, failedAt, gone, there] = [0, 0, 0, -1, 0, 0];
  let ahead: Promise<unknown> = Promise.resolve();
  const failures = await attempt(stand, async (trial) => {
    await trial.start();
    for (const [index, sample] of samples.entries()) {
      failedAt = index;
      const next = samples[index + 1];
      // Each takes as long as the edit itself.
      if (next) ahead = fresh(stand, next).catch(() => undefined);
      const state = await goTo(trial, sample, edits > 0);
      if (!state) {
        refused++;
        continue;
      }
      edits++;
      if (isStalled(state)) stalled++;
      const found = Object.values(state['<found>'] as Readonly<Record<string, string>>);
      gone += found.filter((what) => what === 'gone').length;
      there += found.filter((what) => what === 'there').length;
    }
  });
  await ahead;
  return { edits, refused, stalled, gone, there, failures, until: specs.slice(0, failedAt + 1) };
}

/**
 * Returns what it is to lead to, unless the API server refuses the spec, by itself or after the one before; where it takes it
 * and not its objects, these aren't compared.
 */
async function goTo(trial: Trial, sample: Sample, isThere: boolean): Promise<Normal | undefined> {
  const expected = await unlessRefused(() => fresh(trial.stand, sample));
  if (!expected) return undefined;
  const taken = await unlessRefused(async () => {
    await (isThere ? trial.edit(sample) : trial.create(sample));
    return true;
  });
  if (!taken) {
    trial.steps.push('which the API server refuses');
    return undefined;
  }
  if (isThere) {
    await trial.settled();
    await trial.renew();
  }
  if (isStalled(expected) || trial.stand.keepsEarlier(sample.spec)) await fares(trial, expected);
  else await becomes(trial, expected);
  return expected;
}

function isStalled(state: Normal): boolean {
  return JSON.stringify(state['<readiness>']).includes('"Stalled":"True');
}

function toldShortly(stand: Stand, fields: Fields, walked: Walked): Promise<readonly Failure[]> {
  const started = performance.now();
  const hasty = { ...stand, convergenceMilliseconds: HASTY_MILLISECONDS };
  return shortened(walked, {
    walk: (specs, pace) => walkAgain(pace === 'hasty' ? hasty : stand, specs),
    isValid: (spec) => fields.problems(spec).length === 0,
    hasTime: () => performance.now() - started < SHORTENING_MILLISECONDS,
  });
}

function walkAgain(stand: Stand, specs: Walk): Promise<readonly Failure[]> {
  return attempt(stand, async (trial) => {
    await trial.start();
    let isThere = false;
    for (const spec of specs)
      isThere = (await goTo(trial, { ...stand.samples[0], spec }, isThere)) !== undefined || isThere;
  });
}

/** Whether the cluster takes everything that is rendered of a spec; asked by dry runs, so that nothing is made. */
type IsTaken = (spec: Spec) => Promise<boolean>;

/** Asks once for each object. Of a kind that isn't rendered for each custom resource, everything counts as taken. */
function isTakenIn(stand: Stand, namespace: string): IsTaken {
  const { rendering } = stand.kind;
  if (!('each' in rendering)) return () => Promise.resolve(true);
  const answers = new Map<string, Promise<boolean>>();
  const isAccepted = (object: AnyObject): Promise<boolean> => {
    const id = JSON.stringify(object);
    const answer = answers.get(id) ?? accepts(stand, object);
    answers.set(id, answer);
    return answer;
  };
  return async (spec) => {
    const objects = rendered(stand, rendering.each, { spec, namespace });
    return objects !== undefined && (await Promise.all(objects.map(isAccepted))).every(Boolean);
  };
}

/** Nothing, where the kind itself refuses it. */
function rendered(
  { kind, context }: Stand,
  each: RenderedKind,
  { spec, namespace }: { readonly spec: Spec; readonly namespace: string },
): AnyObject[] | undefined {
  const { apiVersion, kind: name } = kind.type;
  const cr = { apiVersion, kind: name, metadata: { name: 'taken', namespace }, spec };
  const schema = storedVersion(kind.crd).schema.openAPIV3Schema;
  try {
    return render(each, applyDefaults(cr, schema) as CustomResource, policyFor(kind, context));
  } catch (error) {
    if (error instanceof OperatorError) return undefined;
    throw error;
  }
}

/** What isn't installed is no fault of the spec. */
async function accepts({ cluster, types }: Stand, object: AnyObject): Promise<boolean> {
  const type = types.find((one) => groupKind(one) === groupKind(object));
  if (!type) return true;
  const { namespace, name } = object.metadata;
  const { status } = await cluster.send('PATCH', `${collection(type, namespace)}/${name}`, {
    body: object,
    contentType: 'application/apply-patch+yaml',
    query: { dryRun: 'All', fieldManager: 'taken', force: 'true' },
  });
  return status < 400 || status === 404;
}
