import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { Api, Scope } from '../client/api.js';
import { sleep } from '../client/clock.js';
import type { Clock } from '../client/clock.js';

/** Lists the objects of a scope; of Secrets, the metadata alone. @throws ApiError */
export type List = (scope: Scope) => Promise<readonly AnyObject[]>;

/** Returns a list function for one look, which asks for each scope once. */
export function lister(api: Api, signal?: AbortSignal): List {
  const listed = new Map<string, Promise<readonly AnyObject[]>>();
  return (scope) => {
    const id = JSON.stringify(scope);
    const metadataOnly = groupKind(scope.type) === 'Secret';
    const objects = listed.get(id) ?? api.listAll({ ...scope, metadataOnly }, signal);
    listed.set(id, objects);
    return objects;
  };
}

/** Interval between looks. */
const POLL_MILLISECONDS = 1_000;
/** Maximum share of the time that is spent on looks, so that large clusters are asked less often. */
const BUSY_SHARE = 0.2;

interface FollowProps<T> {
  readonly api: Api;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly look: (list: List) => Promise<T>;
  /** Called when a look fails, before the next one. @default - the first failure ends it, later ones are retried */
  readonly onFailed?: (error: unknown) => void;
}

/**
 * Looks every second until the signal aborts. Lists come from the API server's cache, and need no right to watch.
 * @throws what `look` throws the first time, unless there is `onFailed`
 */
export async function* follow<T>(props: FollowProps<T>): AsyncGenerator<T> {
  const { api, clock, signal, onFailed } = props;
  const isOver = (): boolean => signal.aborted;
  for (let isFirst = true; !isOver(); isFirst = false) {
    const began = clock.monotonic();
    try {
      const seen = await props.look(lister(api, signal));
      if (!isOver()) yield seen;
    } catch (error) {
      if (isOver()) return;
      if (isFirst && !onFailed) throw error;
      onFailed?.(error);
    }
    const took = clock.monotonic() - began;
    await sleep(clock, Math.max(POLL_MILLISECONDS, took / BUSY_SHARE - took), signal);
  }
}
