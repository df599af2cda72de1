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

/** Time without a repetition after which the same is an event of its own. */
export const QUIET_MILLISECONDS = 6 * 60_000;
/** Time between updates of the count of a series that goes on. */
export const REFRESH_MILLISECONDS = 30 * 60_000;
/** Maximum number of different notes within a series; what comes after only counts. */
const MAX_WORDINGS = 5;
/** Maximum number of series that are kept, beyond what one operator sends in six minutes. */
const MAX_SERIES = 4_096;

const QUEUE_LIMIT = 1_000;
/** Maximum time for what still waits when the process stops. */
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
  /** Whether it has ended, so that no more is added to it. */
  over: boolean;
}

/**
 * Sends events, which `kubectl describe` shows with their object.
 *
 * Events are repetitions by the rules of client-go: equal in type, action, reason and object, and not six minutes apart. A
 * note is part of an event that can't be changed later, so another note is another object, up to five in a series: both a
 * mistake and the next one can be read, and text that never repeats floods nothing.
 *
 * However often an event happens, the API server gets the first, the second, one every half an hour, and one when it is over. They
 * are sent one at a time; one that fails is tried 12 times, each after a pause of its own, in which the others are sent.
 * @see https://github.com/kubernetes/client-go/blob/master/tools/events/event_broadcaster.go
 */
export class EventRecorder {
  private readonly series = new Map<string, Series>();
  private timer: Timer | undefined;
  /** Series that wait to be sent, or are under way. */
  private readonly deliveries = new Set<Promise<void>>();
  /** Resolves when the next may be sent. */
  private turn: Promise<void> = Promise.resolve();
  private readonly stopping = new AbortController();
  /** Whether events are being dropped, since the queue is full; logged once, until there is room again. */
  private overloaded = false;

  constructor(private readonly props: EventRecorderProps) {}

  /** Returns at once, and never throws. */
  send(regarding: Regarding, event: EventProps): void {
    const now = instant(this.props.clock);
    const key = keyOf(regarding, event);
    const known = this.series.get(key);
    const goesOn = known !== undefined && now.monotonic - known.last.monotonic < QUIET_MILLISECONDS;
    if (goesOn && (known.event.note === event.note || known.wording >= MAX_WORDINGS)) {
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
    while (this.deliveries.size > 0) await Promise.all(this.deliveries);
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
    if (this.deliveries.size >= QUEUE_LIMIT) {
      if (!this.overloaded)
        this.props.log.warn({ waiting: QUEUE_LIMIT }, 'too many events wait, dropping some');
      this.overloaded = true;
      this.count(series, 'dropped');
      return;
    }
    series.queued = true;
    const delivery = this.deliver(series).finally(() => {
      this.deliveries.delete(delivery);
      if (this.deliveries.size === 0) this.overloaded = false;
      series.queued = false;
      // It may have happened again.
      this.enqueueIfDue(series, this.props.clock.monotonic());
    });
    this.deliveries.add(delivery);
  }

  /** Never rejects. */
  private async deliver(series: Series): Promise<void> {
    const { clock, random } = this.props;
    const { signal } = this.stopping;
    for (let failures = 0; ; failures++) {
      const sent = this.turn.then(() => this.report(series, signal));
      this.turn = sent.catch(() => undefined);
      try {
        await sent;
        return;
      } catch (error) {
        if (signal.aborted || failures + 1 >= TRIES.event || !isRetriable(error)) {
          this.drop(series, error);
          return;
        }
        const pause = Math.max(backoffDelay(RETRY.event, failures, random), askedDelay(error));
        await sleep(clock, pause, signal);
      }
    }
  }

  private drop(series: Series, failure: unknown): void {
    this.count(series, 'dropped');
    const { type, reason } = series.event;
    const level = this.stopping.signal.aborted || isExpected(failure) ? 'debug' : 'warn';
    this.props.log[level](
      { error: messageOf(failure), type, reason },
      `event for ${describeRef(series.regarding)} not sent`,
    );
  }

  /** Counts one as sent; also one that was dropped, so that its repetitions don't try it each time. */
  private count(series: Series, outcome: 'sent' | 'series' | 'dropped', reported = series.count): void {
    series.reported = reported;
    series.reportedAt = this.props.clock.monotonic();
    this.props.metrics.events.inc({ outcome });
  }

  private async report(series: Series, signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw new Error('the process stops');
    const { count } = series;
    await this.write(series, signal);
    this.count(series, count > 1 ? 'series' : 'sent', count);
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

/** Reports whether a series is to be sent: the second occurrence at once, later ones now and then, and when it is over. */
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

/** Reports whether there was no answer, or that of an overloaded server. */
function isRetriable(error: unknown): boolean {
  if (error instanceof OperatorError) return error.reason !== 'NotLeading';
  return !(error instanceof ApiError) || error.code === 429 || error.code >= 500;
}

/** Reports whether a failure needs no warning: leadership went, the namespace goes, the right was not given. */
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
