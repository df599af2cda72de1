import type { Clock } from '../../../src/client/clock.js';
import { sleep } from '../../../src/client/clock.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from '../../../src/client/transport.js';

/** A server of virtual time: it takes a while for each request, and may be down, or overloaded. */
export class LimitedServer implements Transport {
  readonly host = 'api.test:443';
  readonly sent: { readonly at: number; readonly request: ApiRequest }[] = [];
  down = false;
  /** What it takes within each second; more is refused. */
  perSecond = Infinity;
  retryAfterSeconds: number | undefined = 1;
  /** What is answered to more than it takes. */
  status = 429;
  latencyMilliseconds = 20;
  mostUnderWay = 0;
  closed = false;
  private underWay = 0;
  private second = 0;
  private taken = 0;

  constructor(private readonly clock: Clock) {}

  async request(request: ApiRequest): Promise<ApiResponse> {
    this.sent.push({ at: this.clock.now(), request });
    this.mostUnderWay = Math.max(this.mostUnderWay, ++this.underWay);
    try {
      request.signal?.throwIfAborted();
      this.checkUp();
      await sleep(this.clock, this.latencyMilliseconds, request.signal ?? new AbortController().signal);
      request.signal?.throwIfAborted();
      this.checkUp();
      return this.answer();
    } finally {
      this.underWay--;
    }
  }

  async stream(request: ApiRequest): Promise<ApiStream> {
    const { body: _, ...head } = await this.request(request);
    return { ...head, chunks: (async function* () {})() };
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- as the interface has it
  async close(): Promise<void> {
    this.closed = true;
  }

  private checkUp(): void {
    if (this.down) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  }

  private answer(): ApiResponse {
    const second = Math.floor(this.clock.now() / 1000);
    if (second !== this.second) this.taken = 0;
    this.second = second;
    if (this.taken++ < this.perSecond) return { status: 200, body: {} };
    const { retryAfterSeconds } = this;
    return { status: this.status, body: {}, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
  }
}
