import { OperatorError } from '../contract/error.js';
import { objectId } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { ApiError } from './api-error.js';
import type { Clock } from './clock.js';
import { REFUSAL_MILLISECONDS } from './refusals.js';

/** How the API server says that the right itself is missing, and not that something objects to this one deletion. */
const NO_RIGHT = 'cannot delete resource';

interface Refusal {
  readonly until: number;
  readonly error: OperatorError;
}

/** What we may not delete, so that it isn't asked for again and again. */
export class DeleteRefusals {
  /** By type and namespace, or by object and version; the one that is over first comes first. */
  private readonly refusals = new Map<string, Refusal>();

  constructor(private readonly clock: Clock) {}

  find(object: AnyObject): OperatorError | undefined {
    const now = this.clock.monotonic();
    for (const [id, { until }] of this.refusals) {
      if (until > now) break;
      this.refusals.delete(id);
    }
    return (this.refusals.get(rightId(object)) ?? this.refusals.get(versionId(object)))?.error;
  }

  /** Returns the error as one that isn't retried in a loop, if it says that we may not; else the error as it is. */
  note(object: AnyObject, error: OperatorError): OperatorError {
    const { cause, reason, message, retry } = error;
    // A policy says so with 403 or, unless told otherwise, 422.
    if (!(cause instanceof ApiError) || (cause.code !== 403 && retry !== 'onChange')) return error;
    const refused = new OperatorError({ reason, message, cause, retry: 'onChange' });
    const id = cause.status.message?.includes(NO_RIGHT) ? rightId(object) : versionId(object);
    this.refusals.delete(id);
    this.refusals.set(id, { until: this.clock.monotonic() + REFUSAL_MILLISECONDS, error: refused });
    return refused;
  }
}

function rightId(object: AnyObject): string {
  return `${groupKind(object)} in ${object.metadata.namespace ?? ''}`;
}

function versionId(object: AnyObject): string {
  const { uid = '', resourceVersion = '' } = object.metadata;
  return `${objectId(object)} ${uid} ${resourceVersion}`;
}
