import type { ChangeSet } from '../../contract/change.js';
import type {
  ApplyStep,
  Controller,
  EventStep,
  Plan,
  Reader,
  Settle,
  Watch,
} from '../../contract/controller.js';
import { refOf } from '../../contract/object.js';
import type { ResourceType } from '../../contract/resource.js';
import { entryIn, notClosed, openings, portIn } from './openings.js';
import type { Entry, SharedState } from './openings.js';
import { KIND } from './spec.js';
import type { StreamIngress } from './spec.js';
import { isNginx, targetNamed } from './targets.js';
import type { Targets } from './targets.js';
import { resourcesOf, sharedStateIn, viewOf } from './view.js';
import type { View, Watches } from './view.js';
import { sharedSteps } from './writes.js';

const NOTHING: Plan = { apply: [], delete: [], status: [], events: [] };

/** How many custom resources are told of one failure, of those to be opened and of those to be closed. */
const TOLD = 10;

/**
 * Writes the ConfigMaps and the Service of each ingress-nginx: one apply for each object, of all that its custom
 * resources come to. A burst is waited out, since every change makes ingress-nginx load its configuration anew.
 */
export class SharedController implements Controller {
  readonly name = 'streamingress-targets';
  readonly kind = KIND;
  readonly settle: Settle = { quietMilliseconds: 1000, longestMilliseconds: 5000 };
  readonly watches: readonly Watch[];

  constructor(
    private readonly type: ResourceType,
    private readonly targets: Targets,
    { crs, services, targetServices, grants, configMaps }: Watches,
  ) {
    this.watches = [
      crs,
      services,
      ...targetServices.map((watch) => ({ ...watch, writes: ['patch'] as const })),
      ...grants,
      ...configMaps.map((watch) => ({ ...watch, writes: ['create', 'patch'] as const })),
    ];
  }

  reconcile(key: string, reader: Reader): Plan {
    const target = targetNamed(this.targets, key);
    if (!target || !isNginx(target)) return NOTHING;
    const view = viewOf(this.targets, target, resourcesOf(this.type, key, reader), reader, false);
    const state = sharedStateIn(target, reader);
    const { entries } = openings(target, view.claims.holders, (cr) => view.resolution(cr), state);
    const apply = sharedSteps(target, entries, state);
    const waiting = entries.filter((entry) => isWaiting(entry, state)).map(({ cr }) => cr);
    const closing = unwanted(view, entries).filter((cr) => notClosed(target, cr, entries, state));
    return { ...NOTHING, apply, events: failureEvents(apply, waiting, closing) };
  }
}

function isWaiting(entry: Entry, state: SharedState): boolean {
  return entryIn(entry, state)?.value !== entry.value || !portIn(entry, state);
}

/** Those for whom nothing is to be open, but for the losers, whose port is another one's. */
function unwanted({ claims }: View, entries: readonly Entry[]): StreamIngress[] {
  const wanted = new Set(entries.map(({ cr }) => cr));
  const refused = [...claims.refused].filter(([, { reason }]) => reason !== 'PortConflict');
  return [...claims.holders.filter((cr) => !wanted.has(cr)), ...refused.map(([cr]) => cr)];
}

/**
 * Told to those who wait for it; their status is written by another controller, from what is read back. Where the
 * Service is applied twice, it is first for those to be closed and last for those to be opened.
 */
function failureEvents(
  steps: readonly ApplyStep[],
  waiting: readonly StreamIngress[],
  closing: readonly StreamIngress[],
): EventStep[] {
  const services = steps.filter(({ object }) => object.kind === 'Service');
  const [first, last] = services.length > 1 ? [1, -1] : [0, undefined];
  return [
    ...eventsFor(waiting, 'Open', (changes) => changes.slice(first)),
    ...eventsFor(closing, 'Close', (changes) => changes.slice(0, last)),
  ];
}

function eventsFor(
  crs: readonly StreamIngress[],
  action: string,
  ofThose: (changes: ChangeSet) => ChangeSet,
): EventStep[] {
  return crs.slice(0, TOLD).map((cr) => ({
    regarding: { ...refOf(cr), uid: cr.metadata.uid ?? '' },
    event: (changes) => {
      const error = ofThose(changes).find((change) => change.error)?.error;
      return error && { type: 'Warning', reason: error.reason, action, note: error.message };
    },
  }));
}
