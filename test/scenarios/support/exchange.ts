import { constants } from 'node:http2';
import type { ClientHttp2Stream, Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ProxiedRequest } from './proxied-request.js';

/** Over HTTP/2 or HTTP/1.1, whatever the client speaks. */
export type ClientRequest = Http2ServerRequest | IncomingMessage;
export type ClientResponse = Http2ServerResponse | ServerResponse;

/** What the proxy noted of a request. */
export interface RecordedRequest extends ProxiedRequest {
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** The client has its answer, or has gone. @default - it is under way */
  endedAt?: number;
  /** @default - nothing was answered */
  status?: number;
}

/** One request and its answer: between the client, whom faults deal with, and the API server. */
export class Exchange {
  readonly record: RecordedRequest;
  /** The connection that it came in on, by its port. */
  readonly port: number;
  private upstream: ClientHttp2Stream | undefined;
  private isSilent = false;
  private losesAnswer = false;
  /** The whole answer is on its way to the client. */
  isEnding = false;

  constructor(
    readonly request: ProxiedRequest,
    readonly incoming: ClientRequest,
    readonly response: ClientResponse,
    onEnd: () => void,
  ) {
    this.record = { ...request, startedAt: Date.now() };
    this.port = incoming.socket.remotePort ?? 0;
    response.on('close', () => {
      this.record.endedAt = Date.now();
      this.upstream?.close(constants.NGHTTP2_CANCEL);
      onEnd();
    });
    // What a client that has gone can't be told is no failure of the proxy.
    response.on('error', () => undefined);
    incoming.on('error', () => undefined);
  }

  get isOpen(): boolean {
    return this.record.endedAt === undefined && !this.response.destroyed;
  }

  /** The API server's side ends with the client's. */
  forwardedAs(upstream: ClientHttp2Stream): void {
    this.upstream = upstream;
  }

  /** The head of an answer. */
  begin(status: number, headers: Readonly<Record<string, string | string[]>>): void {
    if (!this.isOpen || this.response.headersSent) return;
    if (this.losesAnswer) {
      this.reset();
      return;
    }
    this.record.status = status;
    // One overload for both protocols, which differ in what they return alone.
    const response = this.response as ServerResponse;
    response.writeHead(status, headers);
    // The head of a watch travels before its first event.
    response.flushHeaders();
  }

  /** Returns whether more may be written at once. */
  write(bytes: Buffer): boolean {
    if (!this.isOpen || this.isSilent) return true;
    return (this.response as ServerResponse).write(bytes);
  }

  end(): void {
    this.isEnding = true;
    if (this.isOpen && !this.isSilent) this.response.end();
  }

  respond(status: number, headers: Readonly<Record<string, string>>, body: string | Buffer): void {
    this.begin(status, headers);
    this.isEnding = true;
    if (this.isOpen) (this.response as ServerResponse).end(body);
  }

  /** Breaks it off where it stands: the stream alone, if it is one of several on its connection. */
  reset(code: number = constants.NGHTTP2_INTERNAL_ERROR): void {
    if (!this.isOpen) return;
    if ('stream' in this.response) this.response.stream.close(code);
    else this.response.destroy();
  }

  /** It is broken off as soon as there is an answer, of which nothing arrives. */
  loseAnswer(): void {
    this.losesAnswer = true;
  }

  /** From now on nothing more is heard of it, not even its end; the connection itself works. */
  silence(): void {
    this.isSilent = true;
  }
}
