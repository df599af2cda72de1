import { isDeepStrictEqual } from 'node:util';
import { vi } from 'vitest';
import type { Change } from '../../../src/contract/change.js';
import type { Reader } from '../../../src/contract/controller.js';
import type { Conclusion, EventProps, Plan, Sample } from '../../../src/contract/plan.js';
import { OperatorError } from '../../../src/contract/error.js';
import { objectKey, refOf, type AnyObject } from '../../../src/contract/object.js';
import { JobWatcherController, KEY } from '../../../src/kinds/job-watcher/controller.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import type { JobWatcherSpec, JobWatcherStatus, LiveWatcher } from '../../../src/kinds/job-watcher/spec.js';
import {
  Sweeper,
  type Deletion,
  type Deletions,
  type SweepStep,
} from '../../../src/kinds/job-watcher/sweep.js';
import { liveJob, liveWatcher, settings, START, type JobProps } from './fixtures.js';

/** A cluster of Jobs and JobWatchers, with the controller at work in it and a clock that stands still. */
export class World {
  /** Seconds after the start, by the operator's clock. */
  now = 0;
  /** How far the API server's clock is ahead, in seconds. */
  skew = 0;
  /** Whatever it matches takes longer than a slice. */
  slow = false;
  /** No status can be written. */
  refuseStatus = false;
  readonly jobs = new Map<string, AnyObject>();
  readonly watchers = new Map<string, LiveWatcher>();
  /** What each turn has led to. */
  deleted: string[] = [];
  statusWrites: string[] = [];
  events: (EventProps & { readonly regarding: string })[] = [];
  announced: string[] = [];
  samples: Sample[] = [];
  plan: Plan | undefined;
  conclusion: Conclusion = { status: [], events: [] };
  /** What the API server answers to a deletion in place of doing it. @default - it does it */
  refuse: (job: AnyObject) => OperatorError | undefined = () => undefined;
  private readonly kept = new WeakMap<AnyObject, AnyObject>();
  private version = 1;
  private sweeper = new Sweeper(settings.deletesPerSecond);
  private controller = this.newController();

  restart(): void {
    this.sweeper = new Sweeper(settings.deletesPerSecond);
    this.controller = this.newController();
  }

  /** What was deleted since the start. */
  get deletions(): Deletions {
    return this.sweeper.deletions;
  }

  /** What the last plan sweeps. */
  get swept(): readonly SweepStep[] {
    return (this.plan?.steps ?? []) as readonly SweepStep[];
  }

  /** Whether the last plan asks for another at once. */
  get isAgain(): boolean {
    return this.conclusion.next === 'now';
  }

  /** When the last plan asks to be taken again. */
  get next(): Date | undefined {
    const { next } = this.conclusion;
    return next === 'now' ? this.counted() : next;
  }

  addJob(props: JobProps): void {
    const live = liveJob(props);
    const resourceVersion = String(++this.version);
    this.jobs.set(keyOf(live), { ...live, metadata: { ...live.metadata, resourceVersion } });
  }

  setWatcher(spec: JobWatcherSpec, { name = 'sweeper', namespace = 'default' } = {}): void {
    const before = this.watchers.get(objectKey(namespace, name));
    const generation = (before?.metadata.generation ?? 0) + 1;
    const status = before?.status ?? { observedGeneration: -1 };
    this.watchers.set(objectKey(namespace, name), liveWatcher(spec, { name, namespace, generation, status }));
  }

  annotateWatcher(annotations: Readonly<Record<string, string>>, key = 'default/sweeper'): void {
    const watcher = this.watchers.get(key) as LiveWatcher;
    this.watchers.set(key, { ...watcher, metadata: { ...watcher.metadata, annotations } });
  }

  status(name = 'sweeper', namespace = 'default'): JobWatcherStatus {
    return this.watchers.get(objectKey(namespace, name))?.status ?? {};
  }

  condition(type: string, name?: string, namespace?: string): string {
    const found = this.status(name, namespace).conditions?.find((condition) => condition.type === type);
    return `${found?.status} ${found?.reason}`;
  }

  /** One reconcile, carried out. Returns the names of the Jobs that were deleted. */
  turn(): string[] {
    this.deleted = [];
    this.statusWrites = [];
    this.events = [];
    this.announced = [];
    const plan = this.controller.reconcile(KEY, this.reader(), this.counted());
    this.plan = plan;
    const changes: Change[] = [];
    for (const step of this.swept) {
      if (changes.some(isOutOfReach)) {
        changes.push({ ref: refOf(step.object), action: 'skipped' });
        continue;
      }
      this.announced.push(step.announce.note);
      changes.push(this.delete(step));
    }
    this.conclusion = plan.conclude(changes);
    this.samples = [...(this.conclusion.samples ?? [])];
    // Then nothing else is tried, the status included.
    if (changes.some(isOutOfReach)) return this.deleted;
    for (const { target, status } of this.conclusion.status) this.writeStatus(keyOf(target), status);
    for (const { regarding, event } of this.conclusion.events)
      this.events.push({ ...event, regarding: regarding.name });
    return this.deleted;
  }

  /** Turns at the times that the plans ask for, until then. Returns all that was deleted. */
  goTo(seconds: number): string[] {
    const all = [...this.turn()];
    for (let turns = 0; turns < 1000; turns++) {
      const next = this.next ? (this.next.getTime() - START) / 1000 : Infinity;
      if (next > seconds) break;
      this.now = Math.max(this.now, next);
      all.push(...this.turn());
    }
    this.now = seconds;
    return [...all, ...this.turn()];
  }

  private newController(): JobWatcherController {
    let time = 0;
    const monotonic = (): number => (this.slow ? (time += 100) : 0);
    const wall = (): number => START + this.now * 1000;
    return new JobWatcherController(jobWatcher.type, settings, { monotonic, wall }, this.sweeper);
  }

  /** What was deleted under that name within 24 hours. */
  remembered(key: string): readonly Deletion[] {
    return this.deletions.of(key, this.counted().getTime());
  }

  /** The time as the engine gives it: the server's where it is more than 30 s off. */
  private counted(): Date {
    const { now, skew } = this;
    return new Date(START + (now + (Math.abs(skew) > 30 ? skew : 0)) * 1000);
  }

  private reader(): Reader {
    const ofKind = (kind: string): readonly AnyObject[] =>
      kind === 'Job' ? [...this.jobs.values()].map((live) => this.keep(live)) : (this.crs() as never);
    return {
      get: vi.fn(),
      all: () => [],
      controlledBy: () => [],
      mappedTo: ({ kind }) => ofKind(kind),
      find: () => ({}),
    };
  }

  private crs(): LiveWatcher[] {
    return [...this.watchers.values()];
  }

  /** The same object for as long as it stays the same, as the store has it. */
  private keep(live: AnyObject): AnyObject {
    const known = this.kept.get(live);
    if (known) return known;
    const kept = this.controller.watches[1]!.keep!(live)!;
    this.kept.set(live, kept);
    return kept;
  }

  private delete({ object: judged, plannedFor }: SweepStep): Change {
    const key = keyOf(judged);
    const live = this.jobs.get(key);
    const { uid, resourceVersion } = judged.metadata;
    if (!live) return { ref: refOf(judged), action: 'unchanged' };
    if (live.metadata.uid !== uid || live.metadata.resourceVersion !== resourceVersion)
      return { ref: refOf(judged), action: 'skipped', skippedFor: 'changed' };
    const error = this.refuse(live);
    if (error) return { ref: refOf(judged), action: 'failed', error };
    this.jobs.delete(key);
    this.deletions.add(judged, plannedFor);
    this.deleted.push(judged.metadata.name);
    return { ref: refOf(judged), action: 'deleted' };
  }

  private writeStatus(key: string, status: object): void {
    if (status instanceof OperatorError) throw status;
    const cr = this.watchers.get(key)!;
    if (this.refuseStatus || isDeepStrictEqual(cr.status, status)) return;
    this.statusWrites.push(cr.metadata.name);
    this.watchers.set(key, { ...cr, status });
  }
}

function isOutOfReach({ error }: Change): boolean {
  return error?.reason === 'Unreachable';
}

function keyOf({ metadata }: Pick<AnyObject, 'metadata'>): string {
  return objectKey(metadata.namespace, metadata.name);
}
