import { controllerOf } from '../../contract/object.js';
import type { AnyObject, KubernetesObject, ObjectMeta, OwnerReference } from '../../contract/object.js';
import { durationSeconds } from './duration.js';

/** What is known of a Job: enough to judge it, and to delete exactly the one that was judged. */
export interface KeptJob extends AnyObject {
  /** Without annotations, and of the owners only the controller. */
  readonly metadata: ObjectMeta & { readonly namespace: string; readonly uid: string };
  /** @default - it hasn't finished */
  readonly finish?: Finish | 'unclear';
  /** It has `spec.ttlSecondsAfterFinished`, so Kubernetes deletes it. @default false */
  readonly nativeTtl?: true;
  /** Another controller than Kubernetes' own runs it. @default false */
  readonly managedElsewhere?: true;
  /** @default - nobody tracks it */
  readonly tracker?: Tracker;
  /** @default - its annotations say nothing */
  readonly overrides?: Overrides;
}

/**
 * @see
 * https://kubernetes.io/docs/concepts/workloads/controllers/job/#delegation-of-managing-a-job-object-to-external-controller
 */
const OWN_CONTROLLER = 'kubernetes.io/job-controller';

interface JobSpec {
  readonly ttlSecondsAfterFinished?: unknown;
  readonly managedBy?: unknown;
}

/** The projection of a Job; of 50,000 it has to be small, so nothing of its template is kept. */
export function keepJob(job: AnyObject): KeptJob {
  const spec = (job.spec ?? {}) as JobSpec;
  const finish = finishOf(job.status);
  const tracker = trackerOf(job);
  const overrides = overridesOf(job);
  return {
    apiVersion: shared(job.apiVersion),
    kind: shared(job.kind),
    metadata: keepMetadata(job.metadata),
    ...(finish !== undefined && { finish }),
    ...(isSet(spec.ttlSecondsAfterFinished) && { nativeTtl: true }),
    ...(isSet(spec.managedBy) && spec.managedBy !== OWN_CONTROLLER && { managedElsewhere: true }),
    ...(tracker !== undefined && { tracker }),
    ...(overrides !== undefined && { overrides }),
  };
}

function keepMetadata(metadata: ObjectMeta): KeptJob['metadata'] {
  const { name, namespace = '', uid = '', resourceVersion, deletionTimestamp, labels } = metadata;
  const controller = controllerOf({ apiVersion: '', kind: '', metadata });
  return {
    name,
    namespace: shared(namespace),
    uid,
    ...(resourceVersion !== undefined && { resourceVersion }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(labels && { labels: keepLabels(labels, name, uid) }),
    ...(controller && { ownerReferences: [keepOwner(controller)] }),
  };
}

/** Every label, since a selector may name any. Kubernetes repeats the name and the UID in them. */
function keepLabels(
  labels: Readonly<Record<string, string>>,
  name: string,
  uid: string,
): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [key, value] of Object.entries(labels))
    kept[key] = value === name ? name : value === uid ? uid : shared(value);
  return kept;
}

function keepOwner({ apiVersion, kind, name, uid }: OwnerReference): OwnerReference {
  return {
    apiVersion: shared(apiVersion),
    kind: shared(kind),
    name: shared(name),
    uid: shared(uid),
    controller: true,
  };
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

const texts = new Map<string, string>();

/** More would be texts that few Jobs have in common. */
const MAX_TEXTS = 5000;

/** The same text in one place, where many Jobs have it. */
function shared(text: string): string {
  const known = texts.get(text);
  if (known !== undefined) return known;
  if (texts.size >= MAX_TEXTS) texts.clear();
  texts.set(text, text);
  return text;
}

/** How a Job ended. */
export type Outcome = 'completed' | 'failed';

export interface Finish {
  readonly outcome: Outcome;
  /** Milliseconds since the epoch, whole seconds. */
  readonly at: number;
}

interface JobCondition {
  readonly type?: unknown;
  readonly status?: unknown;
  readonly lastTransitionTime?: unknown;
}

const OUTCOMES: Readonly<Record<string, Outcome>> = { Complete: 'completed', Failed: 'failed' };

/** RFC 3339, of which Kubernetes writes whole seconds. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/**
 * How and when a Job finished: by the condition `Complete` or `Failed`, as Kubernetes' own controller judges. Counters
 * say nothing: a Job may have failed pods and complete, and `SuccessCriteriaMet` and `FailureTarget` come before the
 * end.
 * @returns undefined for one that hasn't finished, `unclear` where the conditions contradict each other or give no time
 */
export function finishOf(status: unknown): Finish | 'unclear' | undefined {
  const conditions = (status as { conditions?: unknown } | undefined)?.conditions;
  if (!Array.isArray(conditions)) return undefined;
  const [final, ...others] = (conditions as readonly (JobCondition | null)[]).filter(isFinal);
  if (!final) return undefined;
  const at = timeOf(final.lastTransitionTime);
  if (others.length > 0 || at === undefined) return 'unclear';
  return { outcome: OUTCOMES[final.type] as Outcome, at };
}

function isFinal(condition: JobCondition | null): condition is JobCondition & { type: string } {
  return (
    condition?.status === 'True' &&
    typeof condition.type === 'string' &&
    Object.hasOwn(OUTCOMES, condition.type)
  );
}

function timeOf(text: unknown): number | undefined {
  if (typeof text !== 'string' || !TIME.test(text)) return undefined;
  const milliseconds = Date.parse(text);
  // A fraction counts as a whole second, so that nothing is deleted before its time.
  return Number.isNaN(milliseconds) ? undefined : Math.ceil(milliseconds / 1000) * 1000;
}

/** Who makes a Job again that has vanished. */
export type Tracker = 'Argo CD' | 'Flux' | 'Helm';

const ANNOTATIONS: Readonly<Record<string, Tracker>> = {
  'argocd.argoproj.io/tracking-id': 'Argo CD',
  'argocd.argoproj.io/hook': 'Argo CD',
  'meta.helm.sh/release-name': 'Helm',
  'helm.sh/hook': 'Helm',
};

const LABELS: Readonly<Record<string, Tracker>> = {
  'kustomize.toolkit.fluxcd.io/name': 'Flux',
  'helm.toolkit.fluxcd.io/name': 'Flux',
};

/**
 * Who tracks an object, by the marks that they leave on what they make.
 * @returns undefined where nobody does
 */
export function trackerOf({ metadata }: KubernetesObject): Tracker | undefined {
  return found(ANNOTATIONS, metadata.annotations ?? {}) ?? found(LABELS, metadata.labels ?? {});
}

function found(
  marks: Readonly<Record<string, Tracker>>,
  on: Readonly<Record<string, string>>,
): Tracker | undefined {
  const mark = Object.keys(marks).find((key) => Object.hasOwn(on, key));
  return mark === undefined ? undefined : marks[mark];
}

/** On a Job: how long after its completion it is deleted; a duration of Go. */
export const COMPLETED_TTL_ANNOTATION = 'batch.my.github.com/ttl-after-completed';

/** On a Job: the same after a failure. */
export const FAILED_TTL_ANNOTATION = 'batch.my.github.com/ttl-after-failed';

/** On a Job: `"true"` keeps it, whatever a JobWatcher says. */
export const KEEP_ANNOTATION = 'batch.my.github.com/keep';

/**
 * What a Job's own annotations say. `keep`: it stays; `invalid`: one of them can't be read, so it stays too, since
 * whoever wrote it wanted something; else the seconds by outcome.
 */
export type Overrides = 'keep' | 'invalid' | Readonly<Partial<Record<Outcome, number>>>;

/** @returns undefined where there is none */
export function overridesOf({ metadata: { annotations = {} } }: KubernetesObject): Overrides | undefined {
  const keep = annotations[KEEP_ANNOTATION];
  if (keep === 'true') return 'keep';
  if (keep !== undefined && keep !== 'false') return 'invalid';
  const completed = annotations[COMPLETED_TTL_ANNOTATION];
  const failed = annotations[FAILED_TTL_ANNOTATION];
  if (completed === undefined && failed === undefined) return undefined;
  const seconds: Partial<Record<Outcome, number>> = {};
  for (const [outcome, text] of [['completed', completed] as const, ['failed', failed] as const]) {
    if (text === undefined) continue;
    const value = durationSeconds(text);
    if (value === undefined) return 'invalid';
    seconds[outcome] = value;
  }
  return seconds;
}
