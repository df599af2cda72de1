import { objectKey } from '../contract/object.js';
import type { Logger } from '../telemetry/logger.js';
import { ApiError, askedDelay } from './api-error.js';
import type { Api, Scope } from './api.js';
import { backoffDelay } from './backoff.js';
import { sleep } from './clock.js';
import type { Clock } from './clock.js';
import { SilenceLimit } from './silence-limit.js';
import type { Entry, Store } from './store.js';
import { watchEvents } from './watch-events.js';
import type { WatchEvent } from './watch-events.js';
import { hintFor, mustRelist, refusesRequest, SilentWatch } from './watch-failure.js';

/** The numbers of client-go's reflector. @see https://github.com/kubernetes/client-go/blob/master/tools/cache/reflector.go */
const BACKOFF = { initialMilliseconds: 800, maxMilliseconds: 30_000, jitter: 1 };
const HEALTHY_AFTER_MILLISECONDS = 120_000;
/** A watch that ends sooner than this without an event has failed, whatever it says: some proxy closes at once. */
const SHORT_WATCH_MILLISECONDS = 1_000;
/** Watches end by themselves after 5 to 10 minutes, so that load moves to API servers that were added since. */
const WATCH_LIFETIME_SECONDS = 300;

const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** Where a reflector stands. */
export type ReflectorState =
  /** Getting all objects, at first or anew; what was known before is served meanwhile. */
  | { readonly phase: 'listing' }
  /** Following changes from this version on. */
  | { readonly phase: 'watching'; readonly resourceVersion: string }
  /** After a failure, until the next attempt; with a version it goes on watching from there, without listing. */
  | { readonly phase: 'waiting'; readonly error: Error; readonly resourceVersion?: string };

export interface ReflectorProps {
  readonly api: Api;
  readonly scope: Scope;
  readonly store: Store;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

/**
 * Keeps a store equal to what the API server has of one type, in one namespace or in all.
 *
 * **Guarantees.** It never gives up and never goes silent: every failure leads to another attempt, and a
 * connection that delivers nothing for 75 s is replaced. The store changes only to a state that the server was in.
 *
 * **Assumptions.** The API server sends bookmarks (Kubernetes 1.34 or newer).
 */
export class Reflector {
  state: ReflectorState = { phase: 'listing' };
  /** The store holds a complete list; it stays true from then on. */
  synced = false;
  /** Resolves once it is. */
  readonly firstSync: Promise<undefined>;
  private readonly resolveFirstSync: () => void;
  /** Servers that don't stream lists are asked for pages. */
  private streamsLists = true;
  private failures = 0;

  constructor(private readonly props: ReflectorProps) {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    this.firstSync = promise;
    this.resolveFirstSync = () => {
      resolve(undefined);
    };
  }

  /** Runs until the signal aborts, and never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    let resourceVersion: string | undefined;
    while (!signal.aborted) {
      const startedAt = this.props.clock.now();
      try {
        resourceVersion = await this.session(resourceVersion, signal);
        if (this.props.clock.now() - startedAt >= HEALTHY_AFTER_MILLISECONDS) this.failures = 0;
      } catch (error) {
        resourceVersion = await this.recover(error as Error, startedAt, signal);
      }
    }
  }

  /** One watch, from the version given or from a full list on. Returns the version to go on from. */
  private async session(resourceVersion: string | undefined, signal: AbortSignal): Promise<string> {
    if (resourceVersion !== undefined) return this.follow(resourceVersion, signal);
    this.state = { phase: 'listing' };
    if (!this.streamsLists) return this.follow(await this.listPages(signal), signal);
    try {
      return await this.streamList(signal);
    } catch (error) {
      // The feature is off, or unknown to the server.
      if (!refusesRequest(error) || this.standsAt() !== undefined) throw error;
      this.streamsLists = false;
      return this.follow(await this.listPages(signal), signal);
    }
  }

  private async listPages(signal: AbortSignal): Promise<string> {
    const { api, scope, store } = this.props;
    const entries: Entry[] = [];
    let continueToken: string | undefined;
    for (;;) {
      const page = await api.list(scope, continueToken, signal);
      for (const item of page.items) entries.push(store.project(item));
      continueToken = page.continueToken;
      if (continueToken) continue;
      this.complete(entries, page.resourceVersion);
      return page.resourceVersion;
    }
  }

  /**
   * The whole list as events, ended by an annotated bookmark, after which the same stream goes on with changes.
   * @see https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists
   */
  private async streamList(signal: AbortSignal): Promise<string> {
    const { store } = this.props;
    const entries = new Map<string, Entry>();
    return this.watch(
      { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' },
      signal,
      (event) => {
        if (this.state.phase === 'watching') return this.change(event);
        const { namespace, name, annotations, resourceVersion } = event.object.metadata;
        if (event.type === 'BOOKMARK') {
          if (!annotations?.[INITIAL_EVENTS_END] || resourceVersion === undefined) return undefined;
          this.complete([...entries.values()], resourceVersion);
          entries.clear();
          return resourceVersion;
        }
        // What happens between the server's snapshot and the version that the list has to reach comes as changes.
        if (event.type === 'DELETED') entries.delete(objectKey(namespace, name));
        else entries.set(objectKey(namespace, name), store.project(event.object));
        // The initial events come unordered, so none of their versions is one to go on from.
        return undefined;
      },
    );
  }

  private complete(entries: readonly Entry[], resourceVersion: string): void {
    this.props.store.replace(entries, resourceVersion, this.props.scope.namespace);
    this.synced = true;
    this.props.store.setFollowed(this.props.scope.namespace, true);
    this.resolveFirstSync();
    this.state = { phase: 'watching', resourceVersion };
  }

  private async follow(resourceVersion: string, signal: AbortSignal): Promise<string> {
    this.state = { phase: 'watching', resourceVersion };
    return this.watch({ resourceVersion }, signal, (event) => this.change(event));
  }

  private change(event: Exclude<WatchEvent, { type: 'ERROR' }>): string | undefined {
    const { store, scope } = this.props;
    switch (event.type) {
      case 'ADDED':
      case 'MODIFIED':
        store.observed(event.object);
        break;
      case 'DELETED':
        store.observedDeletion(event.object);
        break;
      case 'BOOKMARK':
        store.advance(event.object.metadata.resourceVersion, scope.namespace);
        break;
    }
    return event.object.metadata.resourceVersion;
  }

  /** Reads one watch to its end, under the silence limit. Returns the last version that `handle` returned. */
  private async watch(
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
    handle: (event: Exclude<WatchEvent, { type: 'ERROR' }>) => string | undefined,
  ): Promise<string> {
    const { api, scope, store, clock, random } = this.props;
    const startedAt = clock.now();
    const silence = new SilenceLimit(clock, signal);
    let events = 0;
    try {
      const timeoutSeconds = String(Math.round(WATCH_LIFETIME_SECONDS * (1 + random())));
      const { chunks } = await api.watch(scope, { ...query, timeoutSeconds }, silence.signal);
      if (this.state.phase === 'watching') store.setFollowed(scope.namespace, true);
      for await (const event of watchEvents(silence.heard(chunks))) {
        if (event.type === 'ERROR')
          throw new ApiError(`Watch ${scope.type.plural}`, {
            status: event.object.code ?? 500,
            body: event.object,
          });
        events++;
        const resourceVersion = handle(event);
        if (resourceVersion) this.state = { phase: 'watching', resourceVersion };
      }
    } catch (error) {
      throw silence.expired ? new SilentWatch(events, error) : error;
    } finally {
      store.setFollowed(scope.namespace, false);
      silence.end();
    }
    if (events === 0 && clock.now() - startedAt < SHORT_WATCH_MILLISECONDS)
      throw new Error('The watch ended at once');
    const resourceVersion = this.standsAt();
    if (resourceVersion === undefined) throw new Error('The watch ended within the list');
    return resourceVersion;
  }

  /** The version that changes are followed from, once there is one. */
  private standsAt(): string | undefined {
    return this.state.phase === 'watching' ? this.state.resourceVersion : undefined;
  }

  /** Waits before the next attempt. Returns the version to go on from, or nothing where it has to list again. */
  private async recover(error: Error, startedAt: number, signal: AbortSignal): Promise<string | undefined> {
    if (signal.aborted) return undefined;
    const { clock, random, scope, log } = this.props;
    const goOnFrom = mustRelist(error) ? undefined : this.standsAt();
    if (clock.now() - startedAt >= HEALTHY_AFTER_MILLISECONDS) this.failures = 0;
    const backoff = backoffDelay(BACKOFF, this.failures, random);
    const delay = Math.max(backoff, askedDelay(error));
    this.failures++;
    this.state = { phase: 'waiting', error, ...(goOnFrom !== undefined && { resourceVersion: goOnFrom }) };
    log.warn(
      {
        resource: scope.type.plural,
        watchNamespace: scope.namespace,
        error: error.message,
        hint: hintFor(error),
        retryMilliseconds: Math.round(delay),
      },
      goOnFrom === undefined ? 'Watch failed, will list again' : 'Watch failed, will go on',
    );
    await sleep(clock, delay, signal);
    return goOnFrom;
  }
}
