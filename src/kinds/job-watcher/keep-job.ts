import { controllerOf } from '../../contract/object.js';
import type { AnyObject, ObjectMeta, OwnerReference } from '../../contract/object.js';
import { finishOf } from './finish.js';
import type { Finish } from './finish.js';
import { overridesOf } from './overrides.js';
import type { Overrides } from './overrides.js';
import { trackerOf } from './tracked.js';
import type { Tracker } from './tracked.js';

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
