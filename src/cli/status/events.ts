import type { AnyObject } from '../../contract/object.js';
import { resourceType } from '../../contract/resource.js';
import type { EventStatus } from './document.js';

export const eventType = resourceType({ apiVersion: 'events.k8s.io/v1', kind: 'Event' });

/** So many are told of each custom resource. */
const MOST = 5;

/** `events.k8s.io/v1`, as far as it is read. */
interface Event extends AnyObject {
  readonly type?: string;
  readonly reason?: string;
  readonly note?: string;
  readonly regarding?: { readonly kind?: string; readonly name?: string; readonly uid?: string };
  readonly eventTime?: string | null;
  readonly series?: { readonly count: number; readonly lastObservedTime: string } | null;
  readonly deprecatedCount?: number;
  readonly deprecatedLastTimestamp?: string | null;
}

/**
 * The last events of some objects: warnings first, then those of the custom resource, then the rest; of each the latest
 * first.
 * @param uid of the custom resource
 * @param regards whether an event is of one of the objects
 */
export function lastEvents(
  events: readonly AnyObject[],
  uid: string | undefined,
  regards: (regarding: NonNullable<Event['regarding']>) => boolean,
): EventStatus[] {
  const rank = ({ type, regarding }: Event): number =>
    type === 'Warning' ? 0 : regarding?.uid === uid ? 1 : 2;
  return (events as readonly Event[])
    .filter(({ regarding }) => regarding !== undefined && regards(regarding))
    .map((event) => ({ rank: rank(event), status: eventStatus(event) }))
    .sort((a, b) => a.rank - b.rank || Date.parse(b.status.at) - Date.parse(a.status.at))
    .slice(0, MOST)
    .map(({ status }) => status);
}

function eventStatus(event: Event): EventStatus {
  const { type = 'Normal', reason = '', note = '', regarding, series, deprecatedCount = 1 } = event;
  const last = series?.lastObservedTime ?? event.deprecatedLastTimestamp ?? event.eventTime;
  return {
    ...{ type, reason, note, count: series?.count ?? deprecatedCount },
    at: last ?? event.metadata.creationTimestamp ?? '',
    regarding: { kind: regarding?.kind ?? '', name: regarding?.name ?? '' },
  };
}
