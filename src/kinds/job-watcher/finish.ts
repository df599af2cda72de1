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
