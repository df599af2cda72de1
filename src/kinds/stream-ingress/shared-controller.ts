import type { Controller, EventStep, Plan, Reader, Settle, Watch } from '../../contract/controller.js';
import { refOf } from '../../contract/object.js';
import type { ResourceType } from '../../contract/resource.js';
import type { Entry } from './entry.js';
import { entryIn, openings, portIn } from './openings.js';
import type { SharedState } from './openings.js';
import { sharedSteps } from './shared-steps.js';
import { KIND } from './spec.js';
import { isNginx, targetNamed } from './targets.js';
import type { Targets } from './targets.js';
import { resourcesOf, sharedStateIn, viewOf } from './view.js';
import type { Watches } from './watches.js';

const NOTHING: Plan = { apply: [], delete: [], status: [], events: [] };

/** How many custom resources are told of one failure. */
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
    return {
      ...NOTHING,
      apply: sharedSteps(target, entries, state),
      events: failureEvents(entries, state),
    };
  }
}

/** Told to those who wait for it; their status is written by another controller, from what is read back. */
function failureEvents(entries: readonly Entry[], state: SharedState): EventStep[] {
  const waiting = entries.filter(
    (entry) => entryIn(entry, state)?.value !== entry.value || !portIn(entry, state),
  );
  return waiting.slice(0, TOLD).map(({ cr }) => ({
    regarding: { ...refOf(cr), uid: cr.metadata.uid ?? '' },
    event: (changes) => {
      const error = changes.find((change) => change.error)?.error;
      return error && { type: 'Warning', reason: error.reason, action: 'Open', note: error.message };
    },
  }));
}
