import type { Change } from '../../../src/contract/change.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { Api } from '../../../src/client/api.js';
import type { OwnStep, Step } from '../../../src/contract/plan.js';
import type { Hand } from '../../../src/engine/plan/hand.js';
import { handlersOf, interpret } from '../../../src/engine/plan/interpret.js';
import { Memory } from '../../../src/engine/steps/memory.js';
import { share } from '../../../src/engine/steps/share.js';
import type { ShareStep } from '../../../src/engine/steps/share.js';
import { silentLogger } from '../../../src/telemetry/logger.js';
import { plan } from './bench.js';
import { StoreReader, Stores } from '../../../src/engine/watch/reader.js';
import { Metrics } from '../../../src/telemetry/metrics.js';
import { anObject, applied, DEPLOYMENT, MANAGER, ownedBy, SERVICE, widget, WIDGET } from './builders.js';
import { FakeApiServer } from './fake-api-server.js';
import { VirtualClock } from './virtual-clock.js';

export const OWNER = ownedBy('web');

export function deployment(replicas = 1, container: object = {}): AnyObject {
  const containers = [{ name: 'web', image: 'nginx', ...container }];
  const template = { metadata: { labels: { app: 'web' } }, spec: { containers } };
  const spec = { replicas, selector: { matchLabels: { app: 'web' } }, template };
  return anObject(DEPLOYMENT, 'web', { labels: { app: 'web' } }, { spec });
}

export const step = (object = deployment(), owner = OWNER): OwnStep => ({
  ...({ do: 'own', object, fieldManager: MANAGER } as const),
  owner,
});
export const shared = (object = deployment()): ShareStep => ({
  ...({ do: 'engine/share', object, fieldManager: MANAGER } as const),
});

export interface Setup {
  readonly server: FakeApiServer;
  readonly clock: VirtualClock;
  readonly reader: StoreReader;
  readonly metrics: Metrics;
  readonly hand: Hand;
  readonly apply: (what?: Step) => Promise<Change>;
  readonly prune: (object: AnyObject) => Promise<Change>;
  /** The watch delivers what the server has. */
  readonly sync: () => void;
  readonly last: () => { body: AnyObject; query: Readonly<Record<string, string>> };
}

export function newSetup(server = new FakeApiServer()): Setup {
  const clock = new VirtualClock();
  const stores = new Stores({ perNamespace: false, freeze: true });
  const reader = StoreReader.open(
    [DEPLOYMENT, SERVICE, WIDGET].map((type) => ({ type, mapsTo: () => [] })),
    stores,
    'widget',
  );
  const metrics = new Metrics();
  const memory = new Memory(clock);
  for (const { store } of stores.all()) {
    store.setFollowed(undefined, true);
    store.onChange((before, after) => {
      if (before && !after) memory.gone(before);
    });
  }
  const never = new AbortController().signal;
  const hand: Hand = {
    ...{
      api: new Api(server),
      reader,
      memory,
      clock,
      metrics,
      log: silentLogger,
      drift: 'correct',
      writer: { controller: reader },
      isDry: false,
    },
    ...{ events: { send: () => undefined }, signal: never, stopping: never },
  };
  const handlers = handlersOf([share]);
  const apply = async (what: Step = step()): Promise<Change> =>
    (await interpret(plan({ steps: [what] }), hand, handlers)).changes[0]!;
  return {
    ...{ server, clock, reader, metrics, hand, apply },
    prune: async (object) => apply({ do: 'prune', object }),
    sync: () => {
      const live = server.get(DEPLOYMENT, 'shop/web');
      if (live) reader.store(DEPLOYMENT).observed(live);
    },
    last: () => server.requests.at(-1) as never,
  };
}

/** The server has the owner, too. */
export function putOwner({ server }: Setup): void {
  server.put(WIDGET, widget('web'));
}

/** A setup whose Deployment was applied and is as it should be. */
export async function settledSetup(): Promise<Setup> {
  const setup = newSetup();
  await setup.apply();
  setup.server.requests.length = 0;
  return setup;
}

/** Somebody changes the live object; `owned` is what is left to us. */
export function edit(setup: Setup, change: (live: AnyObject) => AnyObject, owned?: object): void {
  const live = setup.server.get(DEPLOYMENT, 'shop/web')!;
  const managedFields = owned
    ? [applied(MANAGER, owned, 'apps/v1')]
    : (live.metadata as { managedFields?: object[] }).managedFields;
  const edited = change(live);
  setup.server.put(DEPLOYMENT, { ...edited, metadata: { ...edited.metadata, managedFields } as never });
  setup.sync();
}
