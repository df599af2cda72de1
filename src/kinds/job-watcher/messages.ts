import { standardConditions } from '../../author/conditions.js';
import { type ConditionProps, type Readiness } from '../../contract/conditions.js';
import type { EventProps, Explanation } from '../../contract/plan.js';
import { OperatorError } from '../../contract/error.js';
import { PAUSED_ANNOTATION } from '../../contract/names.js';
import { refOf } from '../../contract/object.js';
import { failureReadiness, worstOf } from '../../author/status.js';
import { condition } from '../common.js';
import { KEEP_ANNOTATION } from './job.js';
import { WHY, type Reason } from './matching.js';
import { isoSeconds, jobKey, lookAt, type DueJob, type WatcherPass } from './pass.js';
import type { JobWatcherStatus, RunCounts } from './spec.js';
import type { ReadWatcher, Watcher } from './watcher.js';

/** Types of the conditions that are written here, in this order; others belong to others. */
export const CONDITION_TYPES: readonly string[] = [
  ...['Ready', 'Reconciling', 'Stalled', 'Accepted', 'ScopeLimited', 'Overlapping', 'ClockSkewed'],
];

/**
 * Returns the conditions of a watcher; of one whose spec can't work, and that has no findings, the first four.
 * @param errors of Jobs whose deletion has failed
 */
export function conditionsOf(
  watcher: Watcher | OperatorError,
  found: WatcherPass | undefined,
  errors: readonly OperatorError[],
  isSkewed: boolean,
): ConditionProps[] {
  if (watcher instanceof OperatorError || !found) {
    const { reason, message } = watcher as OperatorError;
    return [
      ...standardConditions({ phase: 'stalled', reason, message }),
      condition('Accepted', 'False', { reason, message }),
    ];
  }
  const accepted = { reason: 'Accepted', message: 'The spec can be worked with' };
  const clock = isSkewed
    ? {
        reason: 'ServerTimeUsed',
        message: "The operator's clock is more than 30 s off; the API server's is used",
      }
    : { reason: 'InSync', message: "The operator's clock is that of the API server, within 30 s" };
  return [
    ...standardConditions(readiness(watcher, found, errors)),
    condition('Accepted', 'True', accepted),
    scopeLimited(watcher),
    overlapping(watcher, found),
    condition('ClockSkewed', isSkewed ? 'True' : 'False', clock),
  ];
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
  const message = isScopeLimited
    ? `namespacePatterns count in ${namespace} alone: only a JobWatcher in a namespace that the admin has named may act ` +
      `in others. Give ^${namespace}$, or ask for it there`
    : 'The namespaces are those that the spec says';
  const reason = isScopeLimited ? 'NamespaceNotPermitted' : 'InScope';
  return condition('ScopeLimited', isScopeLimited ? 'True' : 'False', { reason, message });
}

const MAX_NAMED = 5;

/** Names nothing that is in other namespaces either. */
function overlapping({ key, namespace }: Watcher, { overlaps }: WatcherPass): ConditionProps {
  const others = overlaps.watchers.filter((other) => other.key !== key);
  if (others.length === 0) {
    const message = 'No other JobWatcher matches the same Jobs';
    return condition('Overlapping', 'False', { reason: 'NoOverlap', message });
  }
  const own = others.flatMap((other) => (other.namespace === namespace ? other.key : []));
  const named = own.sort().slice(0, MAX_NAMED);
  const more = others.length - named.length;
  const who =
    named.length === 0
      ? `${more} JobWatcher${more === 1 ? '' : 's'} of other namespaces`
      : `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  const message = `The same Jobs are matched by ${who}: the highest priority decides, among equals the longest TTL`;
  return condition('Overlapping', 'True', { reason: 'SharedJobs', message });
}

/** Returns an event where a status has something new. */
type News = (before: JobWatcherStatus, after: JobWatcherStatus) => EventProps | undefined;

/**
 * Events of a status: when something begins that needs a change by a user; when more Jobs come back, or more have an
 * unclear finish; and for each run that deleted or failed. One status may have several.
 */
export const ALL_NEWS: readonly News[] = [
  (before, after) => {
    const [known, now] = [before, after].map(({ conditions = [] }) =>
      conditions.find(({ type, status }) => type === 'Stalled' && status === 'True'),
    );
    if (!now || known?.reason === now.reason) return undefined;
    return { type: 'Warning', reason: now.reason, action: 'Delete', note: now.message };
  },
  moreThanBefore(
    'Recreated',
    'Jobs of the same name came back each time that they were deleted; stop what creates them, or give them the ' +
      `annotation ${KEEP_ANNOTATION}`,
  ),
  moreThanBefore(
    'FinishUnclear',
    'conditions contradict each other, or give no time; "reconstruct diff" of this JobWatcher lists them',
  ),
  (before, { lastStarted, lastRun }) => {
    if (!lastRun || lastRun === before.lastRun || !hasTried(lastRun)) return undefined;
    // A run of the same second that had nothing to do had no event.
    if (lastStarted === before.lastStarted && before.lastRun && hasTried(before.lastRun)) return undefined;
    const { deleted, failed, matched } = lastRun;
    const failures = failed > 0 ? `, ${failed} couldn't be deleted` : '';
    return {
      type: failed > 0 ? 'Warning' : 'Normal',
      reason: failed > 0 ? 'DeletionFailed' : 'Deleted',
      action: 'Delete',
      note: `Deleted ${jobs(deleted)} of ${matched}${failures}`,
    };
  },
];

function moreThanBefore(reason: Reason, why: string): News {
  return (before, after) => {
    const [known = 0, now = 0] = [before, after].map(({ lastRun }) => lastRun?.skipped?.[reason]);
    if (now <= known) return undefined;
    return {
      type: 'Warning',
      reason,
      action: 'Delete',
      note: `${jobs(now)} ${now === 1 ? 'stays' : 'stay'}: ${why}`,
    };
  };
}

export function hasTried({ deleted, failed }: RunCounts): boolean {
  return deleted + failed > 0;
}

function jobs(count: number): string {
  return `${count} Job${count === 1 ? '' : 's'}`;
}

/** A watcher and what a plan has found for it. */
interface Findings {
  readonly read: ReadWatcher;
  /** @default - the spec can't work */
  readonly pass: WatcherPass | undefined;
  readonly due: readonly DueJob[];
}

/** Explains what a watcher would do now: which Jobs go, and why the others stay. */
export function explanationOf({ read: { cr, watcher }, pass, due }: Findings): Explanation {
  const of = refOf(cr);
  if (watcher instanceof OperatorError || !pass) {
    const why = watcher instanceof OperatorError ? `: ${watcher.message}` : '';
    return { of, summary: `would delete nothing, since it can't work${why}`, differs: false };
  }
  const next = lookAt(pass);
  const mode = watcher.dryRun ? ', since it is a dry run' : '';
  const limits = pass.exceeded === undefined ? '' : `; ${pass.exceeded} are due, which is beyond its limits`;
  const later = next === Infinity ? '' : `; it looks again at ${isoSeconds(next)}`;
  return {
    of,
    summary: `would delete ${due.length} of ${jobs(pass.matched)} matched${mode}${limits}${later}`,
    differs: due.length > 0,
    touches: due.map(jobKey),
    tables: [
      {
        title: 'Deleted',
        columns: ['JOB', 'OUTCOME', 'FINISHED', 'TTL'],
        rows: due.map((one) => [
          ...[jobKey(one), one.finish.outcome, isoSeconds(one.finish.at)],
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
