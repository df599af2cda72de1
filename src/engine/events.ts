import { randomUUID } from 'node:crypto';
import type { EventProps, EventStep } from '../contract/controller.js';
import { describeRef } from '../contract/object.js';
import { instant } from './clock.js';
import type { Timer } from './clock.js';
import { EventSender } from './event-sender.js';
import type { EventSenderProps } from './event-sender.js';
import { EventSeriesBook, QUIET_MILLISECONDS } from './event-series.js';

/** What still waits when the process stops gets this long. */
const FLUSH_MILLISECONDS = 3_000;

/**
 * Tells people what happened to an object, where `kubectl describe` shows it.
 *
 * **Guarantees.** Nobody waits for an event. The same event again, within six minutes, is counted in the object that is
 * there: however often it happens, the API server hears of the first, of the second, every half an hour, and when it
 * is over.
 *
 * **Caveats.** Events are a courtesy: one that can't be sent is logged, counted and dropped.
 */
export class EventRecorder {
  private readonly book = new EventSeriesBook(nameFor);
  private readonly sender: EventSender;
  private timer: Timer | undefined;

  constructor(private readonly props: EventSenderProps) {
    this.sender = new EventSender(props);
  }

  /** What a kind wants to tell. What it throws is its bug, and no reason to leave the status unwritten. */
  compute(regarding: EventStep['regarding'], event: () => EventProps | undefined): EventProps | undefined {
    try {
      return event();
    } catch (error) {
      this.props.log.error({ err: error }, `Event for ${describeRef(regarding)} can't be computed`);
      return undefined;
    }
  }

  /** Returns at once, and never throws. */
  send(regarding: EventStep['regarding'], event: EventProps): void {
    const at = instant(this.props.clock);
    const { series, ended } = this.book.observe(regarding, event, at);
    if (ended?.worthTelling(at.monotonic)) this.sender.enqueue(ended);
    if (series.worthTelling(at.monotonic)) this.sender.enqueue(series);
    this.timer ??= this.startTimer();
  }

  /** Sends what hasn't been told yet, for some seconds at most. Nothing is to be sent afterwards. */
  async close(): Promise<void> {
    this.timer?.cancel();
    const now = this.props.clock.monotonic();
    for (const series of this.book.endAll()) if (series.worthTelling(now)) this.sender.enqueue(series);
    await this.sender.close(FLUSH_MILLISECONDS);
  }

  /** There is one only while something may be left to tell. */
  private startTimer(): Timer {
    return this.props.clock.setTimer(QUIET_MILLISECONDS, () => {
      for (const series of this.book.due(this.props.clock.monotonic())) this.sender.enqueue(series);
      this.timer = this.book.size > 0 ? this.startTimer() : undefined;
    });
  }
}

function nameFor({ name }: EventStep['regarding']): string {
  return `${name.slice(0, 200).replace(/(?<![^a-z0-9])[^a-z0-9]+$/, '')}.${randomUUID().slice(-12)}`;
}
