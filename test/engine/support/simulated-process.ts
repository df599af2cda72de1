import type { Clock, Timer } from '../../../src/client/clock.js';
import type { ApiRequest, ApiResponse, Transport } from '../../../src/client/transport.js';
import type { VirtualClock } from './virtual-clock.js';

export interface SimulatedProcessProps {
  /** The time that really is. */
  readonly world: VirtualClock;
  /** How far its wall clock is off, in milliseconds. */
  readonly skew: number;
  /** How fast its clocks run: 1 is right. */
  readonly rate: number;
}

/**
 * A process on a machine of its own, as far as time goes: its clocks are off and run too fast or too slow, and it may be
 * stopped. While it is, neither timers nor answers reach it; afterwards all do at once.
 */
export class SimulatedProcess implements Clock {
  private readonly startedAt: number;
  private skew: number;
  private suspended = 0;
  private stopped = false;
  private late: (() => void)[] = [];

  constructor(private readonly props: SimulatedProcessProps) {
    this.startedAt = props.world.monotonic();
    this.skew = props.skew;
  }

  now(): number {
    return this.startedAt + this.age() + this.skew;
  }

  /** Stands still while the machine is suspended. */
  monotonic(): number {
    return this.age() - this.suspended;
  }

  setTimer(delayMilliseconds: number, callback: () => void): Timer {
    let cancelled = false;
    const timer = this.props.world.setTimer(delayMilliseconds / this.props.rate, () => {
      this.deliver(() => {
        if (!cancelled) callback();
      });
    });
    return {
      cancel: () => {
        cancelled = true;
        timer.cancel();
      },
    };
  }

  setWallBy(milliseconds: number): void {
    this.skew += milliseconds;
  }

  /** @param suspend the whole machine sleeps, so that its monotonic clock stands still */
  stopFor(milliseconds: number, suspend: boolean): void {
    if (this.stopped) return;
    this.stopped = true;
    this.props.world.setTimer(milliseconds, () => {
      this.stopped = false;
      if (suspend) this.suspended += milliseconds * this.props.rate;
      for (const callback of this.late.splice(0)) callback();
    });
  }

  /** The way to a server: `delay` is drawn for the way there and the way back; a negative one means that it is lost. */
  wire(server: Transport, delay: () => number): Transport {
    const pass = async (): Promise<void> => {
      const milliseconds = delay();
      if (milliseconds < 0) await new Promise(() => undefined);
      await new Promise<void>((resolve) => this.props.world.setTimer(milliseconds, resolve));
    };
    return {
      host: server.host,
      request: async (request: ApiRequest): Promise<ApiResponse> => {
        await pass();
        const answer = await server.request(request);
        await pass();
        await new Promise<void>((resolve) => {
          this.deliver(resolve);
        });
        return answer;
      },
      stream: (request) => server.stream(request),
      close: () => server.close(),
    };
  }

  private age(): number {
    return (this.props.world.monotonic() - this.startedAt) * this.props.rate;
  }

  private deliver(callback: () => void): void {
    if (this.stopped) this.late.push(callback);
    else callback();
  }
}
