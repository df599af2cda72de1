import type { ObjectPreview } from '../../engine/preview/preview.js';
import { fieldChanges } from './fields.js';
import { differs } from './outcome.js';
import type { Outcome } from './outcome.js';
import { shown } from './redacted.js';

/** For programs: one document, which names every object, also those that would stay as they are. */
export function jsonOf(outcome: Outcome): string {
  const { objects, explanations } = outcome;
  const document = { differs: differs(outcome), objects: objects.map(objectOf), explanations };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

function objectOf(object: ObjectPreview): object {
  const { ref, action, error, takes, leaves } = object;
  const { before, after } = shown(object);
  return {
    ...ref,
    action,
    ...(action === 'changed' && { fields: fieldChanges(before, after) }),
    ...((action === 'created' || action === 'recreated') && after && { object: after }),
    ...(error && { reason: error.reason, message: error.message }),
    ...(takes.length > 0 && { takes }),
    ...(leaves.length > 0 && { leaves }),
  };
}
