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
 * The last events of some objects, the latest first.
 * @param regards whether an event is of one of them
 */
export function lastEvents(
  events: readonly AnyObject[],
  regards: (regarding: NonNullable<Event['regarding']>) => boolean,
): EventStatus[] {
  return (events as readonly Event[])
    .filter(({ regarding }) => regarding !== undefined && regards(regarding))
    .map(eventStatus)
    .sort((a, b) => Date.parse(b.at) - Date.parse(a.at))
    .slice(0, MOST);
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
