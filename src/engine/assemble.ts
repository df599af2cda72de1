import type { Controller } from '../contract/controller.js';
import { Api } from './api.js';
import { Applier } from './apply.js';
import type { Tools } from './carry-out.js';
import type { Clock } from './clock.js';
import { connect } from './connect.js';
import { Deleter } from './deleter.js';
import { Elector } from './elector.js';
import { EventRecorder } from './events.js';
import { Fights } from './fights.js';
import { Leadership } from './leadership.js';
import type { ManagerProps } from './manager.js';
import { NodePorts } from './node-ports.js';
import { Refusals } from './refusals.js';
import { Runner } from './runner.js';
import type { ServerGate } from './server-gate.js';
import { ServerTime } from './server-time.js';
import { Settlements } from './settlements.js';
import { StatusWriter } from './status.js';
import { measureStores } from './store-metrics.js';
import { Stores } from './stores.js';
import type { Transport } from './transport.js';
import { Vanished } from './vanished.js';
import { Watching } from './watching.js';

/** What the manager starts, asks and stops. */
export interface Parts {
  readonly gate: ServerGate;
  readonly transport: Transport;
  readonly recorder: EventRecorder;
  readonly runners: readonly { readonly runner: Runner; readonly controller: Controller }[];
  readonly watching: Watching;
  readonly elector: Elector | undefined;
}

/** What nearly every part needs. */
type Common = Pick<ManagerProps, 'log' | 'metrics'> & {
  readonly api: Api;
  readonly clock: Clock;
  readonly random: () => number;
};

/** Makes the parts of an engine and joins them; nothing runs yet. */
export function assemble(props: ManagerProps, clock: Clock, random: () => number): Parts {
  const { controllers, log, metrics, instance, namespaces = [], maxWrites, workers = 16 } = props;
  const time = new ServerTime(clock);
  const { gate, transport } = connect({
    ...{ wire: props.transport, clock, random, log, metrics, time },
    // Asked once there is something to send. Without an election, nothing is ever held back.
    fence: { admits: (): boolean => elector?.admits() ?? true },
    ...(maxWrites !== undefined && { maxWrites }),
  });
  const common: Common = { api: new Api(transport), clock, random, log, metrics };
  const stores = new Stores({ perNamespace: namespaces.length > 0, freeze: props.freeze ?? false, log });
  const recorder = new EventRecorder({
    ...common,
    reportingController: 'kosmos.io/reconstruct',
    reportingInstance: instance,
  });
  const tools = toolsOf(common);
  const toolsFor = ({ name, kind }: Controller): Tools => {
    const forOne = { ...common, recorder, log: log.child({ controller: name, kind }) };
    return { ...tools, recorder, deleter: new Deleter(forOne) };
  };
  const runners = controllers.map((controller) => ({
    controller,
    runner: new Runner({
      controller,
      stores,
      tools: toolsFor(controller),
      clock,
      random,
      log,
      metrics,
      workers,
      time,
    }),
  }));
  const everyRunner = runners.map(({ runner }) => runner);
  gate.onChange((isUnreachable) => {
    for (const runner of everyRunner) runner.serverUnreachable(isUnreachable);
  });
  const watching = new Watching({
    ...{ ...common, stores, namespaces, controllers, runners: everyRunner },
    onWentBack: () => {
      leadership.wentBack(clock.monotonic());
    },
  });
  const candidates = runners.map(({ runner, controller }) => ({
    runner,
    watches: watching.of(controller),
  }));
  const leadership = new Leadership(candidates);
  const elector = electorOf(props, transport, common, leadership);
  if (!elector) leadership.gained(-Infinity);
  for (const { store, readOnly } of stores.all()) {
    if (readOnly) continue;
    store.onChange((before, after) => {
      tools.applier.changed(before, after);
    });
  }
  measureStores({ stores, controllers, metrics });
  return { gate, transport, recorder, runners, watching, elector };
}

/** What all controllers share. */
function toolsOf({ api, clock, metrics }: Common): Pick<Tools, 'applier' | 'statusWriter'> {
  const settlements = new Settlements();
  const applier = new Applier({
    ...{ api, settlements, refusals: new Refusals(clock), fights: new Fights(clock), metrics },
    ...{ vanished: new Vanished(clock), nodePorts: new NodePorts(clock) },
  });
  return { applier, statusWriter: new StatusWriter(api, settlements) };
}

function electorOf(
  { election, transport: wire }: ManagerProps,
  transport: Transport,
  { clock, random, log, metrics }: Common,
  leadership: Leadership,
): Elector | undefined {
  if (!election) return undefined;
  return new Elector({
    ...{ ...election, transport, clock, random, log, metrics },
    onLeading: (aloneSince) => {
      leadership.gained(aloneSince);
    },
    onLost: () => {
      // What was begun in this turn of the event loop is still here.
      wire.withdraw?.();
      leadership.lost();
    },
  });
}
