import { standardConditions } from '../../contract/conditions.js';
import type { ConditionProps, Readiness } from '../../contract/conditions.js';
import type { OperatorError } from '../../contract/error.js';
import { failureReadiness, worstOf } from '../../contract/status.js';
import type { WatcherPass } from './pass.js';
import type { RunOutcome } from './report.js';
import type { Watcher } from './watcher.js';

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
    condition('Accepted', 'False', reason, message),
  ];
}

export function conditionsOf(
  watcher: Watcher,
  found: WatcherPass,
  outcome: RunOutcome,
  isSkewed: boolean,
): ConditionProps[] {
  return [
    ...standardConditions(readiness(watcher, found, outcome)),
    condition('Accepted', 'True', 'Accepted', 'The spec can be worked with'),
    scopeLimited(watcher),
    overlapping(found),
    isSkewed
      ? condition(
          'ClockSkewed',
          'True',
          'ServerTimeUsed',
          "The operator's clock is more than 30 s off; the API server's is used",
        )
      : condition(
          'ClockSkewed',
          'False',
          'InSync',
          "The operator's clock is that of the API server, within 30 s",
        ),
  ];
}

function condition(type: string, status: 'True' | 'False', reason: string, message: string): ConditionProps {
  return { type, status, reason, message };
}

function readiness(watcher: Watcher, found: WatcherPass, outcome: RunOutcome): Readiness {
  if (watcher.suspended)
    return ready('Suspended', 'Nothing is deleted until spec.suspend is false or removed');
  if (found.exceeded) return exceeded(watcher, found);
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
  if (!isScopeLimited)
    return condition('ScopeLimited', 'False', 'InScope', 'The namespaces are those that the spec says');
  const message =
    `namespacePatterns count in ${namespace} alone: only a JobWatcher in a namespace that the admin has named may act ` +
    `in others. Give ^${namespace}$, or ask for it there`;
  return condition('ScopeLimited', 'True', 'NamespaceNotPermitted', message);
}

const MAX_NAMED = 5;

/** It names nothing that is in other namespaces either. */
function overlapping({ overlaps }: WatcherPass): ConditionProps {
  if (overlaps.most === 0)
    return condition('Overlapping', 'False', 'NoOverlap', 'No other JobWatcher matches the same Jobs');
  const named = [...overlaps.names].sort().slice(0, MAX_NAMED);
  const more = Math.max(overlaps.most, overlaps.names.size) - named.length;
  const others =
    named.length === 0
      ? `${more} JobWatcher${more === 1 ? '' : 's'} of other namespaces`
      : `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  const message = `The same Jobs are matched by ${others}: the highest priority decides, among equals the longest TTL`;
  return condition('Overlapping', 'True', 'SharedJobs', message);
}
