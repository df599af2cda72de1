import { OperatorError } from '../../contract/error.js';
import type { Explanation } from '../../contract/explanation.js';
import { refOf } from '../../contract/object.js';
import { lookAt } from './pass.js';
import type { DueJob, WatcherPass } from './pass.js';
import { isoSeconds, jobKey } from './run.js';
import type { Reason } from './reasons.js';
import type { Report } from './report.js';

/** What a watcher would do now: which Jobs go, and why the others stay. */
export function explanationOf({ read: { cr, watcher }, pass }: Report): Explanation {
  const of = refOf(cr);
  if (watcher instanceof OperatorError || !pass) {
    const why = watcher instanceof OperatorError ? `: ${watcher.message}` : '';
    return { of, summary: `would delete nothing, since it can't work${why}`, differs: false };
  }
  const due = watcher.dryRun ? [] : pass.due;
  return {
    of,
    summary: summaryOf(due.length, pass, watcher.dryRun),
    differs: due.length > 0,
    touches: due.map(jobKey),
    tables: [
      { title: 'Deleted', columns: ['JOB', 'OUTCOME', 'FINISHED', 'TTL'], rows: due.map(dueRow) },
      {
        title: 'Stay',
        columns: ['JOBS', 'REASON', 'WHY'],
        rows: [...pass.skipped]
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([reason, jobs]) => [String(jobs), reason, WHY[reason]]),
      },
    ],
  };
}

function summaryOf(due: number, pass: WatcherPass, dryRun: boolean): string {
  const { matched, exceeded } = pass;
  const next = lookAt(pass);
  const jobs = `${matched} ${matched === 1 ? 'Job' : 'Jobs'} matched`;
  const mode = dryRun ? ', since it is a dry run' : '';
  const limits = exceeded ? `; ${exceeded.due} are due, which is beyond its limits` : '';
  const later = next === undefined || next === Infinity ? '' : `; it looks again at ${isoSeconds(next)}`;
  return `would delete ${due} of ${jobs}${mode}${limits}${later}`;
}

function dueRow(one: DueJob): string[] {
  const { finish, dueAt } = one;
  return [jobKey(one), finish.outcome, isoSeconds(finish.at), `${(dueAt - finish.at) / 1000} s`];
}

const WHY: Readonly<Record<Reason, string>> = {
  NotFinished: 'it runs, waits or is suspended',
  Terminating: 'it is being deleted already',
  ProtectedNamespace: "its namespace is the system's, or the operator's",
  FinishUnclear: "when or how it finished can't be told for certain",
  KeepAnnotation: 'its own annotation keeps it',
  InvalidAnnotation: "its own annotation can't be read",
  NativeTTL: 'Kubernetes deletes it, by ttlSecondsAfterFinished',
  ManagedElsewhere: 'its managedBy names another controller',
  Tracked: 'Argo CD, Flux or Helm made it, and may make it again',
  Owned: 'it has a controller',
  CronJob: 'a CronJob made it',
  NoTTL: 'there is no TTL for how it finished',
  Suspended: 'the JobWatcher is suspended',
  NotDue: 'its time has yet to come',
  KeepLast: 'it is one of the newest',
  DecidedByOther: 'another JobWatcher decides on it',
  Limited: 'the run would be beyond the limits',
  DryRun: 'it would be deleted if this were no dry run',
  Recreated: 'Jobs of its name come back whenever they are deleted',
};
