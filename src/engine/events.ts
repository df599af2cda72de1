import { randomUUID } from 'node:crypto';
import type { EventProps, EventStep } from '../contract/controller.js';
import { messageOf } from '../contract/error.js';
import { describeRef } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import type { Logger } from '../telemetry/logger.js';
import type { Api } from './api.js';
import type { Clock } from './clock.js';

const EVENT_TYPE = resourceType({ apiVersion: 'events.k8s.io/v1', kind: 'Event' });
const NOTE_LIMIT_BYTES = 1024;

export interface EventRecorderProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whose events these are: a qualified name, and one process of it. */
  readonly reportingController: string;
  readonly reportingInstance: string;
}

/**
 * Tells people what happened to an object, where `kubectl describe` shows it.
 *
 * **Caveats.** Events are a courtesy: one that can't be sent is logged and dropped.
 */
export class EventRecorder {
  constructor(private readonly props: EventRecorderProps) {}

  /** What a kind wants to tell. What it throws is its bug, and no reason to leave the status unwritten. */
  compute(regarding: EventStep['regarding'], event: () => EventProps | undefined): EventProps | undefined {
    try {
      return event();
    } catch (error) {
      this.props.log.error({ err: error }, `Event for ${describeRef(regarding)} can't be computed`);
      return undefined;
    }
  }

  /** Never rejects. */
  async send(regarding: EventStep['regarding'], event: EventProps): Promise<void> {
    try {
      await this.props.api.create(EVENT_TYPE, this.eventObject(regarding, event));
    } catch (error) {
      this.props.log.warn({ error: messageOf(error), event }, `Event for ${describeRef(regarding)} not sent`);
    }
  }

  private eventObject(regarding: EventStep['regarding'], event: EventProps): AnyObject {
    const { clock, reportingController, reportingInstance } = this.props;
    const now = clock.now();
    const { namespace, name } = regarding;
    return {
      apiVersion: EVENT_TYPE.apiVersion,
      kind: EVENT_TYPE.kind,
      metadata: {
        name: `${name.slice(0, 200).replace(/[^a-z0-9]+$/, '')}.${randomUUID().slice(-12)}`,
        // Events of what has no namespace live in `default`.
        namespace: namespace ?? 'default',
      },
      eventTime: microTime(now),
      reportingController,
      reportingInstance: reportingInstance.slice(0, 128),
      regarding,
      type: event.type,
      reason: event.reason,
      action: event.action,
      note: cutToBytes(event.note, NOTE_LIMIT_BYTES),
    };
  }
}

/** Cut at the end of a character: the API server counts bytes. */
function cutToBytes(text: string, limit: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(limit));
  return text.slice(0, read);
}

/** `metav1.MicroTime`: the API server insists on exactly six digits after the point. */
export function microTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace(/\.(\d{3})Z$/, '.$1000Z');
}
