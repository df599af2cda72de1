import { setTimeout as delay } from 'node:timers/promises';
import type { WatchLine } from '../../src/testing/watch-line.js';
import type { Exchange } from './fault-proxy.js';

/** A request on its way through the proxy. */
export interface ProxiedRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Plural, or empty where the path names none; as in `deployments`. */
  readonly resource: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  readonly isWatch: boolean;
}

export type Matcher = (request: ProxiedRequest) => boolean;

/** Reads what the head of a request says. */
export function proxiedRequest(method: string, url: string): ProxiedRequest {
  const { pathname: path, searchParams: query } = new URL(url, 'https://api');
  const [resource = '', name, subresource] = /^\/api(?:s\/[^/]+)?\/[^/]+\/(.+)$/
    .exec(path)?.[1]
    ?.replace(/^namespaces\/[^/]+\/(?=.)/, '')
    .split('/') ?? [''];
  return {
    ...{ method, path, query, resource, name, subresource },
    namespace: /\/namespaces\/([^/]+)\/./.exec(path)?.[1],
    isWatch: method === 'GET' && query.get('watch') === 'true',
  };
}

export const everything: Matcher = () => true;

/** Of one resource, or of all. */
export function watches(resource?: string): Matcher {
  return (request) => request.isWatch && (resource === undefined || request.resource === resource);
}

/** Watches that begin with everything there is. */
export function lists(resource?: string): Matcher {
  const matches = watches(resource);
  return (request) => matches(request) && request.query.get('sendInitialEvents') === 'true';
}

/** Requests that change something: of one resource, or of one object of it, its subresources included. */
export function writesTo(resource?: string, name?: string): Matcher {
  return (request) =>
    request.method !== 'GET' &&
    (resource === undefined || request.resource === resource) &&
    (name === undefined || request.name === name);
}

/** What happens to a request; `next` lets it go on to the API server, past the faults that were added later. */
export type Fault = (exchange: Exchange, next: () => void) => void | Promise<void>;

/** What happens to an event of a watch. */
export type EventFault = (line: WatchLine) => 'pass' | 'swallow';

/** The request arrives late. */
export function late(milliseconds: number): Fault {
  return async (_exchange, next) => {
    await delay(milliseconds);
    next();
  };
}

/** Nothing is answered, and the API server hears nothing of it. */
export const drop: Fault = () => undefined;

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

const REASONS: Readonly<Record<number, string>> = {
  404: 'NotFound',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  504: 'Timeout',
};

/** An answer in the form of the API server, which hears nothing of the request. */
export function respond(
  status: number,
  headers: Readonly<Record<string, string>> = {},
  message = 'refused by the test',
): Fault {
  const failure = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure' };
  const body = JSON.stringify({ ...failure, message, reason: REASONS[status], code: status });
  return (exchange) => {
    exchange.respond(status, { 'content-type': 'application/json', ...headers }, body);
  };
}

/** A watch that gets these events, and then ends: an API server whose cache is behind. */
export function recorded(lines: readonly WatchLine[]): Fault {
  return (exchange) => {
    const body = Buffer.concat(lines.flatMap(({ bytes }) => [bytes, Buffer.from('\n')]));
    exchange.respond(200, { 'content-type': 'application/json' }, body);
  };
}

/** A fault for the first request alone. */
export function once(fault: Fault): Fault {
  let seen = 0;
  return async (exchange, next) => {
    if (seen++ === 0) await fault(exchange, next);
    else next();
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
