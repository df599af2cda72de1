import type { CustomResourceDefinition } from '../../contract/crd.js';
import type { AnyObject } from '../../contract/object.js';
import { definitionName, definitionType, isBuiltIn } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import type { Logger } from '../../telemetry/logger.js';
import { Api } from '../../client/api.js';
import type { ListPage, Scope } from '../../client/api.js';
import { ApiError } from '../../client/api-error.js';
import type { Store, Unserved } from './cache.js';
import type { Clock, ServerTime, Timer } from '../../client/clock.js';
import { backoffDelay, RETRY, WATCH } from '../../client/retry.js';
import type { ApiStream, Transport } from '../../client/transport.js';

/** A kind whose objects in one namespace, or in all, are kept in a store. */
export interface FollowedKind {
  readonly api: Api;
  readonly scope: Scope;
  readonly store: Store;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  /** Whether having no objects of it is enough to start while the kind isn't installed. @default false */
  readonly optional?: boolean;
  /** Called when it becomes doubtful what there is of the kind, and when it is known again. @default - not called */
  readonly onDoubt?: ((isDoubtful: boolean) => void) | undefined;
}

interface SchemaChangesProps extends Pick<FollowedKind, 'api' | 'scope' | 'clock'> {
  /** Called when objects may have changed although their versions haven't. */
  readonly onChange: () => void;
}

/**
 * Notices that a CRD has another schema: its objects are read with other defaults and without pruned fields then, and
 * their versions don't move. The API server ends the watches of the kind, so nothing is asked for unless one ends early.
 */
export class SchemaChanges {
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
    const timer = this.props.clock.setTimer(WATCH.schema, () => void this.ask(timer));
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

/** Answer to the first request for a type, for which the others wait. */
interface FirstAnswer {
  readonly missing: Promise<ApiError | undefined>;
  until: number;
}

/**
 * Api of the reflectors: what is asked of a type and not of its objects, is asked once for all who follow it.
 * Of a kind that isn't served, one request is sent at a time, and none within five seconds of the last.
 */
export class SharedApi extends Api {
  private readonly types = new Map<string, FirstAnswer>();
  private readonly answers = new Map<string, { readonly answer: Promise<unknown>; readonly until: number }>();

  constructor(
    transport: Transport,
    time: ServerTime,
    private readonly clock: Clock,
  ) {
    super(transport, time);
  }

  override async list(...args: Parameters<Api['list']>): Promise<ListPage> {
    return this.unlessMissing(args[0].type, async () => super.list(...args));
  }

  override async watch(...args: Parameters<Api['watch']>): Promise<ApiStream> {
    return this.unlessMissing(args[0].type, async () => super.watch(...args));
  }

  /** Reads a CRD, for `doubtOf`. */
  override async get(type: ResourceType, key: string): Promise<AnyObject> {
    return this.once(`${type.apiVersion} ${type.plural} ${key}`, async () => super.get(type, key));
  }

  override async schemaHash(apiVersion: string): Promise<string | undefined> {
    return this.once(apiVersion, async () => super.schemaHash(apiVersion));
  }

  private async once<T>(id: string, send: () => Promise<T>): Promise<T> {
    const now = this.clock.monotonic();
    const known = this.answers.get(id);
    if (known && now < known.until) return known.answer as Promise<T>;
    const answer = send();
    this.answers.set(id, { answer, until: now + WATCH.askedAgain });
    return answer;
  }

  private async unlessMissing<T>(type: ResourceType, send: () => Promise<T>): Promise<T> {
    const id = `${type.apiVersion} ${type.plural}`;
    const known = this.types.get(id);
    const isKnown = known && this.clock.monotonic() < known.until;
    const missing = isKnown ? await known.missing : undefined;
    if (missing) throw missing;
    const { promise, resolve } = Promise.withResolvers<ApiError | undefined>();
    const answer: FirstAnswer = { missing: promise, until: Infinity };
    if (!isKnown) this.types.set(id, answer);
    try {
      return await send();
    } catch (error) {
      if (error instanceof ApiError && error.kindNotServed) {
        answer.until = this.clock.monotonic() + WATCH.askedAgain;
        this.types.set(id, answer);
        resolve(error);
      }
      throw error;
    } finally {
      resolve(undefined);
    }
  }
}

/** Reason why a kind that isn't served may be installed all the same: with kind, version and remedy. */
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

/**
 * Decides what becomes of a watch whose kind the API server doesn't serve.
 * Its objects are gone once the API server has said that its CRD doesn't exist; until then what is known stays, and is doubtful.
 */
export class MissingKind {
  private tries = 0;
  private since: number | undefined;
  /** Whether a list was complete, or the CRD was read, since it was last known to be missing. */
  private wasInstalled = false;
  private doubt: Doubt | undefined;
  private readonly fields: object;

  constructor(private readonly props: FollowedKind) {
    const { type, namespace } = props.scope;
    this.fields = { resource: type.plural, watchNamespace: namespace };
  }

  /** Reason why it isn't known what there is of the kind; undefined while it is. */
  get doubtful(): string | undefined {
    return this.doubt?.why;
  }

  /** Returns after how many milliseconds to look again. */
  async notServed(error: ApiError, signal: AbortSignal): Promise<number> {
    const { random, log, optional, store, scope } = this.props;
    const delay = backoffDelay(RETRY.missingKind, this.tries, random);
    if (store.unservedIn(scope.namespace) !== 'missing') await this.judge(error, signal);
    const isExpected = optional && !this.wasInstalled;
    log[this.tries++ > 0 ? 'debug' : isExpected ? 'info' : 'warn'](
      {
        ...{ ...this.fields, error: this.doubtful ?? error.message },
        ...(!isExpected &&
          this.doubt?.crd !== 'installed' && {
            hint: 'Install the CRD of this kind: `reconstruct install --apply` does, or `kubectl apply` of its file',
          }),
        retryMilliseconds: Math.round(delay),
      },
      isExpected
        ? 'the kind is not installed; it is not needed, and will be used once it is there'
        : 'the kind is not served, will look for it again',
    );
    return delay;
  }

  /** Notes that the API server couldn't be asked. */
  unknown(): void {
    this.since = undefined;
  }

  /** A complete list has come. */
  served(): void {
    if (this.tries > 0) this.props.log.info(this.fields, 'the kind is served now');
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
    const isOld = clock.monotonic() - this.since >= WATCH.neverSeen;
    this.wasInstalled ||= doubt?.crd === 'installed';
    if (doubt && (doubt.crd !== 'unreadable' || this.wasInstalled || !isOld)) {
      this.set('doubtful', doubt);
      return;
    }
    this.set('missing');
    if (!this.wasInstalled) return;
    this.wasInstalled = false;
    log.warn({ ...this.fields, objects: store.size }, 'the kind has been removed, and its objects with it');
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
}
