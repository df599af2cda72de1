import type { ApiRequest, ApiResponse, ApiStream, Transport } from '../../../src/client/transport.js';

/** The body of one watch, as the test lets it arrive. */
export class ScriptedStream {
  /** Whoever read it has stopped, or its signal has aborted. */
  closed = false;
  private readonly parts: (Uint8Array | Error | 'end')[] = [];
  private wake: () => void = () => undefined;

  constructor(readonly request: ApiRequest) {
    const abort = (): void => {
      this.closed = true;
      this.push(new DOMException('This operation was aborted', 'AbortError'));
    };
    request.signal?.addEventListener('abort', abort);
    if (request.signal?.aborted) abort();
  }

  send(bytes: Uint8Array | string): this {
    return this.push(typeof bytes === 'string' ? Buffer.from(bytes) : bytes);
  }

  event(type: string, object: object): this {
    return this.send(`${JSON.stringify({ type, object })}\n`);
  }

  /** The end of the initial events of a streamed list. */
  listed(resourceVersion: string): this {
    return this.event('BOOKMARK', {
      metadata: { resourceVersion, annotations: { 'k8s.io/initial-events-end': 'true' } },
    });
  }

  bookmark(resourceVersion: string): this {
    return this.event('BOOKMARK', { metadata: { resourceVersion } });
  }

  end(): this {
    return this.push('end');
  }

  break(error: Error = new Error('other side closed')): this {
    return this.push(error);
  }

  async *chunks(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const part = this.parts.shift();
        if (part === undefined) {
          await new Promise<void>((resolve) => (this.wake = resolve));
        } else if (part === 'end') {
          return;
        } else if (part instanceof Error) {
          throw part;
        } else {
          yield part;
        }
      }
    } finally {
      this.closed = true;
    }
  }

  private push(part: Uint8Array | Error | 'end'): this {
    this.parts.push(part);
    this.wake();
    return this;
  }
}

export type Answer = ApiResponse | Error;

/**
 * A server that does what the test says. Requests are answered from `answers` in turn, else by `respond`; streams are
 * refused from `refusals` in turn, else opened and handed to the test.
 */
export class ScriptedTransport implements Transport {
  readonly host = 'api.test:443';
  readonly requests: ApiRequest[] = [];
  readonly streams: ScriptedStream[] = [];
  readonly answers: (Answer | Promise<Answer>)[] = [];
  /** For the next streams: `undefined` opens one. */
  readonly refusals: (Answer | undefined)[] = [];
  closed = false;
  respond: (request: ApiRequest) => Answer | Promise<Answer> = (request) =>
    new Error(`unexpected ${request.method} ${request.path}`);

  get lastStream(): ScriptedStream {
    const stream = this.streams.at(-1);
    if (!stream) throw new Error('no stream was opened');
    return stream;
  }

  async request(request: ApiRequest): Promise<ApiResponse> {
    this.requests.push(request);
    const answer = await (this.answers.shift() ?? this.respond(request));
    if (answer instanceof Error) throw answer;
    return answer;
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- as the interface has it
  async stream(request: ApiRequest): Promise<ApiStream> {
    const refusal = this.refusals.shift();
    if (refusal instanceof Error) throw refusal;
    const stream = new ScriptedStream(request);
    this.streams.push(stream);
    if (refusal) stream.send(asText(refusal.body)).end();
    const { status = 200, retryAfterSeconds } = refusal ?? {};
    return { status, chunks: stream.chunks(), ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- as the interface has it
  async close(): Promise<void> {
    this.closed = true;
  }
}

function asText(body: unknown): string {
  return typeof body === 'string' ? body : JSON.stringify(body);
}
