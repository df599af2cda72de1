import type { Explanation } from '../../contract/explanation.js';
import { refOf } from '../../contract/object.js';
import type { StreamIngress } from './spec.js';
import { readinessOf } from './status.js';
import type { Findings } from './status.js';

/** Why a custom resource would not get what it asks for; nothing, where it would. */
export function explanationsOf(cr: StreamIngress, findings: Findings): Explanation[] {
  const { phase, reason, message } = readinessOf(cr, findings);
  if (phase !== 'stalled' && phase !== 'failing') return [];
  return [{ of: refOf(cr), summary: `would not be Ready: ${reason}: ${message}`, differs: false }];
}
