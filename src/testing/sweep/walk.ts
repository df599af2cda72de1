import { messageOf } from '../../contract/error.js';
import { chanceOf } from '../walk/chance.js';
import { planWalks } from '../walk/plan.js';
import type { Walk } from '../walk/plan.js';
import { fresh } from './fresh.js';
import { fieldsOf } from './kind-fields.js';
import type { Normal } from './normal.js';
import { attempt, several } from './outcome.js';
import type { Failure, Outcome } from './outcome.js';
import type { Sample, Stand } from './stand.js';
import type { Trial } from './trial.js';

const WALKS = 4;
const MOST_EDITS = 120;

interface Walked {
  readonly edits: number;
  readonly refused: number;
  readonly failures: readonly Failure[];
}

/** Whatever is set, changed and removed in the spec, the objects are those of a new custom resource with that spec. */
export async function walk(stand: Stand): Promise<Outcome> {
  const specs = stand.samples.map(({ spec }) => spec);
  const fields = fieldsOf(stand.kind, specs);
  const starts = Array.from({ length: WALKS }, (_, index) => specs[index % specs.length] ?? specs[0] ?? {});
  const plan = planWalks(fields, chanceOf(stand.random), { starts, leastEdits: 12, mostEdits: MOST_EDITS });
  const walked = await several(plan.walks, (specsOfOne) => walkOne(stand, specsOfOne));
  const sum = (of: (one: Walked) => number): number => walked.reduce((total, one) => total + of(one), 0);
  const barred = fields.leaves.filter((path) =>
    path.some((_, end) => fields.isBarred(path.slice(0, end + 1))),
  );
  const told = [
    `${sum(({ edits }) => edits)} edits, ${plan.goals - plan.open.length} of ${plan.goals} things to do to fields`,
    ...(plan.open.length > 0 ? [`not done: ${shown(plan.open)}`] : []),
    ...(barred.length > 0 ? [`no sample has ${shown(barred.map((path) => path.join('.')))}`] : []),
    ...(sum(({ refused }) => refused) > 0 ? [`${sum(({ refused }) => refused)} refused`] : []),
  ];
  // One is enough to look for, and each takes its time to be made shorter.
  const first = walked.flatMap(({ failures }) => failures)[0];
  return { tried: told.join('; '), failures: first ? [first] : [] };
}

function shown(names: readonly string[]): string {
  const rest = names.length - 5;
  return names.slice(0, 5).join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}

async function walkOne(stand: Stand, specs: Walk): Promise<Walked> {
  const samples = specs.map((spec) => ({ ...stand.samples[0], spec }));
  let [edits, refused, failedAt] = [0, 0, -1];
  const failures = await attempt(stand, async (trial) => {
    await trial.start();
    for (const [index, sample] of samples.entries()) {
      failedAt = index;
      if (await goTo(trial, sample, edits > 0)) edits++;
      else refused++;
    }
  });
  if (failures.length === 0) return { edits, refused, failures };
  return { edits, refused, failures: await shorter(stand, samples.slice(0, failedAt + 1), failures) };
}

/** Returns whether the API server takes the spec; where it takes it and not its objects, these aren't compared. */
async function goTo(trial: Trial, sample: Sample, isThere: boolean): Promise<boolean> {
  let expected: Normal;
  try {
    expected = await fresh(trial.stand, sample);
  } catch (error) {
    if (messageOf(error).includes('answered 422')) return false;
    throw error;
  }
  if (isThere) await trial.edit(sample);
  else await trial.create(sample);
  if (isStalled(expected)) await trial.fares(expected);
  else await trial.becomes(expected);
  return true;
}

function isStalled(state: Normal): boolean {
  return JSON.stringify(state['<readiness>']).includes('"Stalled":"True');
}

/** The fewest of the last specs that still lead to it, from a new custom resource on. */
async function shorter(
  stand: Stand,
  samples: readonly Sample[],
  failures: readonly Failure[],
): Promise<readonly Failure[]> {
  for (let length = 1; length < samples.length; length = length * 2) {
    const tail = samples.slice(-length - 1);
    const found = await attempt(stand, async (trial) => {
      await trial.start();
      let isThere = false;
      for (const sample of tail) isThere = (await goTo(trial, sample, isThere)) || isThere;
    });
    if (found.length > 0) return found;
  }
  return failures;
}
