import type { Condition } from '../contract/conditions.js';
import type { Controller } from '../contract/controller.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { Store } from './store.js';
import type { Stores } from './stores.js';

/** Whoever may write a status mustn't make ever new series. */
const REASON_LIMIT = 50;

export interface StoreMetricsProps {
  readonly stores: Stores;
  readonly controllers: readonly Controller[];
  readonly metrics: Metrics;
}

/** Tells, when somebody asks, how many objects are in memory, and how the custom resources among them fare. */
export function measureStores({ stores, controllers, metrics }: StoreMetricsProps): void {
  // The first watch of a controller is of its custom resources; several controllers may have a kind.
  const ofResources = new Map(
    controllers.flatMap(({ watches: [first] }) =>
      first ? [[groupKind(first.type), stores.open(first)] as const] : [],
    ),
  );
  const reasons = new Map([...ofResources.keys()].map((type) => [type, new Set<string>()] as const));
  metrics.onScrape(() => {
    countObjects(stores, metrics);
    // What nothing is in any more isn't shown.
    metrics.customResources.reset();
    for (const [type, store] of ofResources) countResources(type, store, reasons.get(type), metrics);
  });
}

function countObjects(stores: Stores, metrics: Metrics): void {
  const sizes = new Map<string, number>();
  for (const { type, store } of stores.all())
    sizes.set(groupKind(type), (sizes.get(groupKind(type)) ?? 0) + store.size);
  for (const [type, size] of sizes) metrics.storeObjects.set({ type }, size);
}

function countResources(
  type: string,
  store: Store,
  known: Set<string> = new Set(),
  { customResources }: Metrics,
): void {
  for (const key of store.keys()) {
    const object = store.get(key)?.object;
    if (!object) continue;
    const { state, reason } = stateOf(object);
    if (known.size < REASON_LIMIT) known.add(reason);
    customResources.inc({ type, state, reason: known.has(reason) ? reason : 'other' });
  }
}

/** By its own conditions, as they were written last. */
function stateOf({ metadata, status }: AnyObject): { readonly state: string; readonly reason: string } {
  if (metadata.deletionTimestamp !== undefined) return { state: 'deleting', reason: '' };
  const { conditions = [] } = (status ?? {}) as { readonly conditions?: readonly Partial<Condition>[] };
  const of = (type: string): Partial<Condition> | undefined => conditions.find((one) => one.type === type);
  const ready = of('Ready');
  if (!ready) return { state: 'unseen', reason: '' };
  const { reason = '' } = ready;
  if (ready.status === 'True') return { state: 'ready', reason };
  if (of('Stalled')?.status === 'True') return { state: 'stalled', reason };
  return { state: ready.status === 'False' ? 'failing' : 'progressing', reason };
}
