import { OperatorError } from '../../contract/error.js';
import type { Explanation } from '../../contract/controller.js';
import { refOf } from '../../contract/object.js';
import { lookAt } from './pass.js';
import type { DueJob, WatcherPass } from './pass.js';
import { WHY } from './reasons.js';
import { isoSeconds, jobKey } from './report.js';
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
  const later = next === Infinity ? '' : `; it looks again at ${isoSeconds(next)}`;
  return `would delete ${due} of ${jobs}${mode}${limits}${later}`;
}

function dueRow(one: DueJob): string[] {
  const { finish, dueAt } = one;
  return [jobKey(one), finish.outcome, isoSeconds(finish.at), `${(dueAt - finish.at) / 1000} s`];
}
