import { type ConditionProps, type Readiness } from '../../contract/conditions.js';
import type { EventProps, Explanation } from '../../contract/plan.js';
import type { OperatorError } from '../../contract/error.js';
import { PAUSED_ANNOTATION } from '../../contract/names.js';
import { keyOf, refOf } from '../../contract/object.js';
import { failureReadiness, standardConditions, worstOf } from '../../author/status.js';
import { KEEP_ANNOTATION } from './job.js';
import { WHY, type Reason } from './matching.js';
import { isoSeconds, lookAt, type DueJob, type WatcherPass } from './pass.js';
import type { JobWatcherStatus, RunCounts } from './spec.js';
import type { ReadWatcher, Watcher } from './watcher.js';

/** Types of the conditions that are written here, in this order; others belong to others. */
export const CONDITION_TYPES: readonly string[] = [
  ...['Ready', 'Reconciling', 'Stalled', 'Accepted', 'ScopeLimited', 'Overlapping', 'ClockSkewed'],
];

/** A watcher, and what a plan has found for it. */
interface Findings extends ReadWatcher {
  /** @default - the spec can't work */
  readonly pass: WatcherPass | undefined;
  /** Jobs to be deleted. */
  readonly due: readonly DueJob[];
}

/**
 * Returns the conditions of a watcher; of one whose spec can't work, the first four.
 * @param errors of Jobs whose deletion has failed
 */
export function conditionsOf(
  { watcher, error, pass }: Findings,
  errors: readonly OperatorError[],
  isSkewed: boolean,
): ConditionProps[] {
  if (!watcher || !pass) {
    const { reason = 'InvalidSpec', message = '' } = error ?? {};
    return [
      ...standardConditions({ phase: 'stalled', reason, message }),
      doesNotHold('Accepted', reason, message),
    ];
  }
  return [
    ...standardConditions(readiness(watcher, pass, errors)),
    holds('Accepted', 'Accepted', 'The spec can be worked with'),
    scopeLimited(watcher),
    overlapping(watcher, pass),
    isSkewed
      ? holds('ClockSkewed', 'ServerTimeUsed', `${CLOCK} is more than 30 s off; the API server's is used`)
      : doesNotHold('ClockSkewed', 'InSync', `${CLOCK} is that of the API server, within 30 s`),
  ];
}

const CLOCK = "The operator's clock";

function holds(type: string, reason: string, message: string): ConditionProps {
  return { type, status: 'True', reason, message };
}

function doesNotHold(type: string, reason: string, message: string): ConditionProps {
  return { type, status: 'False', reason, message };
}

function readiness(
  { suspend, isPaused, dryRun, limits, frequencySeconds }: Watcher,
  { exceeded, matched }: WatcherPass,
  errors: readonly OperatorError[],
): Readiness {
  const ready = (reason: string, message: string): Readiness => ({ phase: 'ready', reason, message });
  const until = isPaused
    ? `the annotation ${PAUSED_ANNOTATION} is removed`
    : 'spec.suspend is false or removed';
  if (suspend) return ready('Suspended', `Nothing is deleted until ${until}`);
  if (exceeded !== undefined) {
    const most = (['maxPerRun', 'maxPercent'] as const).flatMap((limit) =>
      limits?.[limit] === undefined ? [] : [`${limit} ${limits[limit]}`],
    );
    const message =
      `${exceeded} of ${matched} matched Jobs are due, which is more than ${most.join(' and ')} in spec.limits allow: ` +
      `none is deleted. Raise the limits, or delete some by hand; it is judged again after ${frequencySeconds} s`;
    return { phase: 'stalled', reason: 'BlastRadiusExceeded', message };
  }
  const worst = worstOf(errors.map((error) => ({ error })));
  if (worst) return failureReadiness(worst);
  if (dryRun) return ready('DryRun', 'Nothing is deleted; status.dryRunCandidates lists what would be');
  return ready('Watching', 'Finished Jobs are deleted when their time has come');
}

/** Names nothing that is in other namespaces: the author of a JobWatcher needn't be allowed to know that. */
function scopeLimited({ isScopeLimited, namespace }: Watcher): ConditionProps {
  if (!isScopeLimited)
    return doesNotHold('ScopeLimited', 'InScope', 'The namespaces are those that the spec says');
  const message =
    `namespacePatterns count in ${namespace} alone: only a JobWatcher in a namespace that the admin has named may act ` +
    `in others. Give ^${namespace}$, or ask for it there`;
  return holds('ScopeLimited', 'NamespaceNotPermitted', message);
}

const MAX_NAMED = 5;

/** Names nothing that is in other namespaces either. */
function overlapping({ key, namespace }: Watcher, { overlaps }: WatcherPass): ConditionProps {
  const others = overlaps.watchers.filter((other) => other.key !== key);
  if (others.length === 0)
    return doesNotHold('Overlapping', 'NoOverlap', 'No other JobWatcher matches the same Jobs');
  const own = others.flatMap((other) => (other.namespace === namespace ? other.key : []));
  const named = own.sort().slice(0, MAX_NAMED);
  const more = others.length - named.length;
  const who =
    named.length === 0
      ? `${more} JobWatcher${more === 1 ? '' : 's'} of other namespaces`
      : `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  const message = `The same Jobs are matched by ${who}: the highest priority decides, among equals the longest TTL`;
  return holds('Overlapping', 'SharedJobs', message);
}

/**
 * Returns the events of a status: when something begins that needs a change by a user; when more Jobs come back, or more have
 * an unclear finish; and for a run that deleted or failed.
 */
export function newsOf(before: JobWatcherStatus, after: JobWatcherStatus): (EventProps | undefined)[] {
  const [known, now] = [before, after].map(({ conditions = [] }) =>
    conditions.find(({ type, status }) => type === 'Stalled' && status === 'True'),
  );
  const more = (reason: Reason, why: string): EventProps | undefined => {
    const [past = 0, count = 0] = [before, after].map(({ lastRun }) => lastRun?.skipped?.[reason]);
    const note = `${jobs(count)} ${count === 1 ? 'stays' : 'stay'}: ${why}`;
    return count > past ? warning(reason, note) : undefined;
  };
  return [
    now && now.reason !== known?.reason ? warning(now.reason, now.message) : undefined,
    more(
      'Recreated',
      'Jobs of the same name came back each time that they were deleted; stop what creates them, or give them the ' +
        `annotation ${KEEP_ANNOTATION}`,
    ),
    more(
      'FinishUnclear',
      'conditions contradict each other, or give no time; "reconstruct diff" of this JobWatcher lists them',
    ),
    runEvent(before, after),
  ];
}

function runEvent(
  before: JobWatcherStatus,
  { lastStarted, lastRun }: JobWatcherStatus,
): EventProps | undefined {
  if (!lastRun || lastRun === before.lastRun || !hasTried(lastRun)) return undefined;
  // A run of the same second that had nothing to do had no event.
  if (lastStarted === before.lastStarted && before.lastRun && hasTried(before.lastRun)) return undefined;
  const { deleted, failed, matched } = lastRun;
  const note = `Deleted ${jobs(deleted)} of ${matched}`;
  if (failed > 0) return warning('DeletionFailed', `${note}, ${failed} couldn't be deleted`);
  return { type: 'Normal', reason: 'Deleted', action: 'Delete', note };
}

function warning(reason: string, note: string): EventProps {
  return { type: 'Warning', reason, action: 'Delete', note };
}

export function hasTried({ deleted, failed }: RunCounts): boolean {
  return deleted + failed > 0;
}

function jobs(count: number): string {
  return `${count} Job${count === 1 ? '' : 's'}`;
}

/** Explains what a watcher would do now: which Jobs go, and why the others stay. */
export function explanationOf({ cr, watcher, error, pass, due }: Findings): Explanation {
  const of = refOf(cr);
  if (!watcher || !pass)
    return { of, summary: `would delete nothing, since it can't work: ${error?.message}`, differs: false };
  const next = lookAt(pass);
  const mode = watcher.dryRun ? ', since it is a dry run' : '';
  const limits = pass.exceeded === undefined ? '' : `; ${pass.exceeded} are due, which is beyond its limits`;
  const later = next === Infinity ? '' : `; it looks again at ${isoSeconds(next)}`;
  return {
    of,
    summary: `would delete ${due.length} of ${jobs(pass.matched)} matched${mode}${limits}${later}`,
    differs: due.length > 0,
    touches: due.map(({ job }) => keyOf(job)),
    tables: [
      {
        title: 'Deleted',
        columns: ['JOB', 'OUTCOME', 'FINISHED', 'TTL'],
        rows: due.map((one) => [
          ...[keyOf(one.job), one.finish.outcome, isoSeconds(one.finish.at)],
          `${(one.dueAt - one.finish.at) / 1000} s`,
        ]),
      },
      {
        title: 'Stay',
        columns: ['JOBS', 'REASON', 'WHY'],
        rows: [...pass.skipped]
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([reason, count]) => [String(count), reason, WHY[reason]]),
      },
    ],
  };
}
