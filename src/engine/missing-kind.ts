import { definitionName, definitionType, isBuiltIn } from '../contract/resource.js';
import type { CustomResourceDefinition } from '../contract/crd.js';
import type { ResourceType } from '../contract/resource.js';
import type { Logger } from '../telemetry/logger.js';
import { ApiError } from './api-error.js';
import type { Api, Scope } from './api.js';
import { backoffDelay } from './backoff.js';
import type { Clock } from './clock.js';
import type { Store, Unserved } from './store.js';
import { hintFor } from './watch-failure.js';

/** Half a minute at most, jitter included, so that a kind is in use soon after it was installed. */
const BACKOFF = { initialMilliseconds: 800, maxMilliseconds: 15_000, jitter: 1 };

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
    const delay = backoffDelay(BACKOFF, this.tries, random);
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
