import type { ServerGate } from './server-gate.js';

/** As much of a queue as is needed here. */
export interface Holdable {
  hold(reason: 'server'): void;
  release(reason: 'server'): void;
}

/** While the server is paused, nothing is begun that couldn't be finished. */
export function holdWhilePaused(gate: Pick<ServerGate, 'onChange'>, queues: readonly Holdable[]): void {
  let held = false;
  gate.onChange((pause) => {
    const hold = pause !== undefined;
    if (hold === held) return;
    held = hold;
    for (const queue of queues) {
      if (hold) queue.hold('server');
      else queue.release('server');
    }
  });
}
