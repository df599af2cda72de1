import type { SandboxClient } from '#sandbox/client.js';
import { storedVersion } from '../../contract/crd.js';
import { messageOf, OperatorError } from '../../contract/error.js';
import type { Kind } from '../../contract/kind.js';
import type { AnyObject } from '../../contract/object.js';
import { resourceType } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { suggest } from '../../contract/suggest.js';
import { rulesFor } from '../../install/rules.js';
import { judge, KnownKinds } from '../../synth/custom-resource.js';
import { formatProblem, showValue } from '../../synth/problem.js';
import { accountKubeconfig, grant, withdraw } from '../account.js';
import { cleanedUp, installCrd } from '../install-crd.js';
import { Cluster } from '../cluster.js';
import { eventually } from '../eventually.js';
import { Random } from '../random.js';
import { leavesOf } from '../walk/fields.js';
import { withSandbox } from '../with-sandbox.js';
import { drift } from './drift.js';
import { events, kills } from './faults.js';
import { madeBy, removedBy, Pace, sweptOf, ANY_SITE, contextOf } from './stand.js';
import { listKeys, rendering } from './offline.js';
import type { Check, Outcome, CheckName, CheckResult, SweepReport } from './outcome.js';
import { collisions, ownership, settling } from './settling.js';
import type { Sample, Spec, Stand, MakeSurroundings } from './stand.js';
import { truth } from './truth.js';
import { walk } from './walk.js';

const CHECKS: Readonly<Record<CheckName, Check>> = {
  'list keys': listKeys,
  rendering,
  settling,
  ownership,
  collisions,
  status: truth,
  drift,
  kills,
  events,
  walk,
};

/** How a kind is swept. */
export interface SweepOptions {
  /**
   * One that runs already, where the operator gets a namespace of its own.
   * @default - one of its own, which takes some seconds, and minutes on a machine that has never had one
   */
  readonly sandbox?: SandboxClient;
  /**
   * What the kind expects to find, in namespaces that each trial has for itself, and what its operator is started with:
   * for kinds that share objects with others, or delete them.
   * @default - nothing
   */
  readonly surroundings?: MakeSurroundings;
  /**
   * Fields of the spec that a walk leaves alone, with all that is in them, as in `limits` or `limits.mode`: those of which
   * what comes depends on more than the present spec.
   * @default - none
   */
  readonly notWalked?: readonly string[];
  /**
   * Specs under which something of an earlier one stays by design, as a port that is open while its upstream is missing: of
   * these a walk compares how the custom resource fares, and not the objects.
   * @default - none
   */
  readonly keepsEarlier?: (spec: Readonly<Record<string, unknown>>) => boolean;
  /**
   * Specs under which a custom resource rightly waits for somebody, or is stalled, in the surroundings and in a sandbox: of
   * these it isn't asked that they become ready.
   * @default - none
   */
  readonly waits?: (spec: Readonly<Record<string, unknown>>) => boolean;
  /** Gives the same walk again. @default - another one each time; the report tells it */
  readonly seed?: number;
  /** Those to run. @default - all */
  readonly checks?: readonly CheckName[];
  /** Takes each result as it is there. @default - the report tells them in the end */
  readonly onResult?: (result: CheckResult) => void;
}

/**
 * Sweeps a kind: see docs/testing.md for what is checked, and what that means.
 *
 * @param samples custom resources of the kind; of two or more, each is edited into the next
 * @throws OperatorError `InvalidInput` where samples, surroundings or other options can't be used; what doesn't hold is in the report
 */
export async function sweep(
  kind: Kind,
  samples: readonly AnyObject[],
  options: SweepOptions = {},
): Promise<SweepReport> {
  requireUsable(kind, samples, options, Object.keys(CHECKS));
  const { sandbox } = options;
  if (!sandbox)
    return withSandbox({ kinds: [kind] }, ({ cluster }) => sweepOn(cluster, kind, samples, options));
  const cluster = new Cluster(sandbox);
  try {
    await installCrd(cluster, kind);
    await requireCollected(cluster, kind, samples);
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
  const user = await cluster.makeNamespace('swept-operator');
  try {
    return await sweepAs(user, cluster, kind, samples, options);
  } finally {
    await removeAccount(cluster, kind, user);
  }
}

async function sweepAs(
  user: string,
  cluster: Cluster,
  kind: Kind,
  samples: readonly AnyObject[],
  { seed = Date.now() % 1_000_000, checks, onResult, surroundings, ...options }: SweepOptions,
): Promise<SweepReport> {
  const started = performance.now();
  // What flags lead to is granted for each trial, in its namespaces.
  if (!surroundings) await grant(cluster, { user, rules: rulesFor([kind]) });
  const all = samples.map(sampleOf) as [Sample, ...Sample[]];
  const stand: Stand = {
    ...sweptOf({ kind, samples: all, surroundings }),
    ...saidOf(options),
    ...{ cluster, user, seed, random: new Random(seed), pace: new Pace() },
    kubeconfig: await accountKubeconfig(cluster, user),
  };
  const results: CheckResult[] = [];
  for (const [name, check] of Object.entries(CHECKS) as [CheckName, Check][]) {
    if (checks && !checks.includes(name)) continue;
    const result = await judged(name, check, stand);
    results.push(result);
    onResult?.(result);
  }
  return {
    version: 1,
    ...{ kind: kind.type.kind, seed, checks: results, held: results.every(({ held }) => held) },
    seconds: (performance.now() - started) / 1_000,
  };
}

function saidOf({ notWalked = [], keepsEarlier = () => false, waits = () => false }: SweepOptions) {
  return { notWalked, keepsEarlier, waits };
}

async function judged(name: CheckName, check: Check, stand: Stand): Promise<CheckResult> {
  const started = performance.now();
  const outcome = await outcomeOf(check, stand);
  return {
    ...{ check: name, held: outcome.failures.length === 0 },
    ...outcome,
    seconds: (performance.now() - started) / 1_000,
  };
}

/** What fails before there is anything to compare with, fails the check all the same. */
async function outcomeOf(check: Check, stand: Stand): Promise<Outcome> {
  try {
    return await check(stand);
  } catch (error) {
    const specs = stand.samples.map(({ spec }) => `create it with ${JSON.stringify(spec)}`);
    return { tried: 'the samples undisturbed', failures: [{ what: messageOf(error), sequence: specs }] };
  }
}

function sampleOf({ metadata, spec }: AnyObject): Sample {
  const { labels, annotations } = metadata;
  return { spec: spec as Spec, ...(labels && { labels }), ...(annotations && { annotations }) };
}

/** What of the options is looked at. */
interface Given {
  readonly surroundings?: MakeSurroundings;
  readonly checks?: readonly string[];
  readonly notWalked?: readonly string[];
}

/** @throws OperatorError `InvalidInput` where a kind can't be swept with these */
function requireUsable(
  kind: Kind,
  samples: readonly AnyObject[],
  { surroundings, checks, notWalked = [] }: Given,
  known: readonly string[],
): void {
  const { type } = kind;
  if (samples.length === 0) throw unusable(`give at least one ${type.kind}`);
  if (!type.namespaced)
    throw unusable(`${type.kind} is cluster-scoped, and only namespaced kinds can be swept`);
  const other = samples.find(
    ({ apiVersion, kind: of }) => apiVersion !== type.apiVersion || of !== type.kind,
  );
  if (other)
    throw unusable(
      `a sample is a ${other.kind} of ${other.apiVersion}; give samples of ${type.kind} of ${type.apiVersion}`,
    );
  for (const [index, sample] of samples.entries()) requireValid(kind, sample, index);
  if (checks?.length === 0) throw unusable(`checks is empty; leave it out to run all: ${known.join(', ')}`);
  requireKnown('checks', checks ?? [], known);
  requireKnown('notWalked', notWalked, fieldsOf(kind));
  requireSurroundings(kind, surroundings);
}

/** Else a sweep would find that a refused custom resource doesn't do anything wrong. */
function requireValid(kind: Kind, { apiVersion, kind: of, metadata, spec }: AnyObject, index: number): void {
  const version = new KnownKinds([kind]).find({ apiVersion, kind: of });
  if (!('kind' in version)) throw unusable(formatProblem(version));
  const { labels, annotations } = metadata;
  const named = {
    name: 'swept',
    namespace: 'sweep',
    ...(labels && { labels }),
    ...(annotations && { annotations }),
  };
  const problems = judge(version, version.withDefaults({ apiVersion, kind: of, metadata: named, spec }));
  if (problems.length > 0)
    throw unusable(problems.map((problem) => `sample ${index + 1}: ${formatProblem(problem)}`).join('\n'));
}

function requireKnown(option: string, given: readonly string[], known: readonly string[]): void {
  const unknown = given.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const near = suggest(unknown, known);
  const meant = near === undefined ? `known are ${known.join(', ')}` : `did you mean ${near}?`;
  throw unusable(`${option}: there is no ${showValue(unknown)}; ${meant}`);
}

/** Every field of the spec, and all that holds some. */
function fieldsOf({ crd }: Kind): string[] {
  const leaves = leavesOf(storedVersion(crd).schema.openAPIV3Schema.properties?.spec ?? {});
  const paths = leaves.flatMap((path) => path.map((_, index) => path.slice(0, index + 1).join('.')));
  return [...new Set(paths)];
}

function requireSurroundings(kind: Kind, surroundings: MakeSurroundings | undefined): void {
  const context = contextOf(surroundings?.(ANY_SITE) ?? {});
  const [removed] = removedBy(kind, context);
  if (removed && !surroundings)
    throw unusable(
      `${kind.type.kind} deletes objects of the kind ${removed.kind}; give some of them by the option surroundings`,
    );
  for (const { type, namespaces = [] } of madeBy(kind, context)) {
    const elsewhere = namespaces.find((namespace) => namespace !== ANY_SITE.elsewhere);
    if (elsewhere !== undefined)
      throw unusable(
        `${kind.type.kind} shares a ${type.kind} in the namespace ${elsewhere}, which all trials would have in common; lead it to site.elsewhere, by flags or policy of the option surroundings`,
      );
  }
}

function unusable(message: string): OperatorError {
  return new OperatorError({ reason: 'InvalidInput', message: `sweep: ${message}` });
}

const configMaps = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });

/** The garbage collector looks for new kinds every half minute only. */
export async function requireCollected(
  cluster: Cluster,
  { type }: Kind,
  [sample]: readonly AnyObject[],
): Promise<void> {
  const namespace = await cluster.makeNamespace('sweep');
  await cleanedUp(
    () => requireCollectedIn(namespace, cluster, type, sample),
    () => cluster.send('DELETE', `/api/v1/namespaces/${namespace}`),
  );
}

async function requireCollectedIn(
  namespace: string,
  cluster: Cluster,
  type: ResourceType,
  sample: AnyObject | undefined,
): Promise<void> {
  const metadata = { name: 'collected', namespace };
  const owner = await cluster.create(type, {
    ...sample,
    apiVersion: type.apiVersion,
    kind: type.kind,
    metadata,
  });
  const { apiVersion, kind } = owner;
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
}

const namespaces = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });

/** Takes away what an operator of a kind was granted in the whole cluster, and its namespace with its account. */
async function removeAccount(cluster: Cluster, kind: Kind, user: string): Promise<void> {
  await withdraw(cluster, { user, rules: rulesFor([kind]) });
  await cluster.delete({ type: namespaces, name: user }, { mayBeMissing: true });
}
