import { randomUUID } from 'node:crypto';
import type { EventProps, EventStep } from '../../contract/plan.js';
import { messageOf, OperatorError } from '../../contract/error.js';
import { describeRef, objectKey } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { resourceType } from '../../contract/resource.js';
import type { Logger } from '../../telemetry/logger.js';
import type { Metrics } from '../../telemetry/metrics.js';
import { ApiError, askedDelay } from '../../client/api-error.js';
import type { Api } from '../../client/api.js';
import { instant, sleep } from '../../client/clock.js';
import type { Clock, Instant, Timer } from '../../client/clock.js';
import { backoffDelay, RETRY, TRIES } from '../../client/retry.js';

const EVENT_TYPE = resourceType({ apiVersion: 'events.k8s.io/v1', kind: 'Event' });
const NOTE_LIMIT_BYTES = 1_024;
const WORD_LIMIT = 128;

/** After this long without a repetition, the same is an event of its own. */
export const QUIET_MILLISECONDS = 6 * 60_000;
/** Time between updates of the count of a series that goes on. */
export const REFRESH_MILLISECONDS = 30 * 60_000;
/** Different notes within a series; what comes after only counts. */
const WORDINGS = 5;
/** Maximum number of series that are kept, beyond what one operator sends in six minutes. */
const MAX_SERIES = 4_096;

const QUEUE_LIMIT = 1_000;
/** When the process stops, what still waits gets this long. */
const FLUSH_MILLISECONDS = 3_000;

export type Regarding = EventStep['regarding'];

export interface EventRecorderProps {
  readonly api: Api;
  readonly clock: Clock;
  /** From 0 to 1, for jitter. */
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Whose events these are: a qualified name, and one process of it. */
  readonly reportingController: string;
  readonly reportingInstance: string;
}

/** Event and its repetitions, which become one object. */
interface Series {
  readonly key: string;
  /** Name of the object. */
  readonly name: string;
  readonly regarding: Regarding;
  readonly event: EventProps;
  readonly started: Instant;
  /** Counts the different notes of this key. */
  readonly wording: number;
  last: Instant;
  /** Number of occurrences so far. */
  count: number;
  /** Occurrences that the API server knows of; none before the object is created. */
  reported: number;
  /** Time of the last report, by the monotonic clock. */
  reportedAt: number;
  /** Whether it waits to be sent, or is under way. */
  queued: boolean;
  /** Nothing will be added to it. */
  over: boolean;
}

/** A series that is to be sent, and how often that has failed. */
interface Delivery {
  readonly series: Series;
  tries: number;
}

/**
 * Sends events, which `kubectl describe` shows with their object.
 *
 * Events are repetitions by the rules of client-go: equal in type, action, reason and object, and not six minutes apart. A
 * note is part of an event that can't be changed later, so another note is another object, up to five in a series: both a
 * mistake and the next one can be read, and text that never repeats floods nothing.
 *
 * **Guarantees.** Nothing waits for an event. The same event again is counted in the object that is there: however often it
 * happens, the API server gets the first, the second, one every half an hour, and one when it is over. At most 1,000 wait,
 * what is beyond is dropped and counted. One that fails is tried 12 times, each after a pause of its own, in which the
 * others are sent; all wait only where there was no answer. What waits and happens again is sent once, with its count at
 * that time.
 *
 * **Caveats.** One that can't be sent is logged, counted and dropped.
 * @see https://github.com/kubernetes/client-go/blob/master/tools/events/event_broadcaster.go
 */
export class EventRecorder {
  private readonly series = new Map<string, Series>();
  private timer: Timer | undefined;
  private readonly queue: Delivery[] = [];
  /** Failed ones, each until its pause is over. */
  private readonly backingOff = new Map<Delivery, Promise<void>>();
  private readonly stopping = new AbortController();
  private draining: Promise<void> | undefined;
  /** Times in a row without an answer. */
  private unanswered = 0;
  /** Whether events are being dropped, since the queue is full; logged once, until there is room again. */
  private overloaded = false;

  constructor(private readonly props: EventRecorderProps) {}

  /** Returns at once, and never throws. */
  send(regarding: Regarding, event: EventProps): void {
    const now = instant(this.props.clock);
    const key = keyOf(regarding, event);
    const known = this.series.get(key);
    const goesOn = known !== undefined && now.monotonic - known.last.monotonic < QUIET_MILLISECONDS;
    if (goesOn && (known.event.note === event.note || known.wording >= WORDINGS)) {
      known.count++;
      known.last = now;
      this.enqueueIfDue(known, now.monotonic);
    } else {
      const [oldest] = this.series.size >= MAX_SERIES ? this.series.values() : [];
      const ended = known ?? oldest;
      if (ended) this.end(ended, now.monotonic);
      const wording = goesOn ? known.wording + 1 : 1;
      const name = nameFor(regarding);
      const counts = { count: 1, reported: 0, reportedAt: 0, queued: false, over: false };
      const next = { key, name, regarding, event, started: now, wording, last: now, ...counts };
      this.series.set(key, next);
      this.enqueueIfDue(next, now.monotonic);
    }
    this.timer ??= this.startTimer();
  }

  /** Sends what hasn't been sent yet, for some seconds at most. Nothing is to be sent afterwards. */
  async close(): Promise<void> {
    this.timer?.cancel();
    const now = this.props.clock.monotonic();
    for (const series of [...this.series.values()]) this.end(series, now);
    const timer = this.props.clock.setTimer(FLUSH_MILLISECONDS, () => {
      this.stopping.abort();
    });
    while (this.draining || this.backingOff.size > 0)
      await (this.draining ?? Promise.race(this.backingOff.values()));
    timer.cancel();
    this.stopping.abort();
  }

  /** There is one only while something may be left to send. */
  private startTimer(): Timer {
    return this.props.clock.setTimer(QUIET_MILLISECONDS, () => {
      const now = this.props.clock.monotonic();
      for (const series of [...this.series.values()])
        if (now - series.last.monotonic >= QUIET_MILLISECONDS) this.end(series, now);
        else this.enqueueIfDue(series, now);
      this.timer = this.series.size > 0 ? this.startTimer() : undefined;
    });
  }

  private end(series: Series, now: number): void {
    series.over = true;
    this.series.delete(series.key);
    this.enqueueIfDue(series, now);
  }

  private enqueueIfDue(series: Series, now: number): void {
    if (series.queued || !isDue(series, now)) return;
    if (this.queue.length + this.backingOff.size >= QUEUE_LIMIT) {
      if (!this.overloaded)
        this.props.log.warn({ waiting: QUEUE_LIMIT }, 'too many events wait, dropping some');
      this.overloaded = true;
      this.count(series, 'dropped');
      return;
    }
    series.queued = true;
    this.enqueue({ series, tries: 0 });
  }

  private enqueue(delivery: Delivery): void {
    this.queue.push(delivery);
    this.draining ??= this.drain();
  }

  private async drain(): Promise<void> {
    for (let next = this.queue.shift(); next; next = this.queue.shift()) await this.deliver(next);
    if (this.backingOff.size === 0) this.overloaded = false;
    this.draining = undefined;
  }

  /** Never rejects. */
  private async deliver(delivery: Delivery): Promise<void> {
    const { series } = delivery;
    const { signal } = this.stopping;
    if (signal.aborted) {
      this.drop(series, new Error('the process stops'));
      return;
    }
    const { count } = series;
    try {
      await this.write(series, signal);
      this.unanswered = 0;
      this.count(series, count > 1 ? 'series' : 'sent', count);
      this.finish(series);
    } catch (error) {
      delivery.tries++;
      if (delivery.tries >= TRIES.event || !isRetriable(error)) this.drop(series, error);
      else await this.retry(delivery, error);
    }
  }

  /** Puts it to the end of the queue after a while. Resolves when the others may be sent. */
  private async retry(delivery: Delivery, error: unknown): Promise<void> {
    const over = this.pause(delivery.tries - 1, error).then(() => {
      this.backingOff.delete(delivery);
      this.enqueue(delivery);
    });
    this.backingOff.set(delivery, over);
    if (!(error instanceof ApiError)) await this.pause(this.unanswered++, error);
    else this.unanswered = 0;
  }

  private pause(failures: number, error: unknown): Promise<void> {
    const { clock, random } = this.props;
    const delay = Math.max(backoffDelay(RETRY.event, failures, random), askedDelay(error));
    return sleep(clock, delay, this.stopping.signal);
  }

  private drop(series: Series, failure: unknown): void {
    this.count(series, 'dropped');
    const { type, reason } = series.event;
    const level = this.stopping.signal.aborted || isExpected(failure) ? 'debug' : 'warn';
    this.props.log[level](
      { error: messageOf(failure), type, reason },
      `event for ${describeRef(series.regarding)} not sent`,
    );
    this.finish(series);
  }

  /** Queues a series again where it has happened again meanwhile. */
  private finish(series: Series): void {
    series.queued = isDue(series, this.props.clock.monotonic());
    if (series.queued) this.queue.push({ series, tries: 0 });
  }

  /** Counts one as sent; also one that was dropped, so that its repetitions don't try it each time. */
  private count(series: Series, outcome: 'sent' | 'series' | 'dropped', reported = series.count): void {
    series.reported = reported;
    series.reportedAt = this.props.clock.monotonic();
    this.props.metrics.events.inc({ outcome });
  }

  private async write(series: Series, signal: AbortSignal): Promise<void> {
    const { api } = this.props;
    const key = objectKey(namespaceOf(series.regarding), series.name);
    const patch = () => api.mergePatch(EVENT_TYPE, key, { series: seriesOf(series) }, { signal });
    if (series.reported > 0) {
      try {
        await patch();
        return;
      } catch (error) {
        // Events usually live for an hour, so a series may outlive its own; or the first one was dropped.
        if (!(error instanceof ApiError) || error.code !== 404) throw error;
      }
    }
    try {
      await api.create(EVENT_TYPE, this.eventObject(series), { signal });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status.reason !== 'AlreadyExists') throw error;
      // An earlier try came through, and only its answer was lost.
      if (series.count > 1) await patch();
    }
  }

  private eventObject(series: Series): AnyObject {
    const { reportingController, reportingInstance } = this.props;
    const { regarding, event } = series;
    return {
      apiVersion: EVENT_TYPE.apiVersion,
      kind: EVENT_TYPE.kind,
      metadata: { name: series.name, namespace: namespaceOf(regarding) },
      eventTime: microTime(series.started.wall),
      reportingController,
      reportingInstance: reportingInstance.slice(0, WORD_LIMIT),
      regarding,
      type: event.type,
      reason: event.reason.slice(0, WORD_LIMIT),
      action: event.action.slice(0, WORD_LIMIT),
      note: cutToBytes(event.note.toWellFormed(), NOTE_LIMIT_BYTES),
      ...(series.count > 1 && { series: seriesOf(series) }),
    };
  }
}

/** The second occurrence is worth a request at once, later ones only now and then, and when it is over. */
function isDue({ reported, count, over, reportedAt }: Series, now: number): boolean {
  if (reported === count) return false;
  return over || reported <= 1 || now - reportedAt >= REFRESH_MILLISECONDS;
}

function keyOf({ apiVersion, kind, uid, namespace, name }: Regarding, event: EventProps): string {
  return [event.type, event.action, event.reason, apiVersion, kind, namespace, name, uid].join('\n');
}

function nameFor({ name }: Regarding): string {
  return `${name.slice(0, 200).replace(/(?<![^a-z0-9])[^a-z0-9]+$/, '')}.${randomUUID().slice(-12)}`;
}

function seriesOf({ count, last }: Series): object {
  return { count, lastObservedTime: microTime(last.wall) };
}

/** Events of what has no namespace live in `default`. */
function namespaceOf({ namespace }: Regarding): string {
  return namespace ?? 'default';
}

/** No answer, or an overloaded server. */
function isRetriable(error: unknown): boolean {
  if (error instanceof OperatorError) return error.reason !== 'NotLeading';
  return !(error instanceof ApiError) || error.code === 429 || error.code >= 500;
}

/** Needs no warning: leadership went, the namespace goes, the right was not given. */
function isExpected(error: unknown): boolean {
  if (error instanceof OperatorError) return error.reason === 'NotLeading';
  return error instanceof ApiError && (error.code === 403 || error.code === 404);
}

/** Cuts at the end of a character: the API server counts bytes. */
function cutToBytes(text: string, limit: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(limit));
  return text.slice(0, read);
}

/** `metav1.MicroTime`: the API server insists on exactly six digits after the point. */
export function microTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace(/\.(\d{3})Z$/, '.$1000Z');
}
