import type { Action, Change } from '../../contract/change.js';
import { describeRef } from '../../contract/object.js';
import type { ObjectRef } from '../../contract/object.js';
import type { ObjectPreview } from '../../engine/preview/object-preview.js';

const SAYING: Readonly<Record<Action, string>> = {
  ...{ created: 'created', configured: 'configured', corrected: 'configured', unchanged: 'unchanged' },
  ...{ recreated: 'deleted and made anew', deleted: 'pruned', failed: 'refused' },
  skipped: 'left as it is, since something before it failed',
};

/** What has become of an object, in a line. */
export function lineOf({ ref, action, error }: Change): string {
  const why = error ? `: ${error.reason}: ${error.message}` : '';
  return `${describeRef(ref)} ${SAYING[action]}${why}`;
}

/** Of one that nobody makes any more. */
export function keptLine(ref: ObjectRef): string {
  return `${describeRef(ref)} left as it is: it isn't rendered any more, and --prune deletes it`;
}

/** Why an object can't be had, as its dry run has shown. */
export function refusalLine({ ref, error }: ObjectPreview): string {
  return `${describeRef(ref)} would be refused: ${error ? `${error.reason}: ${error.message}` : ''}`;
}
