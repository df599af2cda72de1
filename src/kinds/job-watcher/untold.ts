import type { JobWatcherStatus } from './spec.js';
import type { RunOutcome } from './run.js';

/** What was done for a watcher since its status was written. */
export interface Done {
  /** Milliseconds since the epoch: when the first of these runs began, and when the last ended. */
  readonly startedAt: number;
  readonly finishedAt: number;
  /** UIDs of Jobs. */
  readonly deleted: ReadonlySet<string>;
  readonly failed: ReadonlySet<string>;
}

/** A status that was to be written, and when, in milliseconds since the epoch. */
interface Offer {
  readonly status: JobWatcherStatus;
  readonly at: number;
}

/**
 * What runs have done and no status tells yet, since a status is written once per `frequency` at most. Nothing is
 * decided by it but when a run with limits may follow the last, and a status the last; a restart may forget it.
 */
export class Untold {
  private readonly byWatcher = new Map<string, Done>();
  private readonly offered = new Map<string, Offer>();
  private readonly told = new Map<string, number>();

  of(watcherUid: string): Done | undefined {
    return this.byWatcher.get(watcherUid);
  }

  /**
   * When the last status was written, which may be long after the run that it tells.
   *
   * @default - none was since the start
   */
  toldAt(watcherUid: string): number | undefined {
    return this.told.get(watcherUid);
  }

  /** Doubled calls for the same Jobs count once. */
  add(watcherUid: string, { deleted, failed }: RunOutcome, startedAt: number, finishedAt: number): void {
    if (deleted.length + failed.length === 0) return;
    const before = this.byWatcher.get(watcherUid);
    const done = new Set([...(before?.deleted ?? []), ...deleted.map(({ job }) => job.metadata.uid)]);
    const failures = [...(before?.failed ?? []), ...failed.map(({ due: { job } }) => job.metadata.uid)];
    this.byWatcher.set(watcherUid, {
      startedAt: before?.startedAt ?? startedAt,
      finishedAt,
      deleted: done,
      failed: new Set(failures.filter((uid) => !done.has(uid))),
    });
    this.offered.delete(watcherUid);
  }

  /** A status that tells all of it is about to be written. */
  offer(watcherUid: string, status: JobWatcherStatus, at: number): void {
    this.offered.set(watcherUid, { status, at });
  }

  /** Forgets what the status that is there now tells. */
  seen(watcherUid: string, status: JobWatcherStatus | undefined): void {
    const offer = this.offered.get(watcherUid);
    if (!offer || !tellsTheRunOf(offer.status, status)) return;
    this.told.set(watcherUid, offer.at);
    this.byWatcher.delete(watcherUid);
    this.offered.delete(watcherUid);
  }

  /** Forgets watchers that there are no more. */
  retain(watcherUids: ReadonlySet<string>): void {
    for (const map of [this.byWatcher, this.offered, this.told])
      for (const uid of map.keys()) if (!watcherUids.has(uid)) map.delete(uid);
  }
}

function tellsTheRunOf(offered: JobWatcherStatus, status: JobWatcherStatus | undefined): boolean {
  const { lastStarted, lastRun } = offered;
  return (
    lastStarted !== undefined &&
    lastStarted === status?.lastStarted &&
    lastRun?.deleted === status.lastRun?.deleted &&
    lastRun?.failed === status.lastRun?.failed
  );
}
