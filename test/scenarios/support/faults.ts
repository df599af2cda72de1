import { setTimeout as delay } from 'node:timers/promises';
import type { Exchange } from './exchange.js';
import type { WatchLine } from '../../../src/testing/watch-line.js';

/** What happens to a request; `next` lets it go on to the API server, past the faults that were added later. */
export type Fault = (exchange: Exchange, next: () => void) => void | Promise<void>;

/** What happens to an event of a watch: it passes, is swallowed, or comes late by so many milliseconds. */
export type EventFault = (line: WatchLine) => 'pass' | 'swallow' | number;

/** The request arrives late. */
export function late(milliseconds: number): Fault {
  return async (_exchange, next) => {
    await delay(milliseconds);
    next();
  };
}

/** Nothing is answered, and the API server hears nothing of it. */
export const drop: Fault = () => undefined;

/** The stream is reset before there is an answer; over HTTP/1.1, the connection ends. */
export const reset: Fault = (exchange) => {
  exchange.reset();
};

/** The API server does what is asked, and its answer is lost. */
export const loseAnswer: Fault = (exchange, next) => {
  exchange.loseAnswer();
  next();
};

/** The API server's clock seems to be ahead by so much; behind, where it is negative. */
export function clockAhead(milliseconds: number): Fault {
  return (exchange, next) => {
    const begin = exchange.begin.bind(exchange);
    exchange.begin = (status, headers) => {
      begin(status, { ...headers, date: new Date(Date.now() + milliseconds).toUTCString() });
    };
    next();
  };
}

export interface CannedAnswer {
  readonly status: number;
  /** @default - as the status has it in Kubernetes, where the engine reads it */
  readonly reason?: string;
  readonly message?: string;
  /** @default - none */
  readonly headers?: Readonly<Record<string, string>>;
}

const REASONS: Readonly<Record<number, string>> = {
  403: 'Forbidden',
  404: 'NotFound',
  409: 'Conflict',
  410: 'Expired',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/** An answer in the form of the API server, which hears nothing of the request. */
export function respond({ status, reason, message, headers = {} }: CannedAnswer): Fault {
  const body = {
    ...{ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure' },
    ...{ message: message ?? 'refused by the test', reason: reason ?? REASONS[status], code: status },
  };
  return (exchange) => {
    exchange.respond(status, { 'content-type': 'application/json', ...headers }, JSON.stringify(body));
  };
}

/** A watch that gets these events, and then ends: an API server whose cache is behind. */
export function recorded(lines: readonly WatchLine[]): Fault {
  return (exchange) => {
    const body = Buffer.concat(lines.flatMap(({ bytes }) => [bytes, Buffer.from('\n')]));
    exchange.respond(200, { 'content-type': 'application/json' }, body);
  };
}

/** A fault for one of every so many requests, beginning with the first. */
export function oneIn(count: number, fault: Fault): Fault {
  let seen = 0;
  return (exchange, next) => {
    if (seen++ % count === 0) return fault(exchange, next);
    next();
  };
}

/** Holds requests back until it is opened. */
export class Gate {
  private readonly waiting: (() => void)[] = [];
  private isOpen = false;

  /** How many requests wait at it. */
  get held(): number {
    return this.waiting.length;
  }

  readonly fault: Fault = (_exchange, next) => {
    if (this.isOpen) next();
    else this.waiting.push(next);
  };

  open(): void {
    this.isOpen = true;
    for (const next of this.waiting.splice(0)) next();
  }
}

/** The events of one object are lost. */
export function losing(name: string): EventFault {
  return ({ type, object }) => (type !== 'BOOKMARK' && object.metadata.name === name ? 'swallow' : 'pass');
}

/** Every event comes late, and none overtakes another. */
export function behind(milliseconds: number): EventFault {
  return () => milliseconds;
}
