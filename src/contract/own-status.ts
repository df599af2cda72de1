import { dateConditions, standardConditions } from './conditions.js';
import type { Readiness } from './conditions.js';
import { OperatorError } from './error.js';
import type { LiveResource } from './live-resource.js';
import { describeRef, refOf } from './object.js';
import { describeThrown } from './origin.js';
import type { StatusReport } from './status.js';

/** A report with the readiness that goes into the conditions. */
export type FullReport = StatusReport<object> & { readonly readiness: Readiness };

/** The API server drops what the schema doesn't list, without a word. @param known undefined where any field may be there */
export function requireKnownFields(fields: object, known: readonly string[] | undefined): void {
  const unknown = known && Object.keys(fields).find((field) => !known.includes(field));
  if (unknown === undefined) return;
  throw new Error(
    `it has a field ${unknown}, of which the schema knows nothing; add ${unknown}: { type: 'string' }, or whatever it is, to "status" of defineCrd, or to the properties of the status in the CRD`,
  );
}

/** What is written: the report, dated. */
export function statusOf(
  cr: LiveResource,
  { readiness, conditions = [], fields }: FullReport,
  now: Date,
): object {
  const { generation } = cr.metadata;
  const all = [...standardConditions(readiness), ...conditions];
  return {
    ...fields,
    ...(generation !== undefined && { observedGeneration: generation }),
    conditions: dateConditions(all, cr.status?.conditions ?? [], now, generation),
  };
}

/** What is missing now, as the status of a child that was made a moment ago, may be there at the next try. */
export function statusFailed(cr: LiveResource, thrown: unknown, besideFailure: boolean): OperatorError {
  return new OperatorError({
    reason: 'StatusFailed',
    message: `The status of ${describeRef(refOf(cr))} can't be computed: ${describeThrown(thrown)}`,
    // Beside another failure, that one says when to try again.
    retry: besideFailure ? 'onChange' : 'backoff',
    isBug: true,
    cause: thrown,
  });
}
