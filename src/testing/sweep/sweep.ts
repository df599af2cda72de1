import type { SandboxClient } from '#sandbox/client.js';
import { messageOf } from '../../contract/error.js';
import type { Kind } from '../../contract/kind.js';
import type { AnyObject } from '../../contract/object.js';
import { rulesFor } from '../../install/rules.js';
import { accountKubeconfig } from '../account.js';
import { Cluster } from '../cluster.js';
import { installCrd } from '../install-crd.js';
import { Random } from '../random.js';
import { grant } from '../rights.js';
import { withSandbox } from '../with-sandbox.js';
import { removeAccount } from './account-removed.js';
import { requireCollected } from './collected.js';
import { collisions } from './collisions.js';
import { drift } from './drift.js';
import { events } from './events.js';
import { kills } from './kills.js';
import { listKeys, rendering } from './offline.js';
import type { Check, Outcome } from './outcome.js';
import { Pace } from './pace.js';
import type { CheckName, CheckResult, SweepReport } from './report.js';
import { ownership, settling } from './settling.js';
import { sweptOf } from './stand.js';
import type { Sample, Spec, Stand } from './stand.js';
import type { MakeSurroundings } from './surroundings.js';
import { truth } from './truth.js';
import { requireUsable } from './usable.js';
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
