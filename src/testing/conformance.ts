import { parseArgs } from 'node:util';
import type { SandboxClient } from '#sandbox/client.js';
import { storedVersion } from '../contract/crd.js';
import { oneOf } from '../values/suggest.js';
import { messageOf, OperatorError } from '../contract/error.js';
import type { Kind, StandaloneController } from '../contract/kind.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { rulesFor } from '../install/rules.js';
import { judge, KnownKinds } from '../validate/custom-resource.js';
import { formatProblem } from '../validate/problem.js';
import { problemsInSections } from '../validate/schema.js';
import { showValue } from '../values/path.js';
import { accountKubeconfig, ensureNamespace, grant, installCrd, withdraw } from './account.js';
import { collisions, ownership, settling, status } from './checks.js';
import { Cluster } from './cluster.js';
import { events, kills, observed, order, references, values } from './disturbances.js';
import { adoption, control, drift } from './drift.js';
import { listKeys, rendering } from './offline-checks.js';
import { withSandbox } from './operator.js';
import { CHECK_NAMES, formatProgress, formatReport, shortest } from './report.js';
import type { CheckName, CheckResult, Outcome, ConformanceReport } from './report.js';
import { ANY_SITE, contextOf, decoratorKind, effectsOf, elsewhereOf, isDecorator } from './tested-kind.js';
import { SAMPLE_SITE, testedKind } from './tested-kind.js';
import type { MakeSurroundings, Sample, SampleSite, Surroundings } from './tested-kind.js';
import { choice, deletion, fields, memory } from './lasting.js';
import { CONVERGENCE_MILLISECONDS, kindsOf, Pace, removeNamespace } from './trial.js';
import type { ConformanceRun } from './trial.js';
import { upgrade } from './upgrade.js';
import { walk } from './walk-check.js';
import { leavesOf, pathsTo, Random } from './walk.js';
import type { Spec } from './walk.js';

const CHECKS: Readonly<Record<CheckName, (run: ConformanceRun) => Promise<Outcome> | Outcome>> = {
  'list keys': listKeys,
  ...{ rendering, settling, ownership, collisions, status, drift, kills, references, observed, order },
  ...{ memory, values, control, adoption, deletion, choice, fields, upgrade, events, walk },
};

/** Options of a conformance run. */
export interface ConformanceOptions {
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
  /**
   * Former version of the kind, from another folder or package, for the check `upgrade`.
   * @default - none: that check doesn't apply
   */
  readonly before?: Kind;
  /** Seed that repeats a walk. @default - another one each time; the report has it */
  readonly seed?: number;
  /** Checks to run. @default - all */
  readonly checks?: readonly CheckName[];
  /** Called with each result at once. @default - the report has them in the end */
  readonly onResult?: (result: CheckResult) => void;
}

/**
 * Runs the conformance checks of a kind; see docs/testing.md for them.
 *
 * @param given a kind, or what `decorate` has made: then the samples are objects of others that it chooses, which need a `spec`
 * @param samples custom resources of the kind; of two or more, each is edited into the next. A function is called once, with names
 *   that stand for those of each trial
 * @throws OperatorError `InvalidInput` where samples, surroundings or other options can't be used; what doesn't hold is in the report
 */
export async function sweep(
  given: Kind | StandaloneController,
  samples: readonly AnyObject[] | ((site: SampleSite) => readonly AnyObject[]),
  options: ConformanceOptions = {},
): Promise<ConformanceReport> {
  const kind = 'crd' in given ? given : given.renders && decoratorKind(given, given.renders);
  if (!kind)
    throw new OperatorError({ reason: 'InvalidInput', message: `sweep: ${given.name} renders nothing` });
  const all = typeof samples === 'function' ? samples(SAMPLE_SITE) : samples;
  const problem = unusable(kind, all, options);
  if (problem !== undefined)
    throw new OperatorError({ reason: 'InvalidInput', message: `sweep: ${problem}` });
  const { sandbox } = options;
  const kinds = isDecorator(kind) ? [] : [kind];
  if (!sandbox) return withSandbox({ kinds }, ({ cluster }) => runChecks(cluster, kind, all, options));
  const cluster = new Cluster(sandbox);
  try {
    await installCrd(cluster, ...kinds);
    return await runChecks(cluster, kind, all, options);
  } finally {
    await cluster.close();
  }
}

async function runChecks(
  cluster: Cluster,
  kind: Kind,
  samples: readonly AnyObject[],
  options: ConformanceOptions,
): Promise<ConformanceReport> {
  const { seed = Date.now() % 1_000_000, checks, onResult } = options;
  const isElsewhere = JSON.stringify(samples).includes(SAMPLE_SITE.elsewhere);
  const { surroundings = isElsewhere ? () => ({}) : undefined } = options;
  const { notWalked = [], keepsEarlier = () => false, waits = () => false, before } = options;
  const versions = kindsOf({ kind, before });
  const rules = rulesFor(versions);
  const started = performance.now();
  const user = await cluster.makeNamespace('conformance-operator');
  try {
    const elsewhere = versions
      .flatMap(elsewhereOf)
      .flatMap(({ namespaces = [] }) => (namespaces === '*' ? [] : namespaces));
    for (const namespace of new Set(elsewhere)) await ensureNamespace(cluster, namespace);
    // Rights that follow from flags are granted for each trial, in its namespaces.
    if (!surroundings) await grant(cluster, { user, rules });
    const run: ConformanceRun = {
      ...testedKind(kind, samples.map(sampleOf) as [Sample, ...Sample[]], surroundings),
      ...{ notWalked, keepsEarlier, waits, before, cluster, user, expected: new Map() },
      ...{ random: new Random(seed), pace: new Pace(), convergenceMilliseconds: CONVERGENCE_MILLISECONDS },
      kubeconfig: await accountKubeconfig(cluster, user),
    };
    const results: CheckResult[] = [];
    for (const check of CHECK_NAMES) {
      if (checks && !checks.includes(check)) continue;
      const result = await resultOf(check, run);
      results.push(result);
      onResult?.(result);
    }
    return {
      ...{ version: 1, kind: kind.type.kind, seed, checks: results },
      ...{ held: results.every(({ held }) => held), seconds: (performance.now() - started) / 1_000 },
    };
  } finally {
    await withdraw(cluster, { user, rules });
    await removeNamespace(cluster, user);
  }
}

async function resultOf(check: CheckName, run: ConformanceRun): Promise<CheckResult> {
  const started = performance.now();
  let outcome: Outcome;
  try {
    outcome = await CHECKS[check](run);
  } catch (error) {
    // Even the expected state wasn't found.
    const sequence = run.samples.map(({ spec }) => `create it with ${JSON.stringify(spec)}`);
    outcome = { tried: 'the samples undisturbed', failures: [{ what: messageOf(error), sequence }] };
  }
  const failures = shortest(outcome.failures);
  const seconds = (performance.now() - started) / 1_000;
  return { check, held: failures.length === 0, ...outcome, failures, seconds };
}

function sampleOf({ metadata: { labels, annotations }, spec }: AnyObject): Sample {
  return { spec: spec as Spec, ...(labels && { labels }), ...(annotations && { annotations }) };
}

/**
 * Runs the conformance checks as a command: `node sweep.ts [CHECK...] [--seed NUMBER]`. Prints each result at once and the report in the end.
 * The exit code is 0 where everything holds, 1 where something doesn't, and 2 for bad input.
 *
 * @param samples returns the samples, as those of `sweep`; a mistake in them is reported in a sentence
 */
export async function sweepCommand(
  kind: Kind | StandaloneController,
  samples: (site: SampleSite) => Promise<readonly AnyObject[]> | readonly AnyObject[],
  options: Omit<ConformanceOptions, 'checks' | 'seed'> = {},
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
    const report = await sweep(kind, await samples(SAMPLE_SITE), {
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

/** Returns why the input can't be used: samples that the API server refuses, and checks that don't exist, would hold. */
function unusable(
  kind: Kind,
  samples: readonly AnyObject[],
  { surroundings, checks, before, notWalked = [] }: ConformanceOptions,
): string | undefined {
  const { type, crd } = kind;
  if (samples.length === 0) return `give at least one ${type.kind}`;
  if (!type.namespaced && !('each' in kind.rendering))
    return `${type.kind} is cluster-scoped, and on the core contract only namespaced kinds can be swept`;
  const other = samples.find((one) => one.apiVersion !== type.apiVersion || one.kind !== type.kind);
  if (other)
    return `a sample is a ${other.kind} of ${other.apiVersion}; give samples of ${type.kind} of ${type.apiVersion}`;
  if (before && groupKind(before.type) !== groupKind(type))
    return `before is the kind ${groupKind(before.type)}; give a former version of ${groupKind(type)}`;
  const isDecorating = isDecorator(kind);
  if (isDecorating && !(type.namespaced && samples.every(({ spec }) => spec)))
    return `of objects of others, those with a namespace and a spec can be swept`;
  const version = new KnownKinds([kind]).find(type);
  if (!isDecorating && !('kind' in version)) return formatProblem(version);
  const wrong = samples.flatMap((sample, index) => {
    if (!('kind' in version)) return [];
    const { spec, ...meta } = sampleOf(sample);
    const { apiVersion, kind: of } = type;
    const metadata = { name: 'sample', namespace: 'sweep', ...meta };
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
  const around = surroundings?.(ANY_SITE) ?? {};
  const misconfigured = misconfiguredBy(kind, around);
  if (misconfigured.length > 0) return misconfigured.join('\n');
  const { made, removes } = effectsOf(kind, contextOf(kind, around));
  if (removes[0] && !surroundings)
    return `${type.kind} deletes objects of the kind ${removes[0].kind}; give some of them by the option surroundings`;
  const common = made.find(({ namespaces }) => namespaces && String(namespaces) !== ANY_SITE.elsewhere);
  return (
    common &&
    `${type.kind} shares a ${common.type.kind} in the namespace ${String(common.namespaces)}, which all trials would have in common; lead it to site.elsewhere, by flags or policy of the option surroundings`
  );
}

/** Returns what is wrong with the settings and the policy of a kind, or missing. */
function misconfiguredBy(
  { settingsSchema, policySchema }: Kind,
  { settings, policy }: Surroundings,
): string[] {
  const given = { settings: settings ?? settingsSchema?.default ?? (settingsSchema && {}), policy };
  const sections = Object.entries(given).filter(([, section]) => section !== undefined);
  const schemas = {
    ...(settingsSchema && { settings: settingsSchema }),
    ...(policySchema && { policy: policySchema }),
  };
  const problems = problemsInSections(Object.fromEntries(sections), schemas);
  return problems.map((problem) => `surroundings: ${formatProblem(problem)}`);
}
