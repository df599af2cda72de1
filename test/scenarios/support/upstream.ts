import { connect } from 'node:http2';
import type { ClientHttp2Session, IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http2';
import type { Exchange } from './exchange.js';
import type { EventPipe } from './event-pipe.js';

/** Room for what a slow client hasn't taken yet: one stream that stands still must not stop its neighbours. */
const WINDOW_BYTES = 16 * 2 ** 20;

/** Those that say something about one connection only. https://www.rfc-editor.org/rfc/rfc9113#section-8.2.2 */
const PER_CONNECTION: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'host'],
]);

export interface Target {
  /** The API server's URL. */
  readonly url: string;
  /** PEM. */
  readonly ca: string;
}

/** A connection to the API server; one for each of a client's, so that both ends of it mean the same. */
export class Upstream {
  private readonly session: ClientHttp2Session;
  private readonly authority: string;

  /**
   * @param onGoaway the API server wants no more requests here; those under way are finished
   * @param onEnd the connection is over
   */
  constructor({ url, ca }: Target, onGoaway: () => void, onEnd: () => void) {
    this.authority = new URL(url).host;
    this.session = connect(url, { ca, settings: { initialWindowSize: WINDOW_BYTES, enablePush: false } });
    this.session.once('connect', () => {
      // It may have been given up before it was there.
      if (!this.session.destroyed) this.session.setLocalWindowSize(WINDOW_BYTES);
    });
    this.session.on('goaway', onGoaway);
    this.session.on('error', () => undefined);
    this.session.once('close', onEnd);
  }

  /** Passes a request on, and the answer back. */
  forward(exchange: Exchange, events: EventPipe | undefined): void {
    const { incoming } = exchange;
    if (this.session.closed || this.session.destroyed) {
      exchange.reset();
      return;
    }
    const head = {
      ...passedOn(incoming.headers),
      ':method': incoming.method ?? 'GET',
      ':path': incoming.url ?? '/',
      ':scheme': 'https',
      ':authority': this.authority,
    };
    // Said explicitly, since Node would leave out the body of a DELETE, which holds the preconditions.
    const stream = this.session.request(head, { endStream: false });
    exchange.forwardedAs(stream);
    stream.on('response', (headers) => {
      const status = Number(headers[':status']);
      exchange.begin(status, passedOn(headers));
      const write = (chunk: Buffer): boolean =>
        // A watch that is refused has an answer like any other.
        events && status === 200 && headers['content-encoding'] === undefined
          ? events.write(chunk)
          : exchange.write(chunk);
      stream.on('data', (chunk: Buffer) => {
        if (write(chunk)) return;
        stream.pause();
        exchange.response.once('drain', () => stream.resume());
      });
    });
    stream.on('end', () => {
      if (stream.rstCode !== 0 || stream.aborted) return;
      if (events) events.end();
      else exchange.end();
    });
    stream.on('error', () => undefined);
    stream.on('close', () => {
      if (stream.rstCode !== 0 || stream.aborted || !exchange.response.headersSent)
        exchange.reset(stream.rstCode || undefined);
    });
    incoming.pipe(stream);
  }

  close(): void {
    this.session.destroy();
  }
}

function passedOn(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const kept: OutgoingHttpHeaders = {};
  for (const [name, value] of Object.entries(headers))
    if (!name.startsWith(':') && !PER_CONNECTION.has(name) && value !== undefined) kept[name] = value;
  return kept as Record<string, string | string[]>;
}
