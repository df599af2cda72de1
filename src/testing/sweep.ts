import { parseArgs } from 'node:util';
import type { SandboxClient } from '#sandbox/client.js';
import { storedVersion } from '../contract/crd.js';
import { oneOf } from '../values/suggest.js';
import { messageOf, OperatorError } from '../contract/error.js';
import type { FlagValues, Kind } from '../contract/kind.js';
import type { AnyObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import { rulesFor } from '../install/rules.js';
import { judge, KnownKinds } from '../validate/custom-resource.js';
import { formatProblem, showValue } from '../validate/problem.js';
import { accountKubeconfig, grant, installCrd, withdraw } from './account.js';
import { adoption, control, observed, order, references, values } from './capabilities.js';
import { collisions, drift, events, kills, ownership, settling, status } from './checks.js';
import { Cluster } from './cluster.js';
import { eventually } from './eventually.js';
import { withSandbox } from './operator.js';
import { listKeys, rendering } from './render.js';
import {
  ANY_SITE,
  CONVERGENCE_MILLISECONDS,
  contextOf,
  effectsOf,
  Pace,
  removeNamespace,
  sweptOf,
} from './trial.js';
import type { Sample, Stand } from './trial.js';
import { walk } from './walk-check.js';
import { leavesOf, pathsTo, Random } from './walk.js';
import type { Spec } from './walk.js';

/** Something that doesn't hold. */
export interface Failure {
  readonly what: string;
  /** Steps to see it, from an empty namespace on; the shortest that were found. */
  readonly sequence: readonly string[];
}

/** Outcome of one check. */
export interface Outcome {
  /** Trials in numbers. */
  readonly tried: string;
  readonly failures: readonly Failure[];
  /** Reason for which it says nothing of this kind. @default - it does */
  readonly notApplicable?: string;
  /** Edits of fields that a walk didn't do, such as `change: image`. @default - it is no walk */
  readonly notDone?: readonly string[];
  /** Fields that a walk left out: no sample has them, and the schema says too little of them. @default - it is no walk */
  readonly notWalked?: readonly string[];
}

const CHECKS = {
  'list keys': listKeys,
  rendering,
  settling,
  ownership,
  collisions,
  status,
  drift,
  kills,
  references,
  observed,
  order,
  values,
  control,
  adoption,
  events,
  walk,
} satisfies Readonly<Record<string, (stand: Stand) => Promise<Outcome> | Outcome>>;

/** Names of the checks, in the order in which they run. */
export type CheckName = keyof typeof CHECKS;
const CHECK_NAMES = Object.keys(CHECKS) as CheckName[];

/** Result of one check. */
export interface CheckResult extends Outcome {
  readonly check: CheckName;
  readonly held: boolean;
  readonly seconds: number;
}

/** Results of a sweep, as plain JSON. */
export interface SweepReport {
  /** Fields may be added to this version; none is taken away or comes to mean something else. */
  readonly version: 1;
  readonly kind: string;
  /** Gives the same walk again. */
  readonly seed: number;
  readonly held: boolean;
  readonly seconds: number;
  readonly checks: readonly CheckResult[];
}

/** Namespaces of one trial. */
export interface Site {
  /** Namespace of the custom resource. */
  readonly namespace: string;
  /** Another one, for what a kind shares or finds elsewhere. */
  readonly elsewhere: string;
  /**
   * Number of times that what the kind deletes was created again in this trial, from 0 on; for names, since the next object of a name
   * may be treated differently.
   */
  readonly round: number;
}

/** Objects that a kind expects to find, and flags and policy of its operator. */
export interface Surroundings {
  /** Namespaced objects, made in this order before the operator starts, each with its status if it has one. @default - none */
  readonly objects?: readonly AnyObject[];
  /** Flags of the kind, as given on the command line. @default - none is given */
  readonly flags?: FlagValues;
  /** The kind's section of a policy. @default - nothing is restricted */
  readonly policy?: unknown;
}

/** Returns the same for the same site, and as many objects of the same kinds for every other. */
export type MakeSurroundings = (site: Site) => Surroundings;

/** Options of a sweep. */
export interface SweepOptions {
  /**
   * Sandbox that runs already, where the operator gets a namespace of its own.
   * @default - one of its own, which takes some seconds, and minutes on a machine that has never had one
   */
  readonly sandbox?: SandboxClient;
  /**
   * Returns what the kind expects to find, in namespaces that each trial has for itself, and what its operator is started with:
   * for kinds that share objects with others, or delete them.
   * @default - nothing
   */
  readonly surroundings?: MakeSurroundings;
  /**
   * Fields of the spec that a walk leaves alone, with all that is in them, as in `limits` or `limits.mode`: those whose
   * effect depends on more than the present spec.
   * @default - none
   */
  readonly notWalked?: readonly string[];
  /**
   * Reports whether something of an earlier spec stays under this one by design, as a port that is open while its upstream
   * is missing: then a walk compares the conditions alone.
   * @default - nothing stays
   */
  readonly keepsEarlier?: (spec: Readonly<Record<string, unknown>>) => boolean;
  /**
   * Reports whether a custom resource with this spec rightly waits for something, or is stalled, in a sandbox: then it need
   * not become ready.
   * @default - none does
   */
  readonly waits?: (spec: Readonly<Record<string, unknown>>) => boolean;
  /** Gives the same walk again. @default - another one each time; the report has it */
  readonly seed?: number;
  /** Checks to run. @default - all */
  readonly checks?: readonly CheckName[];
  /** Takes each result at once. @default - the report has them in the end */
  readonly onResult?: (result: CheckResult) => void;
}

/**
 * Sweeps a kind: see docs/testing.md for the checks.
 *
 * @param samples custom resources of the kind; of two or more, each is edited into the next
 * @throws OperatorError `InvalidInput` where samples, surroundings or other options can't be used; what doesn't hold is in the report
 */
export async function sweep(
  kind: Kind,
  samples: readonly AnyObject[],
  options: SweepOptions = {},
): Promise<SweepReport> {
  const problem = unusable(kind, samples, options);
  if (problem !== undefined)
    throw new OperatorError({ reason: 'InvalidInput', message: `sweep: ${problem}` });
  const { sandbox } = options;
  if (!sandbox)
    return withSandbox({ kinds: [kind] }, ({ cluster }) => sweepOn(cluster, kind, samples, options));
  const cluster = new Cluster(sandbox);
  try {
    await installCrd(cluster, kind);
    await requireCollected(cluster, kind, samples[0]);
    return await sweepOn(cluster, kind, samples, options);
  } finally {
    await cluster.close();
  }
}

async function sweepOn(
  cluster: Cluster,
  kind: Kind,
  samples: readonly AnyObject[],
  options: SweepOptions,
): Promise<SweepReport> {
  const { seed = Date.now() % 1_000_000, checks, onResult, surroundings } = options;
  const { notWalked = [], keepsEarlier = () => false, waits = () => false } = options;
  const started = performance.now();
  const user = await cluster.makeNamespace('swept-operator');
  try {
    // Rights that follow from flags are granted for each trial, in its namespaces.
    if (!surroundings) await grant(cluster, { user, rules: rulesFor([kind]) });
    const stand: Stand = {
      ...sweptOf(kind, samples.map(sampleOf) as [Sample, ...Sample[]], surroundings),
      ...{ notWalked, keepsEarlier, waits, cluster, user, random: new Random(seed), pace: new Pace() },
      ...{ convergenceMilliseconds: CONVERGENCE_MILLISECONDS, expected: new Map() },
      kubeconfig: await accountKubeconfig(cluster, user),
    };
    const results: CheckResult[] = [];
    for (const check of CHECK_NAMES) {
      if (checks && !checks.includes(check)) continue;
      const result = await resultOf(check, stand);
      results.push(result);
      onResult?.(result);
    }
    return {
      ...{ version: 1, kind: kind.type.kind, seed, checks: results },
      ...{ held: results.every(({ held }) => held), seconds: (performance.now() - started) / 1_000 },
    };
  } finally {
    await withdraw(cluster, { user, rules: rulesFor([kind]) });
    await removeNamespace(cluster, user);
  }
}

async function resultOf(check: CheckName, stand: Stand): Promise<CheckResult> {
  const started = performance.now();
  let outcome: Outcome;
  try {
    outcome = await CHECKS[check](stand);
  } catch (error) {
    // Even the expected state wasn't found.
    const sequence = stand.samples.map(({ spec }) => `create it with ${JSON.stringify(spec)}`);
    outcome = { tried: 'the samples undisturbed', failures: [{ what: messageOf(error), sequence }] };
  }
  const failures = shortest(outcome.failures);
  const seconds = (performance.now() - started) / 1_000;
  return { check, held: failures.length === 0, ...outcome, failures, seconds };
}

function sampleOf({ metadata: { labels, annotations }, spec }: AnyObject): Sample {
  return { spec: spec as Spec, ...(labels && { labels }), ...(annotations && { annotations }) };
}

/** Returns of failures that say the same the one with the shortest sequence; the shortest of all first. */
export function shortest(failures: readonly Failure[]): Failure[] {
  const lengthOf = ({ sequence }: Failure): number => sequence.length * 10_000 + sequence.join('').length;
  const byWhat = new Map<string, Failure>();
  for (const failure of [...failures].sort((a, b) => lengthOf(a) - lengthOf(b))) {
    const what = withoutMoment(failure.what);
    if (!byWhat.has(what)) byWhat.set(what, failure);
  }
  return [...byWhat.values()];
}

/** Returns what failed without what differs from trial to trial: how long was waited, and the name. */
export function withoutMoment(what: string): string {
  return what.replaceAll(/\bafter [\d.]+ s\b/g, 'after a while').replaceAll(/\bswept-\d+/g, '<name>');
}

function verdictOf({ held, notApplicable }: CheckResult): string {
  return notApplicable === undefined ? (held ? 'held' : 'FAILED') : 'not applicable';
}

/** Formats the progress of a sweep: a line for a check that has ended, in the words of the report. */
export function formatProgress(result: CheckResult): string {
  return `${result.check}: ${verdictOf(result)}, after ${result.seconds.toFixed(0)} s`;
}

/** Formats a report for people: a table of the checks, and below it what doesn't hold. */
export function formatReport({ kind, seed, seconds, checks }: SweepReport): string {
  const rows = checks.map((result) => [
    result.check,
    verdictOf(result),
    `${result.seconds.toFixed(1)} s`,
    result.notApplicable ?? result.tried,
  ]);
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
  const failures = checks.flatMap(({ check, failures: all }) =>
    all.flatMap(({ what, sequence }) => [
      '',
      `${check}: ${what}`,
      ...sequence.map((step, index) => `  ${index + 1}. ${step}`),
    ]),
  );
  return [`${kind}, seed ${seed}, ${seconds.toFixed(0)} s`, ...lines, ...failures]
    .map((line) => line.trimEnd())
    .join('\n');
}

/**
 * Runs a sweep as a command: `node sweep.ts [CHECK...] [--seed NUMBER]`. Prints each result at once and the report in the end.
 * The exit code is 0 where everything holds, 1 where something doesn't, and 2 for bad input.
 *
 * @param samples returns the samples; a mistake in them is reported in a sentence
 */
export async function sweepCommand(
  kind: Kind,
  samples: () => Promise<readonly AnyObject[]>,
  options: Omit<SweepOptions, 'checks' | 'seed'> = {},
): Promise<void> {
  const print = (text: string): void => void process.stdout.write(`${text}\n`);
  try {
    const { values, positionals } = parseArgs({
      options: { seed: { type: 'string' } },
      allowPositionals: true,
    });
    const { seed } = values;
    if (seed !== undefined && !/^\d{1,15}$/.test(seed))
      throw new OperatorError({
        reason: 'InvalidInput',
        message: `--seed: ${seed} is no number; give that of a report`,
      });
    const report = await sweep(kind, await samples(), {
      onResult: (result) => {
        print(formatProgress(result));
      },
      ...options,
      ...(positionals.length > 0 && { checks: positionals as CheckName[] }),
      ...(seed !== undefined && { seed: Number(seed) }),
    });
    print(`\n${formatReport(report)}`);
    process.exitCode = report.held ? 0 : 1;
  } catch (error) {
    const isUsage = String((error as NodeJS.ErrnoException).code).startsWith('ERR_PARSE_ARGS');
    if (!isUsage && !(error instanceof OperatorError)) throw error;
    process.stderr.write(`${messageOf(error)}\n`);
    process.exitCode = 2;
  }
}

/**
 * Makes a test fail where something doesn't hold.
 * @throws with the whole report
 */
export function requireHeld(report: SweepReport): void {
  if (!report.held) throw new Error(formatReport(report));
}

/** Samples that the API server refuses, and checks that don't exist, would hold. */
function unusable(
  kind: Kind,
  samples: readonly AnyObject[],
  { surroundings, checks, notWalked = [] }: SweepOptions,
): string | undefined {
  const { type, crd } = kind;
  if (samples.length === 0) return `give at least one ${type.kind}`;
  if (!type.namespaced && !('each' in kind.rendering))
    return `${type.kind} is cluster-scoped, and on the core contract only namespaced kinds can be swept`;
  const other = samples.find((one) => one.apiVersion !== type.apiVersion || one.kind !== type.kind);
  if (other)
    return `a sample is a ${other.kind} of ${other.apiVersion}; give samples of ${type.kind} of ${type.apiVersion}`;
  const version = new KnownKinds([kind]).find(type);
  if (!('kind' in version)) return formatProblem(version);
  const wrong = samples.flatMap((sample, index) => {
    const { spec, ...meta } = sampleOf(sample);
    const { apiVersion, kind: of } = type;
    const metadata = { name: 'swept', namespace: 'sweep', ...meta };
    const problems = judge(version, version.withDefaults({ apiVersion, kind: of, metadata, spec }));
    return problems.map((problem) => `sample ${index + 1}: ${formatProblem(problem)}`);
  });
  if (wrong.length > 0) return wrong.join('\n');
  if (checks?.length === 0) return `checks is empty; leave it out to run all: ${CHECK_NAMES.join(', ')}`;
  const paths = leavesOf(storedVersion(crd).schema.openAPIV3Schema.properties?.spec ?? {}).flatMap(pathsTo);
  const fields = [...new Set(paths.map((path) => path.join('.')))];
  for (const [option, given, known] of [
    ['checks', checks ?? [], CHECK_NAMES],
    ['notWalked', notWalked, fields],
  ] as const) {
    const unknown = given.find((name) => !(known as readonly string[]).includes(name));
    if (unknown !== undefined)
      return `${option}: there is no ${showValue(unknown)}; ${oneOf(unknown, known)}`;
  }
  const { made, removes } = effectsOf(kind, contextOf(surroundings?.(ANY_SITE) ?? {}));
  if (removes[0] && !surroundings)
    return `${type.kind} deletes objects of the kind ${removes[0].kind}; give some of them by the option surroundings`;
  const common = made.find(({ namespaces }) => namespaces?.some((name) => name !== ANY_SITE.elsewhere));
  return (
    common &&
    `${type.kind} shares a ${common.type.kind} in the namespace ${common.namespaces?.join() ?? ''}, which all trials would have in common; lead it to site.elsewhere, by flags or policy of the option surroundings`
  );
}

const configMaps = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });

/** Waits until the garbage collector knows the kind: it looks for new ones every half minute only. */
async function requireCollected(cluster: Cluster, { type }: Kind, sample?: AnyObject): Promise<void> {
  const namespace = await cluster.makeNamespace('sweep');
  const metadata = { name: 'collected', namespace };
  try {
    const { apiVersion, kind } = type;
    const owner = await cluster.create(type, { ...sample, apiVersion, kind, metadata });
    const ownerReferences = [{ apiVersion, kind, name: metadata.name, uid: owner.metadata.uid ?? '' }];
    const child = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...metadata, ownerReferences } };
    await cluster.create(configMaps, child);
    await cluster.delete({ type, ...metadata });
    await eventually(
      async () => {
        if (await cluster.find({ type: configMaps, ...metadata }))
          throw new Error(`The garbage collector doesn't know ${kind} yet`);
      },
      { deadlineMilliseconds: 90_000, intervalMilliseconds: 200 },
    );
  } finally {
    await removeNamespace(cluster, namespace);
  }
}
