import type { Watch } from '../../../src/contract/controller.js';
import type { Conclusion, Plan } from '../../../src/contract/plan.js';
import { Api } from '../../../src/client/api.js';
import type { Transport } from '../../../src/client/transport.js';
import { EventRecorder } from '../../../src/engine/loop/events.js';
import type { Hand } from '../../../src/engine/plan/hand.js';
import { Memory } from '../../../src/engine/steps/memory.js';
import { StoreReader, Stores } from '../../../src/engine/watch/reader.js';
import { Metrics } from '../../../src/telemetry/metrics.js';
import { CONFIG_MAP, recordingLogger, WIDGET } from './builders.js';
import type { LogLine } from './builders.js';
import type { FakeApiServer } from './fake-api-server.js';
import { VirtualClock } from './virtual-clock.js';

const NEVER = new AbortController().signal;

/** A live hand on virtual time, before a fake API server. */
export interface Bench<Server extends Transport = FakeApiServer> {
  readonly server: Server;
  readonly clock: VirtualClock;
  readonly api: Api;
  readonly stores: Stores;
  readonly reader: StoreReader;
  readonly hand: Hand;
  readonly events: EventRecorder;
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
  const lines: LogLine[] = [];
  const metrics = new Metrics();
  const log = recordingLogger(lines);
  const by = { reportingController: 'kosmos.io/reconstruct', reportingInstance: 'pod-1' };
  const events = new EventRecorder({ api, clock, random: () => 0, log, metrics, ...by });
  const reader = StoreReader.open(watches, stores);
  for (const { store } of stores.all()) store.setFollowed(undefined, true);
  const hand: Hand = {
    ...{
      api,
      reader,
      writer: { controller: reader },
      memory: new Memory(clock),
      clock,
      events,
      metrics,
      log,
    },
    ...{ drift: 'correct', isDry: false, signal: NEVER, stopping: NEVER },
  };
  return { server, clock, api, stores, reader, hand, events, metrics, lines };
}

/** A plan of these steps, with what is given of a conclusion. */
export function plan({ steps = [], error, conclude, ...conclusion }: Partial<Plan & Conclusion> = {}): Plan {
  return {
    ...{ steps, conclude: conclude ?? (() => ({ status: [], events: [], ...conclusion })) },
    ...(error && { error }),
  };
}
