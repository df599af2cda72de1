import type { SandboxClient } from '#sandbox/client.js';
import { messageOf, OperatorError } from '../../contract/error.js';
import type { Kind } from '../../contract/kind.js';
import type { AnyObject } from '../../contract/object.js';
import { rulesFor } from '../../install/rules.js';
import { resourceType } from '../../contract/resource.js';
import { accountKubeconfig } from '../account.js';
import { Cluster } from '../cluster.js';
import { eventually } from '../eventually.js';
import { installCrd } from '../install-crd.js';
import { Random } from '../random.js';
import { grant } from '../rights.js';
import { withSandbox } from '../with-sandbox.js';
import { collisions } from './collisions.js';
import { drift } from './drift.js';
import { events } from './events.js';
import { kills } from './kills.js';
import { listKeys, rendering } from './offline.js';
import type { Check, Outcome } from './outcome.js';
import type { CheckName, CheckResult, SweepReport } from './report.js';
import { ownership, settling } from './settling.js';
import { madeTypes } from './stand.js';
import type { Sample, Spec, Stand } from './stand.js';
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

export interface SweepOptions {
  /**
   * One that runs already, where the operator gets a namespace of its own.
   * @default - one of its own, which takes some seconds, and minutes on a machine that has never had one
   */
  readonly sandbox?: SandboxClient;
  /** Gives the same walk again. @default - another one each time; the report tells it */
  readonly seed?: number;
  /** @default - all */
  readonly checks?: readonly CheckName[];
  /** Takes each result as it is there. @default - the report tells them in the end */
  readonly onResult?: (result: CheckResult) => void;
}

/**
 * Sweeps a kind: see docs/testing.md for what is checked, and what that means.
 *
 * @param samples custom resources of the kind; of two or more, each is edited into the next
 * @throws OperatorError `InvalidInput` where the samples can't be used; what doesn't hold is in the report
 */
export async function sweep(
  kind: Kind,
  samples: readonly AnyObject[],
  options: SweepOptions = {},
): Promise<SweepReport> {
  requireUsable(kind, samples);
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
  { seed = Date.now() % 1_000_000, checks, onResult }: SweepOptions,
): Promise<SweepReport> {
  const started = performance.now();
  const user = await cluster.makeNamespace('swept-operator');
  await grant(cluster, { user, rules: rulesFor([kind]) });
  const stand: Stand = {
    ...{ cluster, kind, seed, random: new Random(seed) },
    kubeconfig: await accountKubeconfig(cluster, user),
    samples: samples.map(sampleOf) as [Sample, ...Sample[]],
    types: madeTypes(kind),
  };
  const results: CheckResult[] = [];
  for (const [name, check] of Object.entries(CHECKS) as [CheckName, Check][]) {
    if (checks && !checks.includes(name)) continue;
    const result = await judged(name, check, stand);
    results.push(result);
    onResult?.(result);
  }
  return {
    ...{ kind: kind.type.kind, seed, checks: results, held: results.every(({ held }) => held) },
    seconds: (performance.now() - started) / 1_000,
  };
}

const configMaps = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });

/** The garbage collector looks for new kinds every half minute only. */
async function requireCollected(
  cluster: Cluster,
  { type }: Kind,
  [sample]: readonly AnyObject[],
): Promise<void> {
  const namespace = await cluster.makeNamespace('sweep');
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
  await cluster.send('DELETE', `/api/v1/namespaces/${namespace}`);
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

function requireUsable({ type }: Kind, samples: readonly AnyObject[]): void {
  if (samples.length === 0) throw unusable(`give at least one ${type.kind}`);
  if (!type.namespaced)
    throw unusable(`${type.kind} is cluster-scoped, and only namespaced kinds can be swept`);
  const other = samples.find(({ apiVersion, kind }) => apiVersion !== type.apiVersion || kind !== type.kind);
  if (other)
    throw unusable(
      `a sample is a ${other.kind} of ${other.apiVersion}; give samples of ${type.kind} of ${type.apiVersion}`,
    );
}

function unusable(message: string): OperatorError {
  return new OperatorError({ reason: 'InvalidInput', message: `sweep: ${message}` });
}
