import type { V1Job, V1JobStatus } from '@kubernetes/client-node';
import type { Wire } from '../../author/kubernetes-types.js';
import { controllerOf } from '../../contract/object.js';
import type { AnyObject, ObjectMeta } from '../../contract/object.js';
import { given } from '../common.js';
import { durationSeconds } from './duration.js';

/** Projection of a Job: enough to judge it, and to delete exactly the one that was judged. */
export interface KeptJob extends AnyObject {
  /** Without annotations, and of the owners only the controller. */
  readonly metadata: ObjectMeta & { readonly namespace: string; readonly uid: string };
  /** @default - unfinished */
  readonly finish?: Finish | 'unclear';
  /** Whether it has `spec.ttlSecondsAfterFinished`, so Kubernetes deletes it. @default false */
  readonly nativeTtl?: true;
  /** Another controller than Kubernetes' own runs it. @default false */
  readonly managedElsewhere?: true;
  /** Argo CD, Flux or Helm creates it again when it is deleted. @default false */
  readonly tracked?: true;
  /** @default - its annotations say nothing */
  readonly overrides?: Overrides;
}

export type Outcome = 'completed' | 'failed';

export interface Finish {
  readonly outcome: Outcome;
  /** Milliseconds since the epoch, whole seconds. */
  readonly at: number;
}

/**
 * Meaning of a Job's own annotations. `keep`: it stays; `invalid`: one of them can't be read, so it stays too, since its
 * author wanted something; else the seconds by outcome.
 */
export type Overrides = 'keep' | 'invalid' | Readonly<Partial<Record<Outcome, number>>>;

/** On a Job: `"true"` keeps it, whatever a JobWatcher says. */
export const KEEP_ANNOTATION = 'batch.my.github.com/keep';

/** On a Job: how long after its end it is deleted; a duration of Go. */
const TTL_ANNOTATIONS = [
  ['completed', 'batch.my.github.com/ttl-after-completed'],
  ['failed', 'batch.my.github.com/ttl-after-failed'],
] as const;

/** @see https://kubernetes.io/docs/concepts/workloads/controllers/job/#delegation-of-managing-a-job-object-to-external-controller */
const OWN_CONTROLLER = 'kubernetes.io/job-controller';

/** Annotations and labels of tools that make a Job again. */
const TRACKING = [
  ...['argocd.argoproj.io/tracking-id', 'argocd.argoproj.io/hook'],
  ...['meta.helm.sh/release-name', 'helm.sh/hook'],
];
const TRACKING_LABELS = ['kustomize.toolkit.fluxcd.io/name', 'helm.toolkit.fluxcd.io/name'];

/** Maximum number of labels of a Job that is judged. */
const MAX_LABELS = 100;

/**
 * Returns the projection of a Job. There may be 50,000 of them, so nothing of the template is kept.
 * @returns undefined for one with too many labels: it is left alone, since selectors may also name what is absent
 */
export function keepJob(job: AnyObject): KeptJob | undefined {
  const { ttlSecondsAfterFinished, managedBy = OWN_CONTROLLER } = (job.spec ?? {}) as Wire<
    Partial<NonNullable<V1Job['spec']>>
  >;
  const { name, namespace = '', uid = '', labels = {}, annotations = {} } = job.metadata;
  if (Object.keys(labels).length > MAX_LABELS) return undefined;
  const controller = controllerOf(job);
  const finish = finishOf(job.status as Wire<V1JobStatus> | undefined);
  const overrides = overridesOf(annotations);
  const isTracked =
    TRACKING.some((mark) => Object.hasOwn(annotations, mark)) ||
    TRACKING_LABELS.some((mark) => Object.hasOwn(labels, mark));
  // Every label, since a selector may name any. Kubernetes repeats the name and the UID in them.
  const keptLabels = Object.entries(labels).map(([key, value]) => [
    key,
    [name, uid].find((text) => text === value) ?? shared(value),
  ]);
  return {
    apiVersion: shared(job.apiVersion),
    kind: shared(job.kind),
    metadata: {
      ...{ name, namespace: shared(namespace), uid },
      ...given(job.metadata, 'resourceVersion', 'deletionTimestamp'),
      ...(job.metadata.labels && { labels: Object.fromEntries(keptLabels) as Record<string, string> }),
      ...(controller && {
        ownerReferences: [
          {
            ...{ apiVersion: shared(controller.apiVersion), kind: shared(controller.kind) },
            ...{ name: shared(controller.name), uid: shared(controller.uid), controller: true },
          },
        ],
      }),
    },
    ...(finish !== undefined && { finish }),
    ...(ttlSecondsAfterFinished !== undefined && { nativeTtl: true }),
    ...(managedBy !== OWN_CONTROLLER && { managedElsewhere: true }),
    ...(isTracked && { tracked: true }),
    ...(overrides !== undefined && { overrides }),
  };
}

const texts = new Map<string, string>();
/** Maximum number of shared texts; beyond it, few Jobs have one in common. */
const MAX_TEXTS = 5000;

/** Returns one copy of a text that many Jobs have. */
function shared(text: string): string {
  const known = texts.get(text);
  if (known !== undefined) return known;
  if (texts.size >= MAX_TEXTS) texts.clear();
  texts.set(text, text);
  return text;
}

const OUTCOMES: Readonly<Record<string, Outcome>> = { Complete: 'completed', Failed: 'failed' };

/**
 * Reads how and when a Job finished: by the condition `Complete` or `Failed`, as Kubernetes' own controller judges. Counters
 * say nothing: a Job may have failed pods and complete, and `SuccessCriteriaMet` and `FailureTarget` come before the
 * end.
 * @returns undefined for one that hasn't finished, `unclear` where the conditions contradict each other or give no time
 */
export function finishOf({ conditions = [] }: Wire<V1JobStatus> = {}): Finish | 'unclear' | undefined {
  const held = conditions.filter(({ type, status }) => status === 'True' && Object.hasOwn(OUTCOMES, type));
  const [final, ...others] = held;
  if (!final) return undefined;
  const at = Date.parse(final.lastTransitionTime ?? '');
  return others.length > 0 || isNaN(at) ? 'unclear' : { outcome: OUTCOMES[final.type] as Outcome, at };
}

function overridesOf(annotations: Readonly<Record<string, string>>): Overrides | undefined {
  const keep = annotations[KEEP_ANNOTATION];
  if (keep === 'true') return 'keep';
  if (keep !== undefined && keep !== 'false') return 'invalid';
  const seconds = TTL_ANNOTATIONS.flatMap(([outcome, annotation]) => {
    const text = annotations[annotation];
    return text === undefined ? [] : [[outcome, durationSeconds(text)] as const];
  });
  if (seconds.some(([, value]) => value === undefined)) return 'invalid';
  return seconds.length === 0 ? undefined : Object.fromEntries(seconds);
}
