import { OperatorError } from '../contract/error.js';
import { objectId } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { ApiError } from './api-error.js';
import type { Clock } from './clock.js';
import { leastPause } from './pauses.js';
import { REFUSAL_MILLISECONDS } from './refusals.js';

/** How the API server says that the right itself is missing, and not that something objects to this one deletion. */
const NO_RIGHT = 'cannot delete resource';

interface Refusal {
  readonly until: number;
  readonly error: OperatorError;
}

/** What we may not delete, so that it isn't asked for again and again. */
export class DeleteRefusals {
  /** By type and namespace; those that are over tell how often it was asked for in vain. */
  private readonly rights = new Map<string, Refusal & { readonly milliseconds: number }>();
  /** By object and version; the one that is over first comes first. */
  private readonly versions = new Map<string, Refusal>();

  constructor(private readonly clock: Clock) {}

  find(object: AnyObject): OperatorError | undefined {
    const now = this.clock.monotonic();
    for (const [id, { until }] of this.versions) {
      if (until > now) break;
      this.versions.delete(id);
    }
    const right = this.rights.get(rightId(object));
    return right && now < right.until ? right.error : this.versions.get(versionId(object))?.error;
  }

  /** Returns the error as one that isn't retried in a loop, if it says that we may not; else the error as it is. */
  note(object: AnyObject, error: OperatorError): OperatorError {
    const { cause, reason, message, retry } = error;
    // A policy says so with 403 or, unless told otherwise, 422.
    if (!(cause instanceof ApiError) || (cause.code !== 403 && retry !== 'onChange')) return error;
    const refused = new OperatorError({ reason, message, cause, retry: 'onChange' });
    if (cause.status.message?.includes(NO_RIGHT)) this.noteRight(rightId(object), refused);
    else this.noteVersion(versionId(object), refused);
    return refused;
  }

  /**
   * Nothing tells that a right was granted. An API server that has just begun to serve takes nobody for allowed to do
   * anything, so the first such answer is believed least.
   */
  private noteRight(id: string, error: OperatorError): void {
    const now = this.clock.monotonic();
    const before = this.rights.get(id);
    const isRecent = before !== undefined && now < before.until + REFUSAL_MILLISECONDS;
    const milliseconds = isRecent
      ? Math.min(2 * before.milliseconds, REFUSAL_MILLISECONDS)
      : leastPause(error.reason);
    this.rights.set(id, { until: now + milliseconds, error, milliseconds });
  }

  private noteVersion(id: string, error: OperatorError): void {
    this.versions.delete(id);
    this.versions.set(id, { until: this.clock.monotonic() + REFUSAL_MILLISECONDS, error });
  }
}

function rightId(object: AnyObject): string {
  return `${groupKind(object)} in ${object.metadata.namespace ?? ''}`;
}

function versionId(object: AnyObject): string {
  const { uid = '', resourceVersion = '' } = object.metadata;
  return `${objectId(object)} ${uid} ${resourceVersion}`;
}
