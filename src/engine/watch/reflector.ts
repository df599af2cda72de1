import { OperatorError } from '../../contract/error.js';
import { groupOf, keyOf } from '../../contract/object.js';
import type { Metrics } from '../../telemetry/metrics.js';
import type { Scope } from '../../client/api.js';
import { ApiError, askedDelay, GRANT } from '../../client/api-error.js';
import { compareResourceVersions } from './cache.js';
import { sleep } from '../../client/clock.js';
import type { Clock, Timer } from '../../client/clock.js';
import { MissingKind, SchemaChanges } from './installed.js';
import type { FollowedKind } from './installed.js';
import { backoffDelay, RETRY, WATCH } from '../../client/retry.js';
import { listPages, runWatch, STREAMED_LIST, StreamedList, WatchFailure } from './watch.js';
import type { CompleteList, ObjectEvent, Project, Pulse } from './watch.js';

export interface ReflectorProps extends FollowedKind {
  readonly metrics: Metrics;
  /** Names it in metrics; reflectors may share a name. */
  readonly label: string;
  /** Whether plans that name no object of the kind go on while it is doubtful what there is of it. @default false */
  readonly mayBeDoubtful?: boolean;
  /** Called with each complete list, once the store holds it. @default - not called */
  readonly onListed?: () => void;
  /** Called when a list shows an older state of the server, with the start of the list before. @default - not called */
  readonly onWentBack?: (listedBefore: number) => void;
}

/** Waiter for a list that was asked for at a moment or later, by the monotonic clock. */
interface Demand {
  readonly since: number;
  readonly met: () => void;
}

/** State of a reflector. */
type State =
  /** Waits for the next attempt, after a failure or at the start. */
  | { readonly is: 'pausing'; readonly failure?: Error }
  /** Asks for all objects, page by page. */
  | { readonly is: 'listing' }
  /** Asks for all objects as the first events of a watch. */
  | { readonly is: 'streaming'; readonly list: StreamedList }
  /** Has a complete list, or the version that an earlier watch has reached, and opens a watch. */
  | { readonly is: 'opening' }
  /** Watches, and may not have got what was missed before. */
  | { readonly is: 'catchingUp' }
  /** Watches, and has got everything: what the store lacks doesn't exist. */
  | { readonly is: 'following' };

/** Attempt to follow the kind. */
interface Attempt {
  /** Failure of the one before. */
  readonly after?: Error | undefined;
  /** Start of its list, by the monotonic clock; never, where it resumes a watch. */
  readonly since: number;
}

/**
 * Keeps a store equal to what the API server has of one type, in one namespace or in all. Every failure leads to another
 * attempt; a kind that is installed later, or removed and installed again, is followed from then on.
 */
export class Reflector {
  /** Reached once the kind is served and may be read, or is optional and isn't served. */
  readonly answered = new Milestone();
  private state: State = { is: 'pausing' };
  private current: Attempt = { since: -Infinity };
  private readonly listed = new Milestone();
  private readonly missing: MissingKind;
  private readonly schema: SchemaChanges;
  /** Version to resume the watch from: everything up to it was delivered. Without one, a list comes first. */
  private version: string | undefined;
  /** Time of the last event, bookmark or refusal of the server. */
  private readonly pulse: Pulse;

  /** Time at which the watch of this attempt was opened; never, before it is. */
  private openedAt = Infinity;
  /** Number of failures in a row. */
  private failures = 0;
  /** Whether a watch has lasted since the last 410, so that the next 410 doesn't count as a failure. */
  private hasWorked = true;
  /** Times of answers that the server is in trouble. */
  private trouble = { since: Infinity, last: -Infinity };

  private listDueAt = Infinity;
  /** Servers that don't stream lists are asked for pages; so is, once, one whose last streamed list never ended. */
  private pages: 'never' | 'next' | 'always' = 'never';
  /** Whether equal versions may be different objects, as after a restored backup or with another schema. */
  private doubtsVersions = false;
  /** Number of lists after a silent watch that show changes it hasn't delivered, since a watch has delivered something. */
  private missedChanges = 0;
  /** Time of the first list that was older than what was delivered. */
  private olderSince: number | undefined;

  private turn = new AbortController();
  private catchUp: Timer | undefined;
  private readonly demands = new Set<Demand>();
  /** Start of the last complete list. */
  private lastListStartedAt = -Infinity;

  constructor(private readonly props: ReflectorProps) {
    this.missing = new MissingKind(props);
    const onChange = (): void => {
      this.doubtsVersions = true;
      void this.presentSince(props.clock.monotonic(), new AbortController().signal);
    };
    this.schema = new SchemaChanges({ ...props, onChange });
    this.pulse = { heardAt: props.clock.monotonic() };
  }

  /** Name in metrics. */
  get label(): string {
    return this.props.label;
  }

  /** Whether a watch is open, or being opened. */
  get watches(): boolean {
    return !['pausing', 'listing'].includes(this.state.is);
  }

  /** Error of the last attempt, until the next begins. */
  get failure(): Error | undefined {
    return this.state.is === 'pausing' ? this.state.failure : undefined;
  }

  /** Reason why objects of the kind aren't known, although it may be installed; undefined while they are. */
  get doubtful(): string | undefined {
    return this.missing.doubtful;
  }

  /** Whether the store holds a complete list, or an optional kind isn't installed; it stays true from then on. */
  get synced(): boolean {
    return this.listed.isReached;
  }

  /** Resolves once it is. */
  get firstSync(): Promise<undefined> {
    return this.listed.reached;
  }

  /** Version up to which everything has been delivered. */
  get lastResourceVersion(): string | undefined {
    return this.version;
  }

  /** Returns for how long the server has sent neither data nor a refusal. @param now by the monotonic clock */
  silentForMilliseconds(now: number): number {
    return now - this.pulse.heardAt;
  }

  /**
   * Resolves once the store is as new as the API server was at that moment, by the monotonic clock, or as soon as the
   * signal aborts. Of a kind that isn't served, and of which nothing is known, nothing can be too old.
   *
   * It takes a list that was asked for then or later: versions can't tell, since those of an idle type are behind until
   * the next bookmark, and a connection may have gone silent.
   */
  async presentSince(moment: number, signal: AbortSignal): Promise<void> {
    if (this.lastListStartedAt >= moment || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const met = (): void => {
        this.demands.delete(demand);
        signal.removeEventListener('abort', met);
        resolve();
      };
      const demand = { since: moment, met };
      this.demands.add(demand);
      signal.addEventListener('abort', met);
      if (this.current.since < moment) this.turn.abort();
    });
  }

  /** Runs until the signal aborts, and never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    this.heard();
    const abort = (): void => {
      this.turn.abort();
    };
    signal.addEventListener('abort', abort);
    while (!signal.aborted) {
      this.turn = new AbortController();
      await this.attempt(this.turn.signal);
    }
    signal.removeEventListener('abort', abort);
  }

  /** Runs one session, and pauses after its failure. */
  private async attempt(signal: AbortSignal): Promise<void> {
    const { clock } = this.props;
    this.openedAt = Infinity;
    const failure = await this.session(clock.monotonic(), signal).then(
      () => undefined,
      (error: unknown) => error as Error,
    );
    // Not from the start of the attempt, which may have been held at the gate.
    if (clock.monotonic() - this.openedAt >= WATCH.worked) {
      this.failures = 0;
      this.hasWorked = true;
    }
    if (failure && !signal.aborted) await this.recover(failure, signal);
    this.current = { after: failure, since: -Infinity };
    this.state = { is: 'pausing' };
  }

  /** Runs one watch, from the version that was reached or from a full list on. */
  private async session(now: number, signal: AbortSignal): Promise<void> {
    const { api, scope } = this.props;
    if (this.version === undefined || this.demands.size > 0 || now >= this.listDueAt) {
      // If the list fails and the version is still good, the watch resumes from it, and the list is repeated after this.
      this.listDueAt = now + WATCH.listAgain;
      this.current = { ...this.current, since: now };
      if (this.pages === 'never' && (await this.streamList(signal))) return;
      if (this.pages === 'next') this.pages = 'never';
      this.state = { is: 'listing' };
      this.complete(await listPages(api, scope, this.project(), signal, this.heard));
    } else this.state = { is: 'opening' };
    await this.watch({ resourceVersion: this.version }, signal);
  }

  /** Lists, and goes on with changes. Returns false where the server doesn't stream lists. */
  private async streamList(signal: AbortSignal): Promise<boolean> {
    this.state = { is: 'streaming', list: new StreamedList(this.project()) };
    try {
      await this.watch(STREAMED_LIST, signal);
    } catch (error) {
      if (!this.isStreaming) throw error;
      // The feature is off, or unknown to the server.
      if (error instanceof ApiError && (error.code === 400 || error.code === 422)) {
        this.pages = 'always';
        return false;
      }
      const isOwn = error instanceof WatchFailure && ['outdated', 'unusable'].includes(error.kind);
      if (error instanceof ApiError || isOwn || this.openedAt === Infinity || signal.aborted) throw error;
      this.cutOff(error);
    }
    if (this.isStreaming && this.openedAt < Infinity && !signal.aborted) this.cutOff();
    return true;
  }

  private get isStreaming(): boolean {
    return this.state.is === 'streaming';
  }

  /** The server has accepted the request: what is between may cut such streams each time. */
  private cutOff(cause?: unknown): never {
    this.pages = 'next';
    throw new WatchFailure('listUnfinished', cause);
  }

  /** The same version of an object isn't worked through twice, so listing again what has hardly changed is cheap. */
  private project(): Project {
    const { store } = this.props;
    if (this.doubtsVersions) return (object) => store.project(object);
    return (object) => {
      const known = store.get(keyOf(object));
      const version = known?.object.metadata.resourceVersion;
      return known && version === object.metadata.resourceVersion ? known : store.project(object);
    };
  }

  private complete({ entries, resourceVersion }: CompleteList): void {
    const { store, scope, clock, random, metrics, label: name, log } = this.props;
    const now = clock.monotonic();
    const fields = { resource: scope.type.plural, watchNamespace: scope.namespace };
    if (store.hasPassed(resourceVersion, scope.namespace)) {
      this.olderSince ??= now;
      if (now - this.olderSince < WATCH.lag) throw new WatchFailure('outdated');
    }
    const { after } = this.current;
    const isAfterSilence = after instanceof WatchFailure && after.kind === 'silentFromStart';
    // Once may be a change between the watch and the list.
    if (isAfterSilence && this.hasChanged(entries) && ++this.missedChanges === 2) {
      const hint = 'Check for a proxy between the operator and the API server that holds watch events back';
      log.warn({ ...fields, hint }, 'watches deliver no events, so changes are found late, by lists');
    }
    if (store.replace(entries, resourceVersion, scope.namespace)) {
      const message = 'the API server went back to an older state, as after a restored backup';
      log.warn({ ...fields, resourceVersion }, message);
      this.props.onWentBack?.(this.lastListStartedAt);
    }
    this.doubtsVersions = false;
    this.olderSince = undefined;
    this.listDueAt = now + WATCH.listLifetime * (1 + random() / 10);
    this.version = resourceVersion;
    this.missing.served();
    this.markSynced();
    if (this.isStreaming) this.caughtUp();
    else this.state = { is: 'opening' };
    this.meetDemands();
    metrics.reflectorLists.inc({ name });
    metrics.reflectorListSeconds.observe({ name }, (now - this.current.since) / 1000);
    this.props.onListed?.();
  }

  private hasChanged(entries: CompleteList['entries']): boolean {
    return entries.some(({ object }) => {
      const known = this.props.store.get(keyOf(object));
      return known?.object.metadata.resourceVersion !== object.metadata.resourceVersion;
    });
  }

  private markSynced(): void {
    this.answered.reach();
    this.listed.reach();
  }

  /** The list that was asked for is complete, or there can't be any. */
  private meetDemands(): void {
    this.lastListStartedAt = this.current.since;
    for (const { since, met } of this.demands) if (this.lastListStartedAt >= since) met();
  }

  private readonly take = (event: ObjectEvent): void => {
    if (this.state.is === 'streaming') {
      const complete = this.state.list.take(event);
      if (complete) this.complete(complete);
      return;
    }
    const { type, object } = event;
    const { store, scope } = this.props;
    const { resourceVersion } = object.metadata;
    const order = compareResourceVersions(resourceVersion ?? '0', this.version ?? '0');
    this.missedChanges = 0;
    if (order >= 0) this.olderSince = undefined;
    if (type === 'BOOKMARK') {
      store.advance(resourceVersion, scope.namespace);
      this.caughtUp();
    } else if (type === 'DELETED') store.observedDeletion(object);
    // Versions only rise within a watch: what comes twice might bring back what has been deleted since.
    else if (order > 0) store.observed(object);
    if (order > 0 && resourceVersion) this.version = resourceVersion;
  };

  private async watch(
    query: Readonly<Record<string, string | undefined>>,
    signal: AbortSignal,
  ): Promise<void> {
    const { api, scope, clock, random, metrics, label: name, store } = this.props;
    const timeoutSeconds = Math.round(WATCH.lifetimeSeconds * (1 + random()));
    const opened = (): void => {
      this.heard();
      this.openedAt = this.pulse.heardAt;
      this.schema.opened(timeoutSeconds * 1000);
      metrics.reflectorWatches.inc({ name });
      this.answered.reach();
      if (this.state.is !== 'opening') return;
      // Until what was missed has arrived, each object that isn't known costs a request to make sure, which is little
      // for a second; waiting for the next bookmark would take a minute.
      this.state = { is: 'catchingUp' };
      this.catchUp = clock.setTimer(WATCH.caughtUp, () => {
        this.caughtUp();
      });
    };
    try {
      await runWatch({
        ...{ api, scope, clock, signal, opened, pulse: this.pulse, handle: this.take },
        query: { ...query, timeoutSeconds: String(timeoutSeconds) },
      });
    } finally {
      this.catchUp?.cancel();
      store.setFollowed(scope.namespace, false);
      this.schema.ended(signal.aborted);
    }
  }

  /** The open watch has delivered what was missed: from now on, what is missing in the store doesn't exist. */
  private caughtUp(): void {
    this.catchUp?.cancel();
    this.state = { is: 'following' };
    this.props.store.setFollowed(this.props.scope.namespace, true);
  }

  private readonly heard = (): void => {
    this.pulse.heardAt = this.props.clock.monotonic();
  };

  /** Waits before the next attempt. */
  private async recover(error: Error, signal: AbortSignal): Promise<void> {
    const { clock, metrics, label: name, optional, mayBeDoubtful } = this.props;
    if (error instanceof ApiError) this.heard();
    if (error instanceof WatchFailure && error.kind === 'short') metrics.reflectorShortWatches.inc({ name });
    if (this.mustRelist(error)) this.version = undefined;
    const isMissing = error instanceof ApiError && error.kindNotServed;
    // What is known of versions may come from before a backup was restored.
    this.doubtsVersions ||=
      isMissing ||
      isVersionTooLarge(error) ||
      (error instanceof WatchFailure && error.kind === 'silentFromStart');
    let delay: number;
    if (isMissing) {
      delay = await this.missing.notServed(error, signal);
      // Unless its state is in doubt, a kind that isn't served counts as listed.
      if (this.doubtful === undefined || mayBeDoubtful) {
        if (optional) this.markSynced();
        this.meetDemands();
      }
    } else {
      this.missing.unknown();
      delay = this.pauseAfter(error);
    }
    this.state = { is: 'pausing', failure: error };
    await sleep(clock, delay, signal);
  }

  private pauseAfter(error: Error): number {
    const { scope, log, random } = this.props;
    const asked = askedDelay(error);
    let delay: number;
    if (error instanceof ApiError && error.expired && this.hasWorked) {
      this.hasWorked = false;
      delay = backoffDelay(RETRY.watch, 0, random);
    } else {
      const backoff = asked > 0 ? RETRY.refusedWatch : RETRY.watch;
      delay = Math.max(backoffDelay(backoff, this.failures++, random), asked);
    }
    const level = this.isOrdinary(error) ? 'debug' : 'warn';
    log[level](
      {
        ...{ resource: scope.type.plural, watchNamespace: scope.namespace },
        ...{ error: error.message, hint: hintFor(error), retryMilliseconds: Math.round(delay) },
      },
      this.version === undefined
        ? 'watch failed, listing again'
        : 'watch failed, resuming from last resourceVersion',
    );
    return delay;
  }

  /** Reports whether a failure is one that a healthy API server has its clients meet. */
  private isOrdinary(error: Error): boolean {
    if (error instanceof ApiError)
      return error.storageInitializing && this.failures <= WATCH.initializingTries;
    if (!(error instanceof WatchFailure)) return false;
    // Logged once, until it is over or has lasted for too long.
    const { after } = this.current;
    if (error.kind === 'outdated') return after instanceof WatchFailure && after.kind === 'outdated';
    // A server has no bookmark to send while its cache of the type is at the version where the watch began.
    // https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/storage/cacher/cache_watcher.go (`process`)
    return error.kind === 'silent' || error.kind === 'silentFromStart';
  }

  /**
   * Reports whether a version that was reached is no longer one to go on from. The table is client-go's:
   *
   * | failure | consequence |
   * | --- | --- |
   * | the connection broke, 429, 503 | the same version again, since listing would make an overload worse |
   * | 500, 502, 504 | the same version again for half a minute, then a list |
   * | silence | the same version again, where anything had come; else a list |
   * | a list that is older than what was delivered | what was to be done before it |
   * | 410, version too large, anything else | a list |
   * @see https://github.com/kubernetes/client-go/blob/master/tools/cache/reflector.go
   */
  private mustRelist(error: Error): boolean {
    if (error instanceof WatchFailure) return error.kind === 'unusable' || error.kind === 'silentFromStart';
    if (!(error instanceof ApiError) || error.code === 429 || error.code === 503) return false;
    if (error.expired || ![500, 502, 504].includes(error.code) || isVersionTooLarge(error)) return true;
    const now = this.props.clock.monotonic();
    const isNew = now - this.trouble.last >= WATCH.troubleOver;
    this.trouble = { since: isNew ? now : this.trouble.since, last: now };
    return now - this.trouble.since >= WATCH.trouble;
  }
}

/** Reports whether an API server is behind the one that was asked before, or was restored from a backup. */
function isVersionTooLarge(error: Error): boolean {
  const causes = error instanceof ApiError ? (error.status.details?.causes ?? []) : [];
  return causes.some(({ reason }) => reason === 'ResourceVersionTooLarge');
}

/** Returns the remedy for a failure, for the log. */
function hintFor(error: Error): string | undefined {
  if (error instanceof ApiError) {
    if (error.code === 401) return 'The credentials are not accepted: check the kubeconfig';
    return error.code === 403 ? `The right to list and watch it is missing; ${GRANT}` : undefined;
  }
  // Errors of the network have a code; those of a kind's own functions don't.
  const cause = error instanceof WatchFailure && error.cause instanceof Error ? error.cause : error;
  const isUnanswered = cause instanceof OperatorError && cause.reason === 'Unreachable';
  const isSilent = [error, cause].some((one) => one instanceof WatchFailure && one.kind.startsWith('silent'));
  return isUnanswered || isSilent || 'code' in cause ? 'Check that the API server is reachable' : undefined;
}

/** Something that is reached once, and stays so. */
class Milestone {
  isReached = false;
  /** Resolves when it is. */
  readonly reached: Promise<undefined>;
  private readonly resolve: (value: undefined) => void;

  constructor() {
    ({ promise: this.reached, resolve: this.resolve } = Promise.withResolvers<undefined>());
  }

  reach(): void {
    this.isReached = true;
    this.resolve(undefined);
  }
}

/** Maximum number of namespaces with a label of their own in metrics. */
const NAMED_NAMESPACES = 25;

/** Names what a watch covers: `deployments.apps in shop`. */
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

/** Shows on each scrape how reflectors stand: of those that share a name, the one that is behind the furthest. */
export function measureReflectors(
  metrics: Metrics,
  clock: Clock,
  reflectors: readonly Pick<
    Reflector,
    'label' | 'watches' | 'silentForMilliseconds' | 'lastResourceVersion'
  >[],
): void {
  metrics.onScrape(() => {
    const now = clock.monotonic();
    for (const [name, all] of Map.groupBy(reflectors, ({ label }) => label)) {
      const silence = all.map((each) => (each.watches ? each.silentForMilliseconds(now) / 1000 : -1));
      metrics.watchSilenceSeconds.set({ name }, Math.max(...silence));
      const reached = Math.min(...all.map(({ lastResourceVersion = 0 }) => Number(lastResourceVersion)));
      metrics.reflectorLastResourceVersion.set({ name }, reached);
    }
  });
}
