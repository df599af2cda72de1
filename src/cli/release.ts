import { HELD } from '../author/updates.js';
import type { LeaseSpec } from '../engine/loop/leader.js';
import type { Api } from '../client/api.js';
import { ApiError } from '../client/api-error.js';
import { retried, TRIES } from '../client/retry.js';
import { UPDATE_PENDING } from '../contract/change.js';
import { LEASE_NAME, RELEASE_ANNOTATION, rolloutStopped } from '../contract/names.js';
import { describeRef, keyOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { statusOf } from '../values/readiness.js';
import { withCluster } from './cluster.js';
import { loadKinds } from './config.js';
import { leaseType, stoppedRollouts } from './operators.js';
import type { KindData } from './operators.js';
import type { SharedOptions } from './options.js';
import { CliError, plain, print, printError } from './output.js';
import { lister } from './reader.js';
import { noSuchResource, targetsOf } from './targets.js';
import type { KindTarget } from './targets.js';
import { customResources } from './tree/model.js';
import type { Target } from './tree/model.js';

interface Options extends SharedOptions {
  readonly allNamespaces?: boolean;
  readonly selector?: string;
  readonly dryRun?: boolean;
  readonly resume?: boolean;
}

/** The lease of each operator, in the place of a custom resource. */
const LEASE: Target = { kind: { type: leaseType } as KindData, name: LEASE_NAME };

/** `reconstruct release`: releases updates that are held, or has rollouts go on that have stopped. */
export async function runRelease(words: readonly string[], options: Options): Promise<void> {
  const { allNamespaces, selector = options.namespace, dryRun, resume } = options;
  if (words.length === 0 && selector === undefined && !allNamespaces && !dryRun && !resume)
    throw new CliError(
      'release which updates? Name a kind or custom resources, choose with -l or -n, or take all with -A; --dry-run shows them',
    );
  const targets = targetsOf(words, await loadKinds(options), options.selector);
  if (resume && targets.some(({ name }) => name !== undefined))
    throw new CliError(`${words.join(' ')}: a rollout is that of a kind: leave out the name, or --resume`);
  await withCluster(options, async (_, { api, namespace }) =>
    release(api, targets, { ...options, namespace }),
  );
}

/** Releases what is held of the targets, or resumes rollouts of their kinds, and prints it. */
export async function release(api: Api, targets: readonly KindTarget[], options: Options): Promise<void> {
  const { resume, dryRun, selector, operatorNamespace } = options;
  const list = lister(api);
  const namespace = options.allNamespaces ? undefined : options.namespace;
  const scope = resume
    ? { targets: [LEASE], namespace: operatorNamespace }
    : { targets, namespace, selector };
  const { found, unreadable } = await customResources(scope, list);
  for (const { error } of unreadable) throw error;
  const absent = found.find(({ target, crs }) => target.name !== undefined && crs.length === 0);
  if (absent) throw await noSuchResource(absent.target, scope.namespace, list);
  const kinds = targets.map(({ kind }) => kind.name);
  const be = dryRun ? 'would be ' : '';
  const decide = (object: AnyObject) => (resume ? resumed(object, kinds, be) : released(object, be));
  const chosen = found
    .flatMap(({ target, crs }) => crs.map((seen) => ({ ...target, seen })))
    .filter(({ name, seen }) => name !== undefined || decide(seen).annotations);
  for (const { kind, seen } of chosen) {
    let object = seen;
    const attempt = async () => {
      const { annotations, text } = decide(object);
      const metadata = { resourceVersion: object.metadata.resourceVersion, annotations };
      if (annotations && !dryRun) await api.mergePatch(kind.type, keyOf(object), { metadata });
      if (annotations) await print(`${plain(text)}\n`);
      else printError(text);
    };
    await retried(TRIES.conflict, attempt, async (error) => {
      const isChanged = error instanceof ApiError && error.conflict;
      if (isChanged) object = await api.get(kind.type, keyOf(seen));
      return isChanged;
    });
  }
  if (chosen.length === 0) printError('nothing to release: no update is held that waits for it');
}

function released(cr: AnyObject, be: string) {
  const name = describeRef(cr);
  const { status, message = '' } = statusOf(cr).conditions.find(({ type }) => type === UPDATE_PENDING) ?? {};
  const [, build, changes = ''] = (status === 'True' && HELD.exec(message)) || [];
  if (build === undefined) return { text: `${name}: no update is held${message && `: ${message}`}` };
  const given = cr.metadata.annotations?.[RELEASE_ANNOTATION] ?? '';
  if ([build, 'always'].includes(given)) return { text: `${name} is released already, by ${given}` };
  const annotations = { [RELEASE_ANNOTATION]: build };
  return { annotations, text: `${name} ${be}released: build ${build}: ${changes}` };
}

function resumed(lease: AnyObject, kinds: readonly string[], be: string) {
  const stopped = stoppedRollouts(lease).filter(({ kind }) => kinds.includes(kind));
  if (stopped.length === 0) return { text: `${describeRef(lease)}: no rollout has stopped` };
  // By the clock of the operator, since that says when an update began.
  const { renewTime } = (lease.spec ?? {}) as LeaseSpec;
  const value = `resumed ${renewTime ?? new Date().toISOString()}`;
  const annotations = stopped.map(({ kind, build }) => [rolloutStopped(kind), `${build} ${value}`] as const);
  const lines = stopped.map(
    ({ kind, build, why }) => `Rollout of ${kind} ${be}resumed: build ${build}, which had stopped: ${why}`,
  );
  return { text: lines.join('\n'), annotations: Object.fromEntries(annotations) };
}
