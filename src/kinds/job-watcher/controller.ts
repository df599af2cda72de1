import { TOLERATED_SKEW_MILLISECONDS } from '../../contract/controller.js';
import type { Controller, Metric, Plan, Sample, Watch } from '../../contract/controller.js';
import { OperatorError } from '../../contract/error.js';
import { PAUSED_ANNOTATION, statusFieldManager } from '../../contract/names.js';
import { keyOf, refOf, type AnyObject, type ObjectMeta } from '../../contract/object.js';
import { resourceType, type ResourceType } from '../../contract/resource.js';
import { DELETIONS_KEPT_MILLISECONDS, type SweepReader, type SweepStep } from '../../contract/sweep.js';
import { keepJob, type KeptJob } from './job.js';
import { Matching, WHY } from './matching.js';
import { ALL_NEWS, explanationOf } from './messages.js';
import { inTurn, isoSeconds, jobKey, lookAt, pass, type DueJob } from './pass.js';
import type { Settings } from './settings.js';
import type { LiveWatcher } from './spec.js';
import { Report, type Failures, type PlanContext, type Result } from './status.js';
import { WatcherSet, type ReadWatcher, type Watcher } from './watcher.js';

export const JOBS: ResourceType = resourceType({ apiVersion: 'batch/v1', kind: 'Job' });

/** All watchers and all Jobs are one key: several watchers may match one Job. */
export const KEY = 'jobs';

/** Maximum number of deletions in a plan: as many as can be carried out before the next one. */
const MAX_DELETES = 1000;

/** Maximum number of watchers whose status a plan computes and writes, beside those that it deletes for. */
const MAX_STATUSES = 500;

/** Time after which what couldn't be written, or had no turn, is tried again. */
const UNWRITTEN_MILLISECONDS = 1000;

/** Maximum time for which reading and matching keep the event loop busy at a stretch. */
const SLICE_MILLISECONDS = 25;

/** Maximum number of slices; then Jobs that have yet to be matched are left out, so that no number of them holds up all others. */
const MAX_SLICES = 20;

/** Number of deleted Jobs of a name after which the next one of that name is left alone. */
const RECREATED_AFTER = 2;

/** Input of a plan. */
interface Seen {
  readonly all: readonly ReadWatcher[];
  /** Watchers among them that can work. */
  readonly watchers: readonly Watcher[];
  readonly jobs: readonly KeptJob[];
  /** Namespaces of which Jobs are missing. */
  readonly waiting: ReadonlySet<string>;
}

/**
 * Deletes finished Jobs when their time has come.
 *
 * **Caveats.** It remembers what it has worked out of objects that stay the same, what it has done and not written yet,
 * and which deletions have failed: those come last, and count against limits all the same. Which Jobs are due follows
 * from what the reader shows alone.
 */
export class JobWatcherController implements Controller {
  readonly name = 'jobwatcher';
  readonly kind: string;
  readonly watches: readonly Watch[];
  readonly metrics = metrics;
  readonly settle = { quietMilliseconds: 100, longestMilliseconds: 500 };
  private readonly watchers: WatcherSet;
  private readonly matching: Matching;
  private slices = 0;
  private turns = 0;
  private reports = new Map<string, Report>();
  private readonly failures: Failures = new WeakMap();
  private readonly hasFailed = (job: KeptJob): boolean => this.failures.has(job);

  /** @param clock in milliseconds, never set back: how long a plan keeps the process busy, which decides nothing else */
  constructor(
    private readonly type: ResourceType,
    private readonly settings: Settings,
    private readonly clock: () => number = () => performance.now(),
  ) {
    this.kind = type.kind;
    this.watchers = new WatcherSet(settings);
    this.matching = new Matching(settings);
    const mapsTo = (): readonly string[] => [KEY];
    this.watches = [
      { type, keep: keepWatcher, writes: ['status'], mapsTo },
      { type: JOBS, keep: keepJob, readOnly: true, writes: ['delete'], mapsTo },
    ];
  }

  reconcile(_: string, reader: SweepReader, now: Date): Plan {
    const seen = this.see(reader, SLICE_MILLISECONDS);
    if (seen) return this.plan(seen, reader, now);
    return {
      ...{ apply: [], delete: [], status: [], events: [], again: () => true },
      explain: () => {
        const whole = this.see(reader, Infinity);
        return (whole && this.plan(whole, reader, now).explain?.()) ?? [];
      },
    };
  }

  /** Reads and matches what hasn't been yet. @returns undefined where it goes on in the next plan, since that takes long */
  private see(reader: SweepReader, milliseconds: number): Seen | undefined {
    const end = this.clock() + milliseconds;
    const isTimeUp = (): boolean => this.clock() > end;
    const crs = reader.mappedTo(this.type, KEY) as unknown as readonly LiveWatcher[];
    const living = crs.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const all = this.watchers.read(living, isTimeUp);
    if (!all) return undefined;
    const watchers = all.flatMap(({ watcher }) => (watcher instanceof OperatorError ? [] : [watcher]));
    this.matching.update(watchers);
    const jobs = reader.mappedTo(JOBS, KEY) as readonly KeptJob[];
    const waiting = this.matching.catchUp(jobs, isTimeUp);
    if (waiting.size > 0 && ++this.slices <= MAX_SLICES) return undefined;
    this.slices = 0;
    return { all, watchers, jobs: jobs.filter((job) => this.matching.isJudged(job)), waiting };
  }

  private plan(seen: Seen, reader: SweepReader, now: Date): Plan {
    const reports = this.look(seen, reader, now.getTime());
    const due = inTurn(
      reports.flatMap((report) => report.due),
      this.hasFailed,
    );
    const deleted = due.slice(0, MAX_DELETES);
    const next = due[MAX_DELETES];
    const { taken, left } = this.takeTurns(reports, new Set(deleted.map(({ watcher }) => watcher)));
    const isLeft = left.some(({ isNew }) => isNew);
    return {
      apply: [],
      delete: [],
      sweep: { steps: deleted.map(deleteStep), deletesPerSecond: this.settings.deletesPerSecond },
      again: () => seen.waiting.size > 0 || isLeft,
      status: taken.map((report) => ({
        target: report.read.cr,
        fieldManager: statusFieldManager(this.kind),
        status: (changes) => report.after(changes).status,
      })),
      events: taken.flatMap((report) =>
        ALL_NEWS.map((news) => ({
          regarding: { ...refOf(report.read.cr), uid: report.read.cr.metadata.uid ?? '' },
          event: (changes) => {
            const { status, isNews } = report.after(changes);
            return isNews ? news(report.read.cr.status ?? {}, status) : undefined;
          },
        })),
      ),
      // What was done counts, also where no status was asked for, since the API server had gone.
      samples: (changes) => {
        const results = taken.map((report) => report.after(changes));
        return samplesOf(reports, results, due.length, reader);
      },
      requeueAt: (changes) => {
        for (const report of taken) report.after(changes);
        if (next && !this.hasFailed(next.job)) return now;
        const times = reports.map(({ pass: found, dueAt = Infinity }) =>
          Math.min(dueAt, lookAt(found ?? {})),
        );
        const at = Math.min(left.length > 0 ? now.getTime() + UNWRITTEN_MILLISECONDS : Infinity, ...times);
        return at === Infinity ? undefined : new Date(Math.max(at, now.getTime()));
      },
      explain: () => reports.map(explanationOf),
    };
  }

  /** Returns those whose status the plan computes, longest ago first, and those that wait for the next. */
  private takeTurns(reports: readonly Report[], deleting: ReadonlySet<ReadWatcher['watcher']>) {
    const pending = reports.filter(({ isPending }) => isPending).sort((a, b) => a.turn - b.turn);
    const acting = reports.filter(({ read }) => deleting.has(read.watcher));
    const taken = new Set([...pending.slice(0, MAX_STATUSES), ...acting]);
    this.turns++;
    for (const report of taken) report.turn = this.turns;
    return { taken: [...taken], left: pending.filter((report) => !taken.has(report)) };
  }

  private look({ all, watchers, jobs, waiting }: Seen, reader: SweepReader, now: number): Report[] {
    const context: PlanContext = {
      now,
      isSkewed: Math.abs(reader.clockSkewMilliseconds ?? 0) > TOLERATED_SKEW_MILLISECONDS,
      finishedAt: (deleted) => Math.max(now, ...deleted.map((one) => deletionTime(one, reader) ?? now)),
    };
    const before = this.reports;
    this.reports = new Map();
    const byWatcher = new Map<ReadWatcher['watcher'], Report>();
    for (const read of all) {
      const { uid = '' } = read.cr.metadata;
      const report = before.get(uid) ?? new Report(read, context, this.failures);
      report.begin(read, context);
      this.reports.set(uid, report);
      byWatcher.set(read.watcher, report);
    }
    const reportOf = (watcher: Watcher): Report => byWatcher.get(watcher) as Report;
    const found = pass({
      ...{ watchers, jobs, now },
      verdicts: (job) => this.matching.verdicts(job),
      recreatedUntil: (job) => recreatedUntil(job, reader),
      hasFailed: this.hasFailed,
      opensAt: (watcher) => (isWaiting(watcher, waiting) ? now + 1000 : reportOf(watcher).opensAt(watcher)),
    });
    for (const [watcher, result] of found) reportOf(watcher).pass = result;
    return [...this.reports.values()];
  }
}

/** Reports whether a limit waits: limits are about all Jobs of a watcher. */
function isWaiting({ limits, namespace, namespacePatterns }: Watcher, waiting: ReadonlySet<string>): boolean {
  return (
    limits !== undefined && (waiting.has(namespace) || (namespacePatterns !== undefined && waiting.size > 0))
  );
}

/** Plans the deletion of a Job as it was judged, with the event before it and the audit line after it. */
function deleteStep({ job, watcher, finish, dueAt }: DueJob): SweepStep {
  const { key, namespace } = watcher;
  const finishedAt = isoSeconds(finish.at);
  const ttlSeconds = (dueAt - finish.at) / 1000;
  // Users of a Job's namespace needn't be allowed to know names in others; the log has them.
  const who =
    namespace === job.metadata.namespace ? `JobWatcher ${key}` : 'A JobWatcher of another namespace';
  return {
    object: job,
    propagation: watcher.propagationPolicy ?? 'Background',
    announce: {
      ...{ type: 'Normal', reason: 'TTLExpired', action: 'Delete' },
      note: `${who} deletes it: it ${finish.outcome} at ${finishedAt}, and its TTL is ${ttlSeconds} s`,
    },
    audit: { watcher: key, finish: finish.outcome, finishedAt, ttlSeconds, dueAt: isoSeconds(dueAt) },
  };
}

function deletionTime(one: DueJob, reader: SweepReader): number | undefined {
  const { uid } = one.job.metadata;
  const deletions = reader.deletions(JOBS, jobKey(one));
  return deletions.findLast((deletion) => deletion.uid === uid)?.at.getTime();
}

/** Returns when the older of the last two deletions of that name is forgotten. */
function recreatedUntil(job: KeptJob, reader: SweepReader): number | undefined {
  const { metadata } = job;
  const before = reader.deletions(JOBS, keyOf(job));
  const others = new Map(before.filter(({ uid }) => uid !== metadata.uid).map(({ uid, at }) => [uid, at]));
  const older = [...others.values()].at(-RECREATED_AFTER);
  return older && older.getTime() + DELETIONS_KEPT_MILLISECONDS;
}

/** Leaves out the bookkeeping that nothing here reads. */
function keepWatcher({ apiVersion, kind, metadata, spec, status }: AnyObject): AnyObject {
  const { managedFields, annotations, labels, ...rest } = metadata as ObjectMeta & {
    managedFields?: unknown;
  };
  const paused = annotations?.[PAUSED_ANNOTATION];
  const kept = paused === undefined ? rest : { ...rest, annotations: { [PAUSED_ANNOTATION]: paused } };
  return { apiVersion, kind, metadata: kept, spec, ...(status !== undefined && { status }) };
}

const DELETED = 'reconstruct_jobs_deleted_total';
const ERRORS = 'reconstruct_jobs_delete_errors_total';
const SKIPPED = 'reconstruct_jobs_skipped';
const PENDING = 'reconstruct_jobs_pending';
const LAG = 'reconstruct_jobs_deletion_lag_seconds';

const metrics: readonly Metric[] = [
  {
    ...{ type: 'counter', name: DELETED, labels: ['outcome'] },
    help: 'Jobs that were deleted by JobWatchers, by how they had finished: completed or failed',
  },
  {
    ...{ type: 'counter', name: ERRORS, labels: ['reason'] },
    help: 'Deletions of Jobs that failed, by reason',
  },
  {
    ...{ type: 'gauge', name: SKIPPED, labels: ['reason'] },
    help: 'Jobs that JobWatchers match and leave, by reason; once for each watcher but those that others decide for',
  },
  { type: 'gauge', name: PENDING, help: 'Jobs that are due and have yet to be deleted' },
  {
    ...{ type: 'histogram', name: LAG, buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600] },
    help: 'From when a Job was due to its deletion, which a backlog, limits and the pace of deletions delay',
  },
];

/** @param due Jobs that were due when the plan was made */
function samplesOf(
  reports: readonly Report[],
  results: readonly Result[],
  due: number,
  reader: SweepReader,
): Sample[] {
  const deleted = results.flatMap((result) => result.deleted);
  const active = reports.filter(
    ({ read: { watcher } }) => !(watcher instanceof OperatorError || watcher.dryRun),
  );
  const reasons = (Object.keys(WHY) as (keyof typeof WHY)[]).filter((reason) => reason !== 'DecidedByOther');
  return [
    ...deleted.flatMap((one) => [
      { metric: DELETED, labels: { outcome: one.finish.outcome }, value: 1 },
      { metric: LAG, value: Math.max(0, (deletionTime(one, reader) ?? one.dueAt) - one.dueAt) / 1000 },
    ]),
    ...results.flatMap(({ errors }) =>
      errors.map(({ reason }) => ({ metric: ERRORS, labels: { reason }, value: 1 })),
    ),
    ...reasons.map((reason) => ({
      ...{ metric: SKIPPED, labels: { reason } },
      value: active.reduce((sum, report) => sum + (report.pass?.skipped.get(reason) ?? 0), 0),
    })),
    { metric: PENDING, value: Math.max(0, due - deleted.length) },
  ];
}
