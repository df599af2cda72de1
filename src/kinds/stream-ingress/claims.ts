import { objectKey } from '../../contract/object.js';
import { refusalOf } from './acceptance.js';
import type { Refusal } from './acceptance.js';
import type { StreamIngress } from './spec.js';
import type { Target } from './targets.js';
import { portText } from './upstream.js';

/** Who of one target's custom resources holds its port, and why the others don't. */
export interface Claims {
  /** By age, the oldest first. */
  readonly holders: readonly StreamIngress[];
  readonly refused: ReadonlyMap<StreamIngress, Refusal>;
}

/**
 * Gives each port and protocol of a target to the oldest that may have it; of two of an age, to the first by
 * `namespace/name`. What the admin doesn't allow holds nothing, and neither does what is being deleted; what only lacks
 * its upstream does.
 *
 * **Guarantees.** Independent of the order in which they come. What makes a claim can't be changed, so none becomes older
 * by an edit: a holder stays one until it goes, but for the caveat.
 *
 * **Caveats.** Age is what the API server has written, in whole seconds. Of the same second, one that comes later takes
 * the port where its name comes first; so does one that an API server dates whose clock is behind that of another.
 */
export function claimsOf(target: Target, all: readonly StreamIngress[]): Claims {
  const refused = new Map<StreamIngress, Refusal>();
  const holders = new Map<string, StreamIngress>();
  for (const cr of [...all].sort(byAge)) {
    if (cr.metadata.deletionTimestamp) continue;
    const port = portText(cr);
    const holder = holders.get(port);
    const refusal = refusalOf(target, cr) ?? (holder && conflict(cr, holder));
    if (refusal) refused.set(cr, refusal);
    else holders.set(port, cr);
  }
  return { holders: [...holders.values()], refused };
}

/** Oldest first. Times are whole seconds in UTC, so they compare as text; what has none was never stored. */
export function byAge(a: StreamIngress, b: StreamIngress): number {
  const [ageA, ageB] = [a, b].map(({ metadata }) => metadata.creationTimestamp ?? '9999');
  return compare(ageA ?? '', ageB ?? '') || compare(fullName(a), fullName(b));
}

export function fullName({ metadata: { namespace, name } }: StreamIngress): string {
  return objectKey(namespace, name);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Names the winner to its own namespace alone: what others run is none of the loser's business. */
function conflict(loser: StreamIngress, holder: StreamIngress): Refusal {
  const own = loser.metadata.namespace === holder.metadata.namespace;
  const who = own ? `StreamIngress ${holder.metadata.name}` : 'a StreamIngress of another namespace';
  return {
    reason: 'PortConflict',
    message: `${portText(loser)} is held by ${who}, which is older; it is opened for this one once that is gone, or take another port`,
  };
}
