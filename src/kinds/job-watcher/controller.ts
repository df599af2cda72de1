import { TOLERATED_SKEW_MILLISECONDS } from '../../contract/controller.js';
import type { Controller, EventStep, Plan, StatusStep, Watch } from '../../contract/controller.js';
import { OperatorError } from '../../contract/error.js';
import { statusFieldManager } from '../../contract/names.js';
import { objectKey, refOf } from '../../contract/object.js';
import type { AnyObject, ObjectMeta } from '../../contract/object.js';
import { resourceType } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { DELETIONS_KEPT_MILLISECONDS } from '../../contract/sweep.js';
import type { SweepReader } from '../../contract/sweep.js';
import { ALL_NEWS } from './events.js';
import { explanationOf } from './explain.js';
import { keepJob } from './keep-job.js';
import type { KeptJob } from './keep-job.js';
import { Matching } from './matching.js';
import { metrics, samplesOf } from './metrics.js';
import { inTurn, lookAt, pass } from './pass.js';
import type { DueJob } from './pass.js';
import { deleteStep, jobKey, Report } from './report.js';
import type { Failures, PlanContext } from './report.js';
import type { Settings } from './settings.js';
import { uidOf, WatcherSet } from './watcher.js';
import type { LiveWatcher, ReadWatcher, Watcher } from './watcher.js';

export const JOBS: ResourceType = resourceType({ apiVersion: 'batch/v1', kind: 'Job' });

/** All watchers and all Jobs are one key: several watchers may match one Job. */
export const KEY = 'jobs';

/** A plan needn't hold more than can be deleted before the next one. */
const MAX_DELETES = 1000;

/** Watchers of which one plan computes and writes the status, beside those that it deletes for. */
const MAX_STATUSES = 500;

/** What couldn't be written, and had no turn, is tried again after this. */
const UNWRITTEN_MILLISECONDS = 1000;

/** How long reading and matching may keep the event loop busy at a time. */
const SLICE_MILLISECONDS = 25;

/** Afterwards, Jobs that have yet to be matched are left out, so that no number of them holds up all others. */
const MOST_SLICES = 20;

/** Jobs of a name that were deleted before the next one of it is left alone. */
const RECREATED_AFTER = 2;

export interface JobWatcherControllerProps {
  readonly type: ResourceType;
  readonly settings: Settings;
  readonly deletesPerSecond: number;
  /** Milliseconds, never set back: how long a plan keeps the process busy, which decides nothing else. */
  readonly clock: () => number;
}

/** What a plan is made of. */
interface Seen {
  readonly all: readonly ReadWatcher[];
  /** Those of them that can work. */
  readonly watchers: readonly Watcher[];
  readonly jobs: readonly KeptJob[];
  /** Namespaces of which Jobs are missing. */
  readonly waiting: ReadonlySet<string>;
}

/**
 * Deletes finished Jobs when their time has come.
 *
 * **Caveats.** It remembers what it has worked out of objects that stay the same, what it has done and not told yet,
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

  constructor(private readonly props: JobWatcherControllerProps) {
    this.kind = props.type.kind;
    this.watchers = new WatcherSet(props.settings);
    this.matching = new Matching(props.settings);
    const mapsTo = (): readonly string[] => [KEY];
    this.watches = [
      { type: props.type, keep: keepWatcher, writes: ['status'], mapsTo },
      { type: JOBS, keep: keepJob, readOnly: true, writes: ['delete'], mapsTo },
    ];
  }

  reconcile(key: string, reader: SweepReader, now: Date): Plan {
    const seen = this.see(key, reader);
    return seen ? this.plan(seen, reader, now) : this.goOn(key, reader, now);
  }

  /** Reads and matches what hasn't been yet, and goes on in the next plan where that takes long. */
  private see(key: string, reader: SweepReader, milliseconds = SLICE_MILLISECONDS): Seen | undefined {
    const { clock } = this.props;
    const end = clock() + milliseconds;
    const isTimeUp = (): boolean => clock() > end;
    const crs = reader.mappedTo(this.props.type, key) as unknown as readonly LiveWatcher[];
    const all = this.watchers.read(
      crs.filter(({ metadata }) => metadata.deletionTimestamp === undefined),
      isTimeUp,
    );
    if (!all) return undefined;
    const watchers = all.flatMap(({ watcher }) => (watcher instanceof OperatorError ? [] : [watcher]));
    this.matching.update(watchers);
    const jobs = reader.mappedTo(JOBS, key) as readonly KeptJob[];
    const waiting = this.matching.catchUp(jobs, isTimeUp);
    if (waiting.size > 0 && ++this.slices <= MOST_SLICES) return undefined;
    this.slices = 0;
    return { all, watchers, jobs: jobs.filter((job) => this.matching.isJudged(job)), waiting };
  }

  private goOn(key: string, reader: SweepReader, now: Date): Plan {
    return {
      ...{ apply: [], delete: [], status: [], events: [], again: () => true },
      explain: () => {
        const seen = this.see(key, reader, Infinity);
        return (seen && this.plan(seen, reader, now).explain?.()) ?? [];
      },
    };
  }

  private plan(seen: Seen, reader: SweepReader, now: Date): Plan {
    const reports = this.look(seen, reader, now.getTime());
    const due = inTurn(reports.flatMap(toDelete), this.hasFailed);
    const deleted = due.slice(0, MAX_DELETES);
    const isMore = due.slice(MAX_DELETES, MAX_DELETES + 1).some(({ job }) => !this.hasFailed(job));
    const { told, left } = this.takeTurns(reports, new Set(deleted.map(({ watcher }) => watcher)));
    const isLeft = left.some(({ isNew }) => isNew);
    return {
      apply: [],
      delete: [],
      sweep: { steps: deleted.map(deleteStep), deletesPerSecond: this.props.deletesPerSecond },
      again: () => seen.waiting.size > 0 || isLeft,
      status: told.map((report) => this.statusStep(report)),
      events: told.flatMap(eventSteps),
      samples: (changes) =>
        samplesOf({
          passes: reports.flatMap(({ read: { watcher }, pass: found }) =>
            found && !(watcher as Watcher).dryRun ? [found] : [],
          ),
          // What was done counts, also where nothing could be told of it any more: then no status was asked for.
          outcomes: told.map((report) => report.after(changes).tried),
          due: due.length,
          deletedAt: (one) => deletionTime(one, reader) ?? one.dueAt,
        }),
      requeueAt: (changes) => {
        for (const report of told) report.after(changes);
        let next = left.length > 0 ? now.getTime() + UNWRITTEN_MILLISECONDS : Infinity;
        for (const { pass: found, dueAt = Infinity } of reports)
          next = Math.min(next, dueAt, lookAt(found ?? {}));
        if (isMore) next = -Infinity;
        return next === Infinity ? undefined : new Date(Math.max(next, now.getTime()));
      },
      explain: () => reports.map(explanationOf),
    };
  }

  /** Those whose status the plan computes, longest ago first, and those that wait for the next. */
  private takeTurns(reports: readonly Report[], deleting: ReadonlySet<ReadWatcher['watcher']>) {
    const pending = reports.filter(({ isPending }) => isPending).sort((a, b) => a.turn - b.turn);
    const acting = reports.filter(({ read }) => deleting.has(read.watcher));
    const told = new Set([...pending.slice(0, MAX_STATUSES), ...acting]);
    this.turns++;
    for (const report of told) report.turn = this.turns;
    return { told: [...told], left: pending.filter((report) => !told.has(report)) };
  }

  private look({ all, watchers, jobs, waiting }: Seen, reader: SweepReader, now: number): Report[] {
    const context: PlanContext = {
      now,
      isSkewed: Math.abs(reader.clockSkewMilliseconds ?? 0) > TOLERATED_SKEW_MILLISECONDS,
      finishedAt: (deleted) =>
        deleted.reduce((latest, one) => Math.max(latest, deletionTime(one, reader) ?? now), now),
    };
    const before = this.reports;
    this.reports = new Map();
    const byWatcher = new Map<ReadWatcher['watcher'], Report>();
    for (const read of all) {
      const uid = uidOf(read.cr);
      const report = before.get(uid) ?? new Report(read, context, this.failures);
      report.begin(read, context);
      this.reports.set(uid, report);
      byWatcher.set(read.watcher, report);
    }
    const found = pass({
      ...{ watchers, jobs, now },
      verdicts: (job) => this.matching.verdicts(job),
      recreatedUntil: (job) => recreatedUntil(job, reader),
      hasFailed: this.hasFailed,
      opensAt: (watcher) =>
        isWaiting(watcher, waiting) ? now + 1000 : (byWatcher.get(watcher)?.opensAt(watcher) ?? -Infinity),
    });
    for (const [watcher, result] of found) (byWatcher.get(watcher) as Report).pass = result;
    return [...byWatcher.values()];
  }

  private statusStep(report: Report): StatusStep {
    return {
      target: report.read.cr,
      fieldManager: statusFieldManager(this.kind),
      status: (changes) => report.after(changes).status,
    };
  }
}

/** Limits are about all Jobs of a watcher. */
function isWaiting({ limits, namespace, namespacePatterns }: Watcher, waiting: ReadonlySet<string>): boolean {
  return (
    limits !== undefined && (waiting.has(namespace) || (namespacePatterns !== undefined && waiting.size > 0))
  );
}

function toDelete({ read: { watcher }, pass: found }: Report): readonly DueJob[] {
  return watcher instanceof OperatorError || watcher.dryRun ? [] : (found?.due ?? []);
}

function eventSteps(report: Report): EventStep[] {
  const { cr } = report.read;
  return ALL_NEWS.map((news) => ({
    regarding: { ...refOf(cr), uid: uidOf(cr) },
    event: (changes) => {
      const { status, isNews } = report.after(changes);
      return isNews ? news(cr.status, status) : undefined;
    },
  }));
}

function deletionTime(one: Pick<DueJob, 'job'>, reader: SweepReader): number | undefined {
  const { uid } = one.job.metadata;
  return reader
    .deletions(JOBS, jobKey(one))
    .findLast((deletion) => deletion.uid === uid)
    ?.at.getTime();
}

/** Until the older of the last two deletions of that name is forgotten. */
function recreatedUntil({ metadata }: KeptJob, reader: SweepReader): number | undefined {
  const before = reader.deletions(JOBS, objectKey(metadata.namespace, metadata.name));
  const others = new Map(before.filter(({ uid }) => uid !== metadata.uid).map(({ uid, at }) => [uid, at]));
  const older = [...others.values()].at(-RECREATED_AFTER);
  return older && older.getTime() + DELETIONS_KEPT_MILLISECONDS;
}

/** As it is, without the bookkeeping that nobody reads. */
function keepWatcher({ apiVersion, kind, metadata, spec, status }: AnyObject): AnyObject {
  const { managedFields, annotations, labels, ...kept } = metadata as ObjectMeta & {
    managedFields?: unknown;
  };
  return { apiVersion, kind, metadata: kept, spec, ...(status !== undefined && { status }) };
}
