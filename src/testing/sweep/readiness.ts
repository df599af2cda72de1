import { conditionOf } from './stand.js';
import type { LiveResource } from './stand.js';

/** How it fares, without words that name it. */
export function readinessOf(cr: LiveResource): object {
  return Object.fromEntries(
    ['Ready', 'Reconciling', 'Stalled'].map((type) => {
      const { status, reason } = conditionOf(cr, type) ?? {};
      return [type, `${status ?? 'absent'} ${reason ?? ''}`];
    }),
  );
}
