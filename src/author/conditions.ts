import type { Condition, ConditionProps, ConditionStatus, Phase, Readiness } from '../contract/conditions.js';

/** Maximum number of characters of a message. @see https://github.com/kubernetes/apimachinery/blob/master/pkg/apis/meta/v1/types.go */
const MESSAGE_LIMIT = 32_768;

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
