import type { Logger } from '../telemetry/logger.js';
import { ApiError } from './api-error.js';
import type { Api, Scope } from './api.js';
import { CatchUp } from './catch-up.js';
import { sleep } from './clock.js';
import type { Clock } from './clock.js';
import { ListPlan } from './list-plan.js';
import { listPages, STREAMED_LIST, StreamedList } from './lists.js';
import type { CompleteList } from './lists.js';
import { Milestone } from './milestone.js';
import { MissingKind } from './missing-kind.js';
import type { MissingKindProps } from './missing-kind.js';
import { PresentList } from './present-list.js';
import type { ReflectorMetrics } from './reflector-metrics.js';
import type { ReflectorState } from './reflector-state.js';
import { compareResourceVersions } from './resource-version.js';
import { Retries } from './retries.js';
import { SchemaChanges } from './schema-changes.js';
import type { Store } from './store.js';
import type { ObjectEvent } from './watch-events.js';
import {
  doubtsVersions,
  kindIsMissing,
  OutdatedList,
  refusesRequest,
  ShortWatch,
  SilentWatch,
  UnfinishedList,
  WatchFailures,
} from './watch-failure.js';
import { WatchStream } from './watch-stream.js';

/** Watches end by themselves after 5 to 10 minutes, so that load moves to API servers that were added since. */
const WATCH_LIFETIME_SECONDS = 300;

export interface ReflectorProps {
  readonly api: Api;
  readonly scope: Scope;
  readonly store: Store;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: ReflectorMetrics;
  /** While the kind isn't installed, having no objects of it is enough to start. @default false */
  readonly optional?: boolean;
  /** Plans that name no object of the kind may go on while it is doubtful what there is of it. @default false */
  readonly mayBeDoubtful?: boolean;
  /** See `MissingKindProps`. */
  readonly onDoubt?: MissingKindProps['onDoubt'];
  /** Called with each complete list, once the store holds it. @default - nobody is told */
  readonly onListed?: () => void;
  /** Called when a list that nothing waits for shows an older state of the server. @default - no one is told */
  readonly onWentBack?: () => void;
  /** Called with each failure, after which it tries again. @default - nobody is told */
  readonly onFailed?: (error: Error) => void;
}

/**
 * Keeps a store equal to what the API server has of one type, in one namespace or in all.
 *
 * **Guarantees.** It never gives up and never goes silent: every failure leads to another attempt, and a
 * connection that delivers nothing for 75 s is replaced. The store changes only to a state that the server was in.
 * A kind that is installed later, or removed and installed again, is followed from then on.
 *
 * **Assumptions.** The API server sends bookmarks (Kubernetes 1.34 or newer).
 */
export class Reflector {
  state: ReflectorState = { phase: 'listing' };
  /** The kind is served and may be read, or is optional and isn't served. */
  readonly answered = new Milestone();
  private readonly listed = new Milestone();
  /** The version that everything up to has been delivered, as long as it can be gone on from. */
  private reached: string | undefined;
  private readonly plan = new ListPlan();
  private readonly present = new PresentList();
  private readonly retries: Retries;
  private readonly failures = new WatchFailures();
  private readonly missing: MissingKind;
  private readonly catchUp: CatchUp;
  private readonly schema: SchemaChanges;
  private stream: WatchStream | undefined;
  private answeredAt: number;

  constructor(private readonly props: ReflectorProps) {
    this.missing = new MissingKind(props);
    this.retries = new Retries(props);
    this.catchUp = new CatchUp({ ...props, namespace: props.scope.namespace });
    const onChange = (): void => {
      // Listed at once, and compared by content.
      this.plan.doubtVersions();
      void this.present.since(props.clock.monotonic(), new AbortController().signal);
    };
    this.schema = new SchemaChanges({ ...props, onChange });
    this.answeredAt = props.clock.monotonic();
    props.metrics.follow(this);
  }

  /** Why it isn't known what there is of the kind, although it may be installed; undefined while it is. */
  get doubtful(): string | undefined {
    return this.missing.doubtful;
  }

  /** The store holds a complete list, or an optional kind isn't installed; it stays true from then on. */
  get synced(): boolean {
    return this.listed.isReached;
  }

  /** Resolves once it is. */
  get firstSync(): Promise<undefined> {
    return this.listed.reached;
  }

  /** Up to here everything has been delivered. */
  get lastResourceVersion(): string | undefined {
    return this.reached;
  }

  /** A watch is open, or being opened. */
  get watches(): boolean {
    return this.stream !== undefined;
  }

  /**
   * For how long the server hasn't said anything to this reflector: no event, no bookmark, not even a refusal. A kind
   * that isn't served, or may not be watched, is not silent.
   *
   * @param now by the monotonic clock
   */
  silentForMilliseconds(now: number): number {
    return now - Math.max(this.answeredAt, this.stream?.heardAt ?? 0);
  }

  /**
   * Resolves once the store is as new as the API server was at that moment, by the monotonic clock, for which it lists
   * anew where the last list was asked for earlier; or as soon as the signal aborts. Of a kind that isn't served, and
   * of which nothing is known, nothing can be too old.
   */
  async presentSince(moment: number, signal: AbortSignal): Promise<void> {
    return this.present.since(moment, signal);
  }

  /** Runs until the signal aborts, and never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    this.answeredAt = this.props.clock.monotonic();
    while (!signal.aborted) await this.present.interruptible(signal, this.turn.bind(this));
  }

  /** One session, and what comes after its failure. */
  private async turn(signal: AbortSignal): Promise<void> {
    const { clock } = this.props;
    const startedAt = clock.monotonic();
    let failure: Error | undefined;
    try {
      await this.session(signal);
    } catch (error) {
      failure = error as Error;
    }
    this.retries.lasted(clock.monotonic() - startedAt);
    if (failure) await this.recover(failure, signal);
  }

  /** One watch, from the version that was reached or from a full list on. */
  private async session(signal: AbortSignal): Promise<void> {
    const { api, scope, store, clock } = this.props;
    const startedAt = clock.monotonic();
    if (this.reached !== undefined && !this.present.isDemanded && !this.plan.isDue(startedAt)) {
      await this.follow(this.reached, signal);
      return;
    }
    // Where this fails for no fault of the version that was reached, that is gone on from.
    const how = this.plan.begin(startedAt);
    this.present.ask(clock.monotonic());
    this.state = { phase: 'listing' };
    if (how === 'stream' && (await this.streamList(startedAt, signal))) return;
    const list = await listPages(api, scope, this.plan.project(store), signal);
    this.complete(list, startedAt);
    await this.follow(list.resourceVersion, signal);
  }

  /** Lists, and goes on with changes. Returns false where the server doesn't stream lists. */
  private async streamList(startedAt: number, signal: AbortSignal): Promise<boolean> {
    const list = new StreamedList(this.plan.project(this.props.store));
    let failure: unknown;
    try {
      await this.watch(STREAMED_LIST, signal, (event) => {
        if (!this.isListing()) {
          this.change(event);
          return;
        }
        const complete = list.take(event);
        if (complete) this.complete(complete, startedAt);
      });
    } catch (error) {
      failure = error;
    }
    // The feature is off, or unknown to the server.
    if (this.isListing() && refusesRequest(failure)) {
      this.plan.refused();
      return false;
    }
    if (this.isListing() && (!failure || failure instanceof SilentWatch)) {
      this.plan.unfinished();
      throw new UnfinishedList(failure);
    }
    if (failure) throw failure as Error;
    return true;
  }

  private isListing(): boolean {
    return this.state.phase === 'listing';
  }

  private complete(list: CompleteList, startedAt: number): void {
    const { store, scope, clock, random, metrics, log } = this.props;
    const { entries, resourceVersion } = list;
    if (store.hasPassed(resourceVersion, scope.namespace) && !this.plan.believesOlder(clock.monotonic()))
      throw new OutdatedList(resourceVersion);
    if (store.replace(entries, resourceVersion, scope.namespace)) {
      const fields = { resource: scope.type.plural, watchNamespace: scope.namespace, resourceVersion };
      log.warn(fields, 'The API server went back to an older state, as after a restored backup');
      if (!this.present.isDemanded) this.props.onWentBack?.();
    }
    this.plan.done(clock.monotonic(), random);
    this.reach(resourceVersion);
    this.missing.served();
    this.markSynced();
    this.catchUp.done();
    this.present.complete();
    metrics.listed(clock.monotonic() - startedAt);
    this.props.onListed?.();
  }

  private markSynced(): void {
    this.answered.reach();
    this.listed.reach();
  }

  private async follow(resourceVersion: string, signal: AbortSignal): Promise<void> {
    this.reach(resourceVersion);
    await this.watch({ resourceVersion }, signal, this.change.bind(this));
  }

  private reach(resourceVersion: string): void {
    this.reached = resourceVersion;
    this.state = { phase: 'watching', resourceVersion };
  }

  private change({ type, object }: ObjectEvent): void {
    const { store, scope } = this.props;
    const { resourceVersion } = object.metadata;
    const order = compareResourceVersions(resourceVersion ?? '0', this.reached ?? '0');
    if (order >= 0) this.plan.caughtUp();
    const news = order > 0;
    if (type === 'BOOKMARK') {
      store.advance(resourceVersion, scope.namespace);
      this.catchUp.done();
    } else if (type === 'DELETED') store.observedDeletion(object);
    // Versions only rise within a watch: what is told twice might bring back what has been deleted since.
    else if (news) store.observed(object);
    if (news && resourceVersion) this.reach(resourceVersion);
  }

  private async watch(
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
    handle: (event: ObjectEvent) => void,
  ): Promise<void> {
    const { api, scope, clock, random, metrics } = this.props;
    const timeoutSeconds = Math.round(WATCH_LIFETIME_SECONDS * (1 + random()));
    const opened = (): void => {
      this.schema.opened(timeoutSeconds * 1000);
      metrics.watchOpened();
      this.answered.reach();
      this.answeredAt = clock.monotonic();
      if (this.isListing()) this.catchUp.openedWithList();
      else this.catchUp.opened();
    };
    const request = { api, scope, clock, query: { ...query, timeoutSeconds: String(timeoutSeconds) } };
    const stream = new WatchStream({ ...request, opened, handle });
    this.stream = stream;
    try {
      await stream.read(signal);
    } finally {
      this.schema.ended(signal.aborted);
      this.catchUp.ended();
      this.answeredAt = Math.max(this.answeredAt, stream.heardAt ?? 0);
      this.stream = undefined;
    }
  }

  /** Waits before the next attempt. */
  private async recover(error: Error, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const { clock, metrics } = this.props;
    this.props.onFailed?.(error);
    if (error instanceof ApiError) this.answeredAt = clock.monotonic();
    if (error instanceof ShortWatch) metrics.watchWasShort();
    if (this.failures.mustRelist(error, clock.monotonic())) this.reached = undefined;
    if (doubtsVersions(error) || kindIsMissing(error)) this.plan.doubtVersions();
    const delay = kindIsMissing(error) ? await this.missing.notServed(error, signal) : this.failed(error);
    if (kindIsMissing(error)) this.goOnWithout();
    const resourceVersion = this.reached;
    this.state = { phase: 'waiting', error, ...(resourceVersion !== undefined && { resourceVersion }) };
    await sleep(clock, delay, signal);
  }

  /** The kind isn't served: where that is no reason to wait, there is nothing to wait for. */
  private goOnWithout(): void {
    const { optional, mayBeDoubtful } = this.props;
    if (this.doubtful !== undefined && !mayBeDoubtful) return;
    if (optional) this.markSynced();
    this.present.complete();
  }

  private failed(error: Error): number {
    this.missing.unknown();
    return this.retries.failed(error, this.reached === undefined);
  }
}
