import { OperatorError } from '../contract/error.js';
import { objectId } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import { ApiError } from './api-error.js';
import type { Clock } from './clock.js';
import { REFUSAL_MILLISECONDS, refusalMilliseconds } from './refusals.js';

interface Refusal {
  readonly until: number;
  readonly error: OperatorError;
}

/** What we may not delete, so that it isn't asked for again and again. */
export class DeleteRefusals {
  /** By type and namespace; the one that is over first comes first, here and below. */
  private readonly byRight = new Map<string, Refusal>();
  /** By object and version. */
  private readonly byVersion = new Map<string, Refusal>();

  constructor(private readonly clock: Clock) {}

  find(object: AnyObject): OperatorError | undefined {
    for (const refusals of [this.byRight, this.byVersion]) this.forgetPast(refusals);
    return (this.byRight.get(rightId(object)) ?? this.byVersion.get(versionId(object)))?.error;
  }

  /** Returns the error as one that isn't retried in a loop, if it says that we may not; else the error as it is. */
  note(object: AnyObject, error: OperatorError): OperatorError {
    const { cause, reason, message, retry } = error;
    // A policy says so with 403 or, unless told otherwise, 422.
    if (!(cause instanceof ApiError) || (cause.code !== 403 && retry !== 'onChange')) return error;
    const refused = new OperatorError({ reason, message, cause, retry: 'onChange' });
    // Nothing tells that a right was granted, and an API server that has just begun to serve refuses everybody.
    if (cause.lacksRight)
      this.remember(this.byRight, rightId(object), refused, refusalMilliseconds([reason]));
    else this.remember(this.byVersion, versionId(object), refused, REFUSAL_MILLISECONDS);
    return refused;
  }

  private remember(
    refusals: Map<string, Refusal>,
    id: string,
    error: OperatorError,
    milliseconds: number,
  ): void {
    refusals.delete(id);
    refusals.set(id, { until: this.clock.monotonic() + milliseconds, error });
  }

  private forgetPast(refusals: Map<string, Refusal>): void {
    const now = this.clock.monotonic();
    for (const [id, { until }] of refusals) {
      if (until > now) break;
      refusals.delete(id);
    }
  }
}

function rightId(object: AnyObject): string {
  return `${groupKind(object)} in ${object.metadata.namespace ?? ''}`;
}

function versionId(object: AnyObject): string {
  const { uid = '', resourceVersion = '' } = object.metadata;
  return `${objectId(object)} ${uid} ${resourceVersion}`;
}
