import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { Clock } from './clock.js';
import { fenced } from './fenced-transport.js';
import type { Fence } from './fenced-transport.js';
import { metered } from './metered-transport.js';
import { retried } from './retried-transport.js';
import { ServerGate } from './server-gate.js';
import { timed } from './server-time.js';
import type { ServerTime } from './server-time.js';
import type { Transport } from './transport.js';

export interface ConnectProps {
  /** The bare way to the API server. */
  readonly wire: Transport;
  readonly fence: Fence;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Where the server's clock is kept. */
  readonly time: ServerTime;
  /** Writes under way at once, at most. @default - that of `ServerGate` */
  readonly maxWrites?: number;
}

/**
 * Puts between the engine and the API server what every request passes, in this order: a second try where a connection
 * ended under the first, the gate, the meter, the fence, and an eye on the server's clock. So the second try waits at
 * the gate too, what has waited is fenced when it leaves, and what is measured is the server's time alone.
 */
export function connect(props: ConnectProps): { readonly transport: Transport; readonly gate: ServerGate } {
  const { wire, fence, clock, random, log, metrics, time, maxWrites } = props;
  const measured = metered(fenced(timed(wire, time, clock), fence, metrics), metrics, clock);
  const gate = new ServerGate({
    ...{ transport: measured, clock, random, log, metrics },
    ...(maxWrites !== undefined && { maxWrites }),
  });
  return { transport: retried(gate, metrics, clock), gate };
}
