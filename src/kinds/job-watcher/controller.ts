import { TOLERATED_SKEW_MILLISECONDS } from '../../contract/controller.js';
import type { Controller, Metric, Reader, Watch } from '../../contract/controller.js';
import { OperatorError } from '../../contract/error.js';
import { PAUSED_ANNOTATION, statusFieldManager } from '../../contract/names.js';
import { keyOf, refOf, type AnyObject, type ObjectMeta } from '../../contract/object.js';
import { statusOrError } from '../../values/origin.js';
import type {
  Conclusion,
  EventStep,
  Explanation,
  ForeignHandler,
  Plan,
  Sample,
} from '../../contract/plan.js';
import { resourceType, type ResourceType } from '../../contract/resource.js';
import { DELETIONS_KEPT_MILLISECONDS, type Deletion, type Deletions } from './deletions.js';
import { keepJob, type KeptJob } from './job.js';
import { Matching, WHY } from './matching.js';
import { ALL_NEWS, explanationOf } from './messages.js';
import { inTurn, isoSeconds, jobKey, lookAt, pass, type DueJob } from './pass.js';
import type { Settings } from './settings.js';
import type { LiveWatcher } from './spec.js';
import { Report, type Failures, type PlanContext, type Result } from './status.js';
import { Sweeper, type SweepStep } from './sweep.js';
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

/** Clocks, in milliseconds. */
interface Clocks {
  /** Never set back: how long a plan keeps the process busy, which decides nothing else. */
  readonly monotonic: () => number;
  /** Shows whether plans are made by the API server's clock. */
  readonly wall: () => number;
}

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
  readonly explains = true;
  readonly settle = { quietMilliseconds: 100, longestMilliseconds: 500 };
  private readonly watchers: WatcherSet;
  private readonly matching: Matching;
  private slices = 0;
  private turns = 0;
  private reports = new Map<string, Report>();
  private readonly failures: Failures = new WeakMap();
  private readonly hasFailed = (job: KeptJob): boolean => this.failures.has(job);

  readonly handlers: readonly ForeignHandler[];

  constructor(
    private readonly type: ResourceType,
    settings: Settings,
    private readonly clocks: Clocks = { monotonic: () => performance.now(), wall: Date.now },
    private readonly sweeper = new Sweeper(settings.deletesPerSecond),
  ) {
    this.handlers = [sweeper];
    this.kind = type.kind;
    this.watchers = new WatcherSet(settings);
    this.matching = new Matching(settings);
    const mapsTo = (): readonly string[] => [KEY];
    this.watches = [
      { type, keep: keepWatcher, writes: ['status'], mapsTo },
      { type: JOBS, keep: keepJob, readOnly: true, writes: ['delete'], mapsTo },
    ];
  }

  reconcile(_: string, reader: Reader, now: Date): Plan {
    const seen = this.see(reader, SLICE_MILLISECONDS);
    if (seen) return this.plan(seen, now);
    const explanations = (): readonly Explanation[] => {
      const whole = this.see(reader, Infinity);
      return (whole && this.plan(whole, now).conclude([]).explanations) ?? [];
    };
    return {
      steps: [],
      conclude: () => ({
        ...({ status: [], events: [], next: 'now' } as const),
        get explanations() {
          return explanations();
        },
      }),
    };
  }

  /** Reads and matches what hasn't been yet. @returns undefined where it goes on in the next plan, since that takes long */
  private see(reader: Reader, milliseconds: number): Seen | undefined {
    const end = this.clocks.monotonic() + milliseconds;
    const isTimeUp = (): boolean => this.clocks.monotonic() > end;
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

  private plan(seen: Seen, now: Date): Plan {
    const reports = this.look(seen, now.getTime());
    const due = inTurn(
      reports.flatMap((report) => report.due),
      this.hasFailed,
    );
    const deleted = due.slice(0, MAX_DELETES);
    const { taken, left } = this.takeTurns(reports, new Set(deleted.map(({ watcher }) => watcher)));
    return {
      steps: deleted.map((one) => sweepStep(one, now)),
      conclude: (changes) => {
        // What was done counts, also where no status is written, since the API server has gone.
        const results = taken.map((report) => ({
          report,
          result: statusOrError(refOf(report.read.cr), () => {
            const found = report.after(changes);
            return { ...found, events: eventsOf(report.read.cr, found) };
          }),
        }));
        const good = results.flatMap(({ result }) => (result instanceof OperatorError ? [] : result));
        return {
          status: results.map(({ report, result }) => ({
            target: report.read.cr,
            fieldManager: statusFieldManager(this.kind),
            status: result instanceof OperatorError ? result : result.status,
          })),
          events: good.flatMap(({ events }) => events),
          samples: samplesOf(reports, good, due.length, (one) => this.deletionTime(one, now.getTime())),
          ...this.next(seen, reports, left, due[MAX_DELETES], now),
          get explanations() {
            return reports.map(explanationOf);
          },
        };
      },
    };
  }

  /** Returns when the next plan is due, once this one is carried out. */
  private next(
    { waiting }: Seen,
    reports: readonly Report[],
    left: readonly Report[],
    next: DueJob | undefined,
    now: Date,
  ): Pick<Conclusion, 'next'> {
    if (waiting.size > 0 || left.some(({ isNew }) => isNew)) return { next: 'now' };
    if (next && !this.hasFailed(next.job)) return { next: now };
    const times = reports.map(({ pass: found, dueAt = Infinity }) => Math.min(dueAt, lookAt(found ?? {})));
    const at = Math.min(left.length > 0 ? now.getTime() + UNWRITTEN_MILLISECONDS : Infinity, ...times);
    return at === Infinity ? {} : { next: new Date(Math.max(at, now.getTime())) };
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

  private get deletions(): Deletions {
    return this.sweeper.deletions;
  }

  private deletionTime(one: DueJob, now: number): number | undefined {
    const { uid } = one.job.metadata;
    return this.deletions.of(jobKey(one), now).findLast((deletion) => deletion.uid === uid)?.at;
  }

  private look({ all, watchers, jobs, waiting }: Seen, now: number): Report[] {
    const context: PlanContext = {
      now,
      // Else the time of a plan is that of our own clock.
      isSkewed: Math.abs(now - this.clocks.wall()) > TOLERATED_SKEW_MILLISECONDS,
      finishedAt: (deleted) => Math.max(now, ...deleted.map((one) => this.deletionTime(one, now) ?? now)),
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
      recreatedUntil: (job) => recreatedUntil(job, this.deletions.of(keyOf(job), now)),
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
function sweepStep({ job, watcher, finish, dueAt }: DueJob, now: Date): SweepStep {
  const { key, namespace } = watcher;
  const finishedAt = isoSeconds(finish.at);
  const ttlSeconds = (dueAt - finish.at) / 1000;
  // Users of a Job's namespace needn't be allowed to know names in others; the log has them.
  const who =
    namespace === job.metadata.namespace ? `JobWatcher ${key}` : 'A JobWatcher of another namespace';
  return {
    ...({ do: 'job-watcher/sweep', plannedFor: now.getTime() } as const),
    object: job,
    propagation: watcher.propagationPolicy ?? 'Background',
    announce: {
      ...{ type: 'Normal', reason: 'TTLExpired', action: 'Delete' },
      note: `${who} deletes it: it ${finish.outcome} at ${finishedAt}, and its TTL is ${ttlSeconds} s`,
    },
    audit: { watcher: key, finish: finish.outcome, finishedAt, ttlSeconds, dueAt: isoSeconds(dueAt) },
  };
}

/** Returns when the older of the last two deletions of that name is forgotten. */
function recreatedUntil({ metadata }: KeptJob, before: readonly Deletion[]): number | undefined {
  const others = new Map(before.filter(({ uid }) => uid !== metadata.uid).map(({ uid, at }) => [uid, at]));
  const older = [...others.values()].at(-RECREATED_AFTER);
  return older === undefined ? undefined : older + DELETIONS_KEPT_MILLISECONDS;
}

function eventsOf(cr: LiveWatcher, { status, isNews }: Result): EventStep[] {
  const regarding = { ...refOf(cr), uid: cr.metadata.uid ?? '' };
  const events = isNews ? ALL_NEWS.map((news) => news(cr.status ?? {}, status)) : [];
  return events.flatMap((event) => (event ? { regarding, event } : []));
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
  deletionTime: (one: DueJob) => number | undefined,
): Sample[] {
  const deleted = results.flatMap((result) => result.deleted);
  const active = reports.filter(
    ({ read: { watcher } }) => !(watcher instanceof OperatorError || watcher.dryRun),
  );
  const reasons = (Object.keys(WHY) as (keyof typeof WHY)[]).filter((reason) => reason !== 'DecidedByOther');
  return [
    ...deleted.flatMap((one) => [
      { metric: DELETED, labels: { outcome: one.finish.outcome }, value: 1 },
      { metric: LAG, value: Math.max(0, (deletionTime(one) ?? one.dueAt) - one.dueAt) / 1000 },
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
