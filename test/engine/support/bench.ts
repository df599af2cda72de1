import type { Plan, Watch } from '../../../src/contract/controller.js';
import { Api } from '../../../src/client/api.js';
import { LastApplies } from '../../../src/engine/steps/apply-state.js';
import { Applier } from '../../../src/engine/steps/apply.js';
import type { Tools } from '../../../src/engine/plan/carry-out.js';
import { Sweeper } from '../../../src/engine/steps/delete.js';
import { Deletions } from '../../../src/engine/watch/deletions.js';
import { EventRecorder } from '../../../src/engine/loop/events.js';
import { StatusWriter } from '../../../src/engine/steps/status.js';
import { StoreReader, Stores } from '../../../src/engine/watch/cache.js';
import type { Transport } from '../../../src/client/transport.js';
import { Metrics } from '../../../src/telemetry/metrics.js';
import { CONFIG_MAP, recordingLogger, WIDGET } from './builders.js';
import type { LogLine } from './builders.js';
import type { FakeApiServer } from './fake-api-server.js';
import { VirtualClock } from './virtual-clock.js';

/** Every tool of the engine on virtual time, before a fake API server. */
export interface Bench<Server extends Transport = FakeApiServer> {
  readonly server: Server;
  readonly clock: VirtualClock;
  readonly api: Api;
  readonly stores: Stores;
  readonly reader: StoreReader;
  readonly tools: Tools;
  readonly metrics: Metrics;
  readonly lines: LogLine[];
}

export const WATCHES: readonly Watch[] = [
  { type: WIDGET, keep: (object) => object, mapsTo: () => [] },
  { type: CONFIG_MAP, mapsTo: () => [] },
];

export function newBench<Server extends Transport>(server: Server, watches = WATCHES): Bench<Server> {
  const clock = new VirtualClock();
  const api = new Api(server);
  const stores = new Stores({ perNamespace: false, freeze: true });
  const lastApplies = new LastApplies();
  const lines: LogLine[] = [];
  const metrics = new Metrics();
  const recorder = new EventRecorder({
    api,
    clock,
    random: () => 0,
    log: recordingLogger(lines),
    metrics,
    reportingController: 'kosmos.io/reconstruct',
    reportingInstance: 'pod-1',
  });
  const applier = new Applier({ api, clock, lastApplies, metrics });
  const sweeper = new Sweeper({ api, clock, recorder, log: recordingLogger(lines) });
  const tools = { api, applier, sweeper, statusWriter: new StatusWriter(api, lastApplies), recorder };
  const reader = StoreReader.open(watches, stores, { deletions: new Deletions(clock) });
  for (const { store } of stores.all()) store.setFollowed(undefined, true);
  return { server, clock, api, stores, reader, tools, metrics, lines };
}

export function plan(parts: Partial<Plan>): Plan {
  return { apply: [], delete: [], status: [], events: [], ...parts };
}
