import type { CustomResourceDefinition } from '../contract/crd.js';
import { groupOf } from '../contract/object.js';
import { definitionName, definitionType, isBuiltIn } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { ApiError } from './api-error.js';
import type { Api, Scope } from './api.js';
import { compareResourceVersions } from './cache.js';
import type { Store, Unserved } from './cache.js';
import { sleep } from './clock.js';
import type { Clock, Timer } from './clock.js';
import {
  ListPlan,
  OutdatedList,
  Retries,
  STREAMED_LIST,
  ShortWatch,
  SilentWatch,
  StreamedList,
  UnfinishedList,
  WatchFailures,
  WatchStream,
  doubtsVersions,
  hintFor,
  kindIsMissing,
  listPages,
  refusesRequest,
} from './watch.js';
import type { CompleteList, ObjectEvent } from './watch.js';
import { backoffDelay, RETRY } from './retry.js';

/** Where the CRD may not be read, a kind of which nothing was ever known isn't installed after this. */
const NEVER_SEEN_AFTER_MILLISECONDS = 10_000;

const OPTIONAL_IS_MISSING = 'The kind is not installed; it is not needed, and will be used once it is there';

/** Why it isn't known that a kind which isn't served isn't installed: with kind, version and remedy. */
export interface Doubt {
  /** `unreadable` may not be read, or doesn't exist for what is built in; of one that is `unknown` nothing was said. */
  readonly crd: 'installed' | 'unreadable' | 'unknown';
  readonly why: string;
}

/**
 * Returns why a kind that isn't served may be installed all the same. Only a CRD that doesn't exist proves that it isn't:
 * its version may have been turned off, and a proxy may answer 404 for anything.
 */
export async function doubtOf(
  api: Api,
  type: ResourceType,
  signal?: AbortSignal,
): Promise<Doubt | undefined> {
  const version = `${type.kind} is not served as ${type.apiVersion}`;
  if (isBuiltIn(type))
    return { crd: 'unreadable', why: `${version}: run a version of the operator that fits the API server` };
  const name = definitionName(type);
  try {
    const { spec } = (await api.get(definitionType, name, signal)) as Partial<CustomResourceDefinition>;
    const served = spec?.versions.flatMap((each) => (each.served ? [each.name] : [])).join(', ');
    const why = `${version}, though its CRD is installed and serves ${served || 'nothing'}: serve that version again, or run a version of the operator that uses one that is served`;
    return { crd: 'installed', why };
  } catch (error) {
    if (error instanceof ApiError && error.objectIsGone) return undefined;
    const why = `${version}, and its CRD ${name} can't be read (${(error as Error).message}): grant get on it, or restart the operator if the kind was removed`;
    return { crd: error instanceof ApiError && error.code === 403 ? 'unreadable' : 'unknown', why };
  }
}

export interface MissingKindProps {
  readonly api: Api;
  readonly scope: Scope;
  readonly store: Store;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly optional?: boolean;
  /** Called when it becomes doubtful what there is of the kind, and when it is known again. @default - not called */
  readonly onDoubt?: ((isDoubtful: boolean) => void) | undefined;
}

/**
 * Decides what becomes of a watch whose kind the API server doesn't serve.
 *
 * **Guarantees.** It is looked for again, for ever. Its objects are gone, and the store is emptied, once the API server has
 * said that its CRD doesn't exist. Until then what is known stays, and the store says that it is doubtful.
 */
export class MissingKind {
  private tries = 0;
  private since: number | undefined;
  /** A list was complete, or the CRD was read, since it was last known to be missing. */
  private wasInstalled = false;
  private doubt: Doubt | undefined;

  constructor(private readonly props: MissingKindProps) {}

  /** Why it isn't known what there is of the kind; undefined while it is. */
  get doubtful(): string | undefined {
    return this.doubt?.why;
  }

  /** Returns after how many milliseconds to look again. */
  async notServed(error: Error, signal: AbortSignal): Promise<number> {
    const { random } = this.props;
    const delay = backoffDelay(RETRY.missingKind, this.tries, random);
    if (this.unserved !== 'missing') await this.judge(error, signal);
    this.tell(error, delay);
    this.tries++;
    return delay;
  }

  /** It couldn't be asked. */
  unknown(): void {
    this.since = undefined;
  }

  /** A complete list has come. */
  served(): void {
    if (this.tries > 0) this.props.log.info(this.fields(), 'The kind is served now');
    this.tries = 0;
    this.since = undefined;
    this.wasInstalled = true;
    this.set(undefined);
  }

  private async judge(error: Error, signal: AbortSignal): Promise<void> {
    const { api, clock, scope, store, log } = this.props;
    // Nothing is done on what may have gone while the CRD is being asked for.
    this.set('doubtful', this.doubt ?? { crd: 'unknown', why: error.message });
    this.since ??= clock.monotonic();
    const doubt = await doubtOf(api, scope.type, signal);
    const isOld = clock.monotonic() - this.since >= NEVER_SEEN_AFTER_MILLISECONDS;
    this.wasInstalled ||= doubt?.crd === 'installed';
    if (doubt && (doubt.crd !== 'unreadable' || this.wasInstalled || !isOld)) {
      this.set('doubtful', doubt);
      return;
    }
    this.set('missing');
    if (!this.wasInstalled) return;
    this.wasInstalled = false;
    log.warn({ ...this.fields(), objects: store.size }, 'The kind has been removed, and its objects with it');
    // Nothing that was known counts any more, as after a list that is older than everything: versions included.
    store.replace([], '0', scope.namespace);
  }

  private set(unserved: Unserved | undefined, doubt?: Doubt): void {
    const { store, scope, onDoubt } = this.props;
    const wasDoubtful = this.doubt !== undefined;
    this.doubt = doubt;
    store.setUnserved(scope.namespace, unserved);
    if (wasDoubtful !== (doubt !== undefined)) onDoubt?.(!wasDoubtful);
  }

  /** The first time is news. */
  private tell(error: Error, delay: number): void {
    const { log, optional } = this.props;
    const news = optional && !this.wasInstalled ? 'info' : 'warn';
    log[this.tries === 0 ? news : 'debug'](
      {
        ...this.fields(),
        error: this.doubtful ?? error.message,
        ...(news === 'warn' && this.doubt?.crd !== 'installed' && { hint: hintFor(error) }),
        retryMilliseconds: Math.round(delay),
      },
      news === 'info' ? OPTIONAL_IS_MISSING : 'The kind is not served, will look for it again',
    );
  }

  private get unserved(): Unserved | undefined {
    return this.props.store.unservedIn(this.props.scope.namespace);
  }

  private fields(): object {
    const { scope } = this.props;
    return { resource: scope.type.plural, watchNamespace: scope.namespace };
  }
}

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
  /** Called when a list shows an older state of the server, with when the one before was asked for. @default - not called */
  readonly onWentBack?: (listedBefore: number) => void;
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
      this.props.onWentBack?.(this.present.askedAt);
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

/** Where a reflector stands. */
type ReflectorState =
  /** Getting all objects, at first or anew; what was known before is served meanwhile. */
  | { readonly phase: 'listing' }
  /** Following changes from this version on. */
  | { readonly phase: 'watching'; readonly resourceVersion: string }
  /** After a failure, until the next attempt; with a version it goes on watching from there, without listing. */
  | { readonly phase: 'waiting'; readonly error: Error; readonly resourceVersion?: string };

/**
 * What a watch has missed since the version that it goes on from is sent right after the answer, from the memory of
 * the API server, so after this it has arrived. Until then each object that isn't known costs a request to make sure,
 * which is little for a second; waiting for the next bookmark would take a minute.
 */
const CATCH_UP_MILLISECONDS = 1_000;

interface CatchUpProps {
  readonly store: Store;
  readonly clock: Clock;
  readonly namespace: string | undefined;
}

/** Tells a store whether what it doesn't know isn't there: while a watch is open, and has brought what was missed. */
class CatchUp {
  private open = false;
  private timer: Timer | undefined;

  constructor(private readonly props: CatchUpProps) {}

  /** A watch is open that goes on from an older version. */
  opened(): void {
    this.open = true;
    this.timer = this.props.clock.setTimer(CATCH_UP_MILLISECONDS, () => {
      this.done();
    });
  }

  /** A watch is open that begins with all objects. */
  openedWithList(): void {
    this.open = true;
  }

  /** A bookmark, or the end of a list: the server has said that this is all. */
  done(): void {
    if (!this.open) return;
    this.timer?.cancel();
    this.timer = undefined;
    this.props.store.setFollowed(this.props.namespace, true);
  }

  /** The watch has ended. */
  ended(): void {
    this.open = false;
    this.timer?.cancel();
    this.timer = undefined;
    this.props.store.setFollowed(this.props.namespace, false);
  }
}

/** Something that is reached once, and stays so. */
class Milestone {
  /** Resolves when it is. */
  readonly reached: Promise<undefined>;
  private readonly resolve: (value: undefined) => void;
  private passed = false;

  constructor() {
    ({ promise: this.reached, resolve: this.resolve } = Promise.withResolvers<undefined>());
  }

  get isReached(): boolean {
    return this.passed;
  }

  reach(): void {
    this.passed = true;
    this.resolve(undefined);
  }
}

/** Somebody who needs a list that was asked for at a certain moment or later, by the monotonic clock. */
interface Demand {
  readonly since: number;
  readonly met: () => void;
}

/**
 * When a reflector's last list was asked for, and who needs a later one.
 *
 * A list says that the API server, and not merely its cache or a connection that may have gone silent, was at least
 * that new. Versions can't tell: those of an idle type are behind until the next bookmark, although nothing is missing.
 */
class PresentList {
  private readonly demands = new Set<Demand>();
  private turn = new AbortController();
  /** When the last complete one was asked for. */
  askedAt = -Infinity;
  /** When the one under way was asked for. */
  private asking = -Infinity;

  /** Whether somebody waits for a list. */
  get isDemanded(): boolean {
    return this.demands.size > 0;
  }

  /** Resolves once there is a list that was asked for at that moment or later, or as soon as the signal aborts. */
  async since(moment: number, signal: AbortSignal): Promise<void> {
    if (this.askedAt >= moment || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const met = (): void => {
        this.demands.delete(demand);
        signal.removeEventListener('abort', met);
        resolve();
      };
      const demand = { since: moment, met };
      this.demands.add(demand);
      signal.addEventListener('abort', met);
      if (this.asking < moment) this.turn.abort();
    });
  }

  /** Does something that is broken off when the outer signal aborts, or when another list is needed. */
  async interruptible(outer: AbortSignal, act: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const turn = (this.turn = new AbortController());
    const abort = (): void => {
      turn.abort();
    };
    outer.addEventListener('abort', abort);
    if (outer.aborted) abort();
    try {
      await act(turn.signal);
    } finally {
      outer.removeEventListener('abort', abort);
      this.asking = -Infinity;
    }
  }

  /** A list is asked for now. */
  ask(now: number): void {
    this.asking = now;
  }

  /** The one that was asked for is complete, or there can't be any. */
  complete(): void {
    this.askedAt = this.asking;
    for (const { since, met } of this.demands) if (this.askedAt >= since) met();
  }
}

/** The hash moves within a second of the change, as a rule before the watches end (1.36); other API servers may be later. */
const ASKED_AFTER_MILLISECONDS = 10_000;

interface SchemaChangesProps {
  readonly api: Api;
  readonly scope: Scope;
  readonly clock: Clock;
  /** Called when objects may have changed although their versions haven't. */
  readonly onChange: () => void;
}

/**
 * Notices that a CRD has another schema: its objects are read with other defaults and without pruned fields then, and
 * their versions don't move. The API server ends the watches of the kind, so nothing is asked for unless one ends early.
 */
class SchemaChanges {
  private hash: string | undefined;
  private isSuspected = false;
  private endsAt = -Infinity;
  private timer: Timer | undefined;

  constructor(private readonly props: SchemaChangesProps) {}

  /** The API server has accepted a watch, which it ends by itself after so long. */
  opened(lifetimeMilliseconds: number): void {
    const { scope, clock } = this.props;
    this.endsAt = clock.monotonic() + lifetimeMilliseconds;
    if (this.isSuspected && !isBuiltIn(scope.type)) this.askLater();
  }

  /** @param isAborted it was given up here */
  ended(isAborted: boolean): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.isSuspected ||= !isAborted && this.props.clock.monotonic() < this.endsAt - 1_000;
    this.endsAt = -Infinity;
  }

  private askLater(): void {
    const timer = this.props.clock.setTimer(ASKED_AFTER_MILLISECONDS, () => void this.ask(timer));
    this.timer = timer;
  }

  private async ask(timer: Timer): Promise<void> {
    const { api, scope, onChange } = this.props;
    let hash: string | undefined;
    let isAnswered = true;
    try {
      hash = await api.schemaHash(scope.type.apiVersion);
    } catch (error) {
      isAnswered = error instanceof ApiError && (error.code === 403 || error.code === 404);
    }
    // Where the watch has ended meanwhile, the next one asks.
    if (this.timer !== timer) return;
    this.isSuspected = !isAnswered;
    if (!isAnswered) this.askLater();
    if (hash === undefined || hash === this.hash) return;
    this.hash = hash;
    onChange();
  }
}

/** A label for each of more namespaces would cost more than it tells. */
const NAMED_NAMESPACES = 25;

/** What a watch covers, for people: `deployments.apps in shop`. */
export function watchName({ type, namespace, name }: Scope): string {
  const group = groupOf(type.apiVersion);
  return `${type.plural}${group && `.${group}`}${name ? `/${name}` : ''}${namespace ? ` in ${namespace}` : ''}`;
}

/** The same as a label: of many namespaces, those after the first share one. */
export function watchLabel(scope: Scope, namespaces: readonly string[]): string {
  const { namespace } = scope;
  const named = namespace === undefined || namespaces.indexOf(namespace) < NAMED_NAMESPACES;
  return watchName(named ? scope : { ...scope, namespace: 'other namespaces' });
}

/** Counts what reflectors do, and tells how they stand when somebody asks; reflectors may share a name. */
export class WatchMetrics {
  private readonly followed: { readonly name: string; readonly reflector: Reflector }[] = [];

  constructor(
    private readonly metrics: Metrics,
    private readonly clock: Clock,
  ) {
    metrics.onScrape(() => {
      this.update();
    });
  }

  named(name: string): ReflectorMetrics {
    const { metrics, followed } = this;
    return {
      follow: (reflector) => followed.push({ name, reflector }),
      listed: (milliseconds) => {
        metrics.reflectorLists.inc({ name });
        metrics.reflectorListSeconds.observe({ name }, milliseconds / 1000);
      },
      watchOpened: () => {
        metrics.reflectorWatches.inc({ name });
      },
      watchWasShort: () => {
        metrics.reflectorShortWatches.inc({ name });
      },
    };
  }

  /** Of those that share a name, the one that is worst off is shown. */
  private update(): void {
    const silence = new Map<string, number>();
    const version = new Map<string, number>();
    for (const { name, reflector } of this.followed) {
      const seconds = reflector.watches
        ? reflector.silentForMilliseconds(this.clock.monotonic()) / 1000
        : Infinity;
      silence.set(name, Math.max(silence.get(name) ?? 0, seconds));
      const reached = Number(reflector.lastResourceVersion ?? 0);
      version.set(name, Math.min(version.get(name) ?? Infinity, reached));
    }
    for (const [name, seconds] of silence)
      this.metrics.watchSilenceSeconds.set({ name }, seconds === Infinity ? -1 : seconds);
    for (const [name, reached] of version) this.metrics.reflectorLastResourceVersion.set({ name }, reached);
  }
}

/** Where one reflector reports. */
export interface ReflectorMetrics {
  /** How it stands is shown from now on. */
  follow(reflector: Reflector): void;
  listed(milliseconds: number): void;
  watchOpened(): void;
  watchWasShort(): void;
}
