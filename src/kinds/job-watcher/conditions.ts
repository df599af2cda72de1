import { standardConditions } from '../../contract/conditions.js';
import type { ConditionProps, Readiness } from '../../contract/conditions.js';
import { TOLERATED_SKEW_MILLISECONDS } from '../../contract/controller.js';
import type { OperatorError } from '../../contract/error.js';
import { failureReadiness, worstOf } from '../../contract/failures.js';
import type { WatcherPass } from './pass.js';
import type { RunOutcome } from './report.js';
import type { Watcher } from './watcher.js';

/** What the conditions of one watcher are made of. */
export interface Judged {
  readonly watcher: Watcher;
  readonly pass: WatcherPass;
  readonly outcome: RunOutcome;
  /** How far the API server's clock is ahead; 0 where that isn't known. */
  readonly skewMilliseconds: number;
}

/** The types of the conditions that are written here; others belong to others. */
export const CONDITION_TYPES: ReadonlySet<string> = new Set([
  'Ready',
  'Reconciling',
  'Stalled',
  'Accepted',
  'ScopeLimited',
  'Overlapping',
  'ClockSkewed',
]);

/** Of a watcher whose spec can't work. */
export function refusedConditions({ reason, message }: OperatorError): ConditionProps[] {
  return [
    ...standardConditions({ phase: 'stalled', reason, message }),
    { type: 'Accepted', status: 'False', reason, message },
  ];
}

export function conditionsOf(judged: Judged): ConditionProps[] {
  return [
    ...standardConditions(readiness(judged)),
    { type: 'Accepted', status: 'True', reason: 'Accepted', message: 'The spec can be worked with' },
    scopeLimited(judged.watcher),
    overlapping(judged.pass),
    clockSkewed(judged.skewMilliseconds),
  ];
}

function readiness({ watcher, pass, outcome }: Judged): Readiness {
  if (watcher.suspended)
    return ready('Suspended', 'Nothing is deleted until spec.suspend is false or removed');
  if (pass.exceeded) return exceeded(watcher, pass);
  const worst = worstOf(outcome.failed.map(({ error }) => ({ error })));
  if (worst) return failureReadiness(worst);
  if (watcher.dryRun)
    return ready('DryRun', 'Nothing is deleted; status.dryRunCandidates lists what would be');
  return ready('Watching', 'Finished Jobs are deleted when their time has come');
}

function ready(reason: string, message: string): Readiness {
  return { phase: 'ready', reason, message };
}

function exceeded(
  { limits, frequencySeconds }: Watcher,
  { exceeded: found, matched }: WatcherPass,
): Readiness {
  const most = [
    ...(limits?.maxPerRun === undefined ? [] : [`maxPerRun ${limits.maxPerRun}`]),
    ...(limits?.maxPercent === undefined ? [] : [`maxPercent ${limits.maxPercent}`]),
  ];
  return {
    phase: 'stalled',
    reason: 'BlastRadiusExceeded',
    message:
      `${found?.due ?? 0} of ${matched} matched Jobs are due, which is more than ${most.join(' and ')} in spec.limits allow: ` +
      `none is deleted. Raise the limits, or delete some by hand; it is judged again after ${frequencySeconds} s`,
  };
}

/** It names nothing that is in other namespaces: whoever may make a JobWatcher needn't be allowed to know that. */
function scopeLimited({ isScopeLimited, namespace }: Watcher): ConditionProps {
  const type = 'ScopeLimited';
  if (!isScopeLimited)
    return {
      type,
      status: 'False',
      reason: 'InScope',
      message: 'The namespaces are those that the spec says',
    };
  const message =
    `namespacePatterns count in ${namespace} alone: only a JobWatcher in a namespace that the admin has named may act ` +
    `in others. Give ^${namespace}$, or ask for it there`;
  return { type, status: 'True', reason: 'NamespaceNotPermitted', message };
}

const MAX_NAMED = 5;

/** It names nothing that is in other namespaces either. */ function overlapping({
  overlaps,
}: WatcherPass): ConditionProps {
  const type = 'Overlapping';
  if (overlaps.most === 0)
    return {
      type,
      status: 'False',
      reason: 'NoOverlap',
      message: 'No other JobWatcher matches the same Jobs',
    };
  const named = [...overlaps.names].sort().slice(0, MAX_NAMED);
  const more = Math.max(overlaps.most, overlaps.names.size) - named.length;
  const others =
    named.length === 0
      ? `${more} JobWatcher${more === 1 ? '' : 's'} of other namespaces`
      : `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  const message = `The same Jobs are matched by ${others}: the highest priority decides, among equals the longest TTL`;
  return { type, status: 'True', reason: 'SharedJobs', message };
}

function clockSkewed(skewMilliseconds: number): ConditionProps {
  const type = 'ClockSkewed';
  const isSkewed = Math.abs(skewMilliseconds) > TOLERATED_SKEW_MILLISECONDS;
  return isSkewed
    ? {
        type,
        status: 'True',
        reason: 'ServerTimeUsed',
        message: "The operator's clock is more than 30 s off; the API server's is used",
      }
    : {
        type,
        status: 'False',
        reason: 'InSync',
        message: "The operator's clock is that of the API server, within 30 s",
      };
}
