import { TOLERATED_SKEW_MILLISECONDS } from '../../client/clock.js';
import type { Controller, Metric, Reader, Watch } from '../../contract/controller.js';
import { keepWithoutManagedFields } from '../../author/owned-children.js';
import { keyOf } from '../../contract/object.js';
import type { Conclusion, ForeignHandler, Plan, Sample } from '../../contract/plan.js';
import { resourceType, type ResourceType } from '../../contract/resource.js';
import { concludeEach } from '../../author/status.js';
import { keepJob, type KeptJob } from './job.js';
import { Matching, WHY, type Judged } from './matching.js';
import { explanationOf, newsOf } from './messages.js';
import { inTurn, isoSeconds, lookAt, pass, type DueJob } from './pass.js';
import type { Settings } from './settings.js';
import type { LiveWatcher } from './spec.js';
import { Report, type Failures, type PlanContext, type Result } from './status.js';
import { DELETIONS_KEPT_MILLISECONDS, Sweeper, type Deletion, type SweepStep } from './sweep.js';
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
interface Seen extends Judged {
  readonly all: readonly ReadWatcher[];
  /** Watchers among them that can work. */
  readonly watchers: readonly Watcher[];
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
      { type, keep: keepWithoutManagedFields, writes: ['status'], mapsTo },
      { type: JOBS, keep: keepJob, readOnly: true, writes: ['delete'], mapsTo },
    ];
  }

  reconcile(_: string, reader: Reader, now: Date): Plan {
    const seen = this.see(reader, SLICE_MILLISECONDS);
    if (seen) return this.plan(seen, now);
    const whole = (): Conclusion => this.plan(this.see(reader, Infinity) as Seen, now).conclude([]);
    return {
      steps: [],
      conclude: () => ({
        ...({ status: [], events: [], next: 'now' } as const),
        get explanations() {
          return whole().explanations ?? [];
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
    const watchers = all.flatMap(({ watcher }) => watcher ?? []);
    this.matching.update(watchers);
    const judged = this.matching.group(reader.mappedTo(JOBS, KEY) as readonly KeptJob[], isTimeUp);
    if (judged.waiting.size > 0 && ++this.slices <= MAX_SLICES) return undefined;
    this.slices = 0;
    return { all, watchers, ...judged };
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
        const { reports: said, ...conclusion } = concludeEach(this.kind, taken, (report) => {
          const result = report.after(changes);
          return { ...result, events: result.isNews ? newsOf(report.cr.status ?? {}, result.status) : [] };
        });
        return {
          ...conclusion,
          samples: samplesOf(reports, said, due.length, (one) => this.deletedAt(one, now.getTime())),
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
  private takeTurns(reports: readonly Report[], deleting: ReadonlySet<Watcher>) {
    const pending = reports.filter(({ isPending }) => isPending).sort((a, b) => a.turn - b.turn);
    const acting = reports.filter(({ watcher }) => watcher && deleting.has(watcher));
    const taken = new Set([...pending.slice(0, MAX_STATUSES), ...acting]);
    this.turns++;
    for (const report of taken) report.turn = this.turns;
    return { taken: [...taken], left: pending.filter((report) => !taken.has(report)) };
  }

  private deletionsOf(job: KeptJob, now: number): readonly Deletion[] {
    return this.sweeper.deletions.of(keyOf(job), now);
  }

  private deletedAt({ job }: DueJob, now: number): number {
    return this.deletionsOf(job, now).findLast(({ uid }) => uid === job.metadata.uid)?.at ?? now;
  }

  private look({ all, watchers, groups, waiting }: Seen, now: number): Report[] {
    const context: PlanContext = {
      now,
      // Else the time of a plan is that of our own clock.
      isSkewed: Math.abs(now - this.clocks.wall()) > TOLERATED_SKEW_MILLISECONDS,
      deletedAt: (one) => this.deletedAt(one, now),
    };
    const before = this.reports;
    this.reports = new Map();
    const byWatcher = new Map<Watcher | undefined, Report>();
    for (const read of all) {
      const { uid = '' } = read.cr.metadata;
      const report = before.get(uid) ?? new Report(this.failures);
      report.begin(read, context);
      this.reports.set(uid, report);
      byWatcher.set(read.watcher, report);
    }
    const found = pass({
      ...{ watchers, groups, now },
      recreatedUntil: (job) => recreatedUntil(job, this.deletionsOf(job, now)),
      hasFailed: this.hasFailed,
      opensAt: (watcher) =>
        isWaiting(watcher, waiting) ? now + 1000 : (byWatcher.get(watcher)?.opensAt ?? -Infinity),
    });
    for (const report of this.reports.values()) report.pass = report.watcher && found.get(report.watcher);
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
  const older = before.filter(({ uid }) => uid !== metadata.uid).at(-RECREATED_AFTER);
  return older && older.at + DELETIONS_KEPT_MILLISECONDS;
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
  deletedAt: (one: DueJob) => number,
): Sample[] {
  const deleted = results.flatMap((result) => result.deleted);
  const active = reports.filter(({ watcher }) => watcher && !watcher.dryRun);
  const reasons = (Object.keys(WHY) as (keyof typeof WHY)[]).filter((reason) => reason !== 'DecidedByOther');
  return [
    ...deleted.flatMap((one) => [
      { metric: DELETED, labels: { outcome: one.finish.outcome }, value: 1 },
      { metric: LAG, value: Math.max(0, deletedAt(one) - one.dueAt) / 1000 },
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
