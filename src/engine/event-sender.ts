import type { EventProps, EventStep } from '../contract/controller.js';
import { messageOf, OperatorError } from '../contract/error.js';
import { describeRef, objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { ApiError, askedDelay } from './api-error.js';
import type { Api } from './api.js';
import { sleep } from './clock.js';
import type { Clock } from './clock.js';
import type { EventSeries } from './event-series.js';
import { backoffDelay, EVENT_TRIES, RETRY } from './retry.js';

const EVENT_TYPE = resourceType({ apiVersion: 'events.k8s.io/v1', kind: 'Event' });
const NOTE_LIMIT_BYTES = 1_024;
const WORD_LIMIT = 128;

const QUEUE_LIMIT = 1_000;

export interface EventSenderProps {
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

/** A series that is to be sent, and how often that has failed. */
interface Letter {
  readonly series: EventSeries;
  tries: number;
}

/**
 * Sends series one after another: what is new is created, what is known is patched.
 *
 * **Guarantees.** At most 1,000 wait, what is beyond is dropped and counted. One that fails is tried 12 times, each
 * after a pause of its own, in which the others are sent; all wait only where there was no answer. What
 * waits and happens again is sent once, with its count at that time.
 */
export class EventSender {
  private readonly queue: Letter[] = [];
  /** Those that have failed, each until its pause is over. */
  private readonly aside = new Map<Letter, Promise<void>>();
  private readonly stopping = new AbortController();
  private draining: Promise<void> | undefined;
  /** How often in a row there was no answer. */
  private troubles = 0;
  /** Events are being dropped for want of room; told once, until there is room again. */
  private overloaded = false;

  constructor(private readonly props: EventSenderProps) {}

  /** Returns at once. */
  enqueue(series: EventSeries): void {
    if (series.queued) return;
    if (this.queue.length + this.aside.size >= QUEUE_LIMIT) {
      if (!this.overloaded)
        this.props.log.warn({ waiting: QUEUE_LIMIT }, 'Too many events wait, dropping some');
      this.overloaded = true;
      this.count(series, 'dropped');
      return;
    }
    series.queued = true;
    this.post({ series, tries: 0 });
  }

  /** Sends what waits, for as long as that; the rest is dropped. Nothing may be enqueued afterwards. */
  async close(deadlineMilliseconds: number): Promise<void> {
    const timer = this.props.clock.setTimer(deadlineMilliseconds, () => {
      this.stopping.abort();
    });
    while (this.draining || this.aside.size > 0) await (this.draining ?? Promise.race(this.aside.values()));
    timer.cancel();
    this.stopping.abort();
  }

  private post(letter: Letter): void {
    this.queue.push(letter);
    this.draining ??= this.drain();
  }

  private async drain(): Promise<void> {
    for (let next = this.queue.shift(); next; next = this.queue.shift()) await this.send(next);
    if (this.aside.size === 0) this.overloaded = false;
    this.draining = undefined;
  }

  /** Never rejects. */
  private async send(letter: Letter): Promise<void> {
    const { series } = letter;
    const { signal } = this.stopping;
    if (signal.aborted) {
      this.drop(series, new Error('the process stops'));
      return;
    }
    const { count } = series;
    try {
      await this.write(series, signal);
      this.troubles = 0;
      this.count(series, count > 1 ? 'series' : 'sent', count);
      this.finish(series);
    } catch (error) {
      letter.tries++;
      if (letter.tries >= EVENT_TRIES || !mayPass(error)) this.drop(series, error);
      else await this.retry(letter, error);
    }
  }

  /** It goes to the end of the queue after a while. Resolves when the others may be sent. */
  private async retry(letter: Letter, error: unknown): Promise<void> {
    const over = this.pause(letter.tries - 1, error).then(() => {
      this.aside.delete(letter);
      this.post(letter);
    });
    this.aside.set(letter, over);
    if (!(error instanceof ApiError)) await this.pause(this.troubles++, error);
    else this.troubles = 0;
  }

  private pause(failures: number, error: unknown): Promise<void> {
    const { clock, random } = this.props;
    const delay = Math.max(backoffDelay(RETRY.event, failures, random), askedDelay(error));
    return sleep(clock, delay, this.stopping.signal);
  }

  private drop(series: EventSeries, failure: unknown): void {
    this.count(series, 'dropped');
    const { type, reason } = series.event;
    const level = this.stopping.signal.aborted || isExpected(failure) ? 'debug' : 'warn';
    this.props.log[level](
      { error: messageOf(failure), type, reason },
      `Event for ${describeRef(series.regarding)} not sent`,
    );
    this.finish(series);
  }

  /** It may have happened again meanwhile. */
  private finish(series: EventSeries): void {
    series.queued = series.worthTelling(this.props.clock.monotonic());
    if (series.queued) this.queue.push({ series, tries: 0 });
  }

  /** What was dropped counts as told, so that its repetitions don't try it each time anew. */
  private count(series: EventSeries, outcome: 'sent' | 'series' | 'dropped', told = series.count): void {
    series.told = told;
    series.toldAt = this.props.clock.monotonic();
    this.props.metrics.events.inc({ outcome });
  }

  private async write(series: EventSeries, signal: AbortSignal): Promise<void> {
    const { api } = this.props;
    const key = objectKey(namespaceOf(series.regarding), series.name);
    const patch = (): Promise<void> => api.mergePatch(EVENT_TYPE, key, { series: seriesOf(series) }, signal);
    if (series.told > 0) {
      try {
        await patch();
        return;
      } catch (error) {
        // Events live for an hour, as a rule, so a series may outlive its own; or the first one was dropped.
        if (!(error instanceof ApiError) || error.code !== 404) throw error;
      }
    }
    try {
      await api.create(EVENT_TYPE, this.eventObject(series), signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.status.reason !== 'AlreadyExists') throw error;
      // An earlier try came through, and only its answer was lost.
      if (series.count > 1) await patch();
    }
  }

  private eventObject(series: EventSeries): AnyObject {
    const { reportingController, reportingInstance } = this.props;
    const { regarding, event } = series;
    return {
      apiVersion: EVENT_TYPE.apiVersion,
      kind: EVENT_TYPE.kind,
      metadata: { name: series.name, namespace: namespaceOf(regarding) },
      eventTime: microTime(series.startedAt),
      reportingController,
      reportingInstance: reportingInstance.slice(0, WORD_LIMIT),
      regarding,
      type: event.type,
      reason: event.reason.slice(0, WORD_LIMIT),
      action: event.action.slice(0, WORD_LIMIT),
      note: cutToBytes(event.note, NOTE_LIMIT_BYTES),
      ...(series.count > 1 && { series: seriesOf(series) }),
    };
  }
}

function seriesOf({ count, lastAt }: EventSeries): object {
  return { count, lastObservedTime: microTime(lastAt) };
}

/** Events of what has no namespace live in `default`. */
function namespaceOf({ namespace }: EventStep['regarding']): string {
  return namespace ?? 'default';
}

/** No answer, or a server with too much to do. */
function mayPass(error: unknown): boolean {
  if (error instanceof OperatorError) return error.reason !== 'NotLeading';
  return !(error instanceof ApiError) || error.code === 429 || error.code >= 500;
}

/** Nobody can do anything about it, or knows already: leadership went, the namespace goes, the right was not given. */
function isExpected(error: unknown): boolean {
  if (error instanceof OperatorError) return error.reason === 'NotLeading';
  return error instanceof ApiError && (error.code === 403 || error.code === 404);
}

/** Cut at the end of a character: the API server counts bytes. */
function cutToBytes(text: EventProps['note'], limit: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(limit));
  return text.slice(0, read);
}

/** `metav1.MicroTime`: the API server insists on exactly six digits after the point. */
export function microTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace(/\.(\d{3})Z$/, '.$1000Z');
}
