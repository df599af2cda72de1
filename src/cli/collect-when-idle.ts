import type { Clock } from '../engine/clock.js';

/** What `CollectWhenIdle` sees of the process, and does to it. */
export interface Memory {
  /** Processor time so far, in milliseconds. */
  cpuMilliseconds(): number;
  heapUsedBytes(): number;
  collect(): void;
}

const IDLE_CHECK_MILLISECONDS = 5_000;
/** Of the time between two checks. A settled controller needs a twentieth of this. */
const IDLE_SHARE = 0.02;
/** Less isn't worth a collection. */
const WORTH_COLLECTING_BYTES = 4 * 2 ** 20;

/**
 * Gives back what a start or a burst has left behind. V8 collects when somebody allocates, so a process that has
 * become idle would keep its garbage until there is work again.
 *
 * **Guarantees.** Nothing is collected while there is work, nor twice for the same garbage.
 */
export class CollectWhenIdle {
  private cpuBefore: number;
  private usedAfter = 0;

  constructor(private readonly memory: Memory) {
    this.cpuBefore = memory.cpuMilliseconds();
  }

  /** To be called every five seconds. */
  check(): void {
    const { memory } = this;
    const cpu = memory.cpuMilliseconds();
    const isIdle = cpu - this.cpuBefore < IDLE_SHARE * IDLE_CHECK_MILLISECONDS;
    this.cpuBefore = cpu;
    if (!isIdle || memory.heapUsedBytes() - this.usedAfter < WORTH_COLLECTING_BYTES) return;
    memory.collect();
    this.usedAfter = memory.heapUsedBytes();
    this.cpuBefore = memory.cpuMilliseconds();
  }
}

/** Checks from now on, where the process was started so that it can collect; doesn't keep it alive. */
export function collectWhenIdle(clock: Clock): void {
  const { gc } = globalThis;
  if (!gc) return;
  const collector = new CollectWhenIdle({
    cpuMilliseconds: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1000;
    },
    heapUsedBytes: () => process.memoryUsage().heapUsed,
    collect: () => {
      gc({ type: 'major', execution: 'sync', flavor: 'last-resort' });
    },
  });
  const again = (): void => {
    collector.check();
    clock.setTimer(IDLE_CHECK_MILLISECONDS, again);
  };
  clock.setTimer(IDLE_CHECK_MILLISECONDS, again);
}
