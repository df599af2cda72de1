/**
 * Conditions by the rules of kstatus, so that `kubectl wait`, Argo CD and Flux read them right.
 * @see https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
 */

/** Specifies whether a condition holds. */
export type ConditionStatus = 'True' | 'False' | 'Unknown';

/** A condition, as it stands in the status. */
export interface Condition {
  readonly type: string;
  readonly status: ConditionStatus;
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
  /** RFC 3339, whole seconds; moves only when `status` flips. */
  readonly lastTransitionTime: string;
  /** The generation of the custom resource that the condition speaks of. */
  readonly observedGeneration?: number;
}

/** Pattern of a reason. @see https://github.com/kubernetes/apimachinery/blob/master/pkg/apis/meta/v1/types.go */
export const REASON = /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/;

/** The API server refuses longer ones. @see https://github.com/kubernetes/apimachinery/blob/master/pkg/apis/meta/v1/types.go */
const MESSAGE_LIMIT = 32_768;

/** A condition before it is known when it flipped. */
export type ConditionProps = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

/**
 * State of a custom resource, in the one word that its three standard conditions are derived from.
 *
 * | | Ready | Reconciling | Stalled |
 * |---|---|---|---|
 * | `ready` | True | False | False |
 * | `progressing`: under way, nothing is wrong | Unknown | True | False |
 * | `failing`: something is wrong and may heal by itself | False | True | False |
 * | `stalled`: stays so until something is changed | False | False | True |
 */
export type Phase = 'ready' | 'progressing' | 'failing' | 'stalled';

/** Status of a custom resource, of which its three standard conditions are made. */
export interface Readiness {
  readonly phase: Phase;
  /** CamelCase; listed in docs/reference. */
  readonly reason: string;
  /** A sentence for people. */
  readonly message: string;
}

const STANDARD: Record<
  Phase,
  readonly [ready: ConditionStatus, reconciling: ConditionStatus, stalled: ConditionStatus]
> = {
  ready: ['True', 'False', 'False'],
  progressing: ['Unknown', 'True', 'False'],
  failing: ['False', 'True', 'False'],
  stalled: ['False', 'False', 'True'],
};

/** `Ready`, `Reconciling` and `Stalled` for a readiness; all three carry its reason and message. */
export function standardConditions({ phase, reason, message }: Readiness): ConditionProps[] {
  const [ready, reconciling, stalled] = STANDARD[phase];
  return [
    { type: 'Ready', status: ready, reason, message },
    { type: 'Reconciling', status: reconciling, reason, message },
    { type: 'Stalled', status: stalled, reason, message },
  ];
}

/**
 * Dates conditions: the time of the last flip is kept from the previous condition of the same type where the
 * status is the same, else it is `now`.
 */
export function dateConditions(
  conditions: readonly ConditionProps[],
  previous: readonly Partial<Condition>[],
  now: Date,
  observedGeneration: number | undefined,
): Condition[] {
  return conditions.map((condition) => {
    const before = previous.find(({ type }) => type === condition.type);
    // One that can't be read, which the API server stores too, counts as none.
    const isKept = before?.status === condition.status && !isNaN(Date.parse(before.lastTransitionTime ?? ''));
    const kept = isKept ? before.lastTransitionTime : undefined;
    return {
      ...condition,
      message: condition.message.slice(0, MESSAGE_LIMIT).toWellFormed(),
      lastTransitionTime: kept ?? rfc3339Seconds(now),
      ...(observedGeneration !== undefined && { observedGeneration }),
    };
  });
}

/** `metav1.Time` on the wire: RFC 3339 in UTC, whole seconds. */
export function rfc3339Seconds(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z');
}
