import type { AnyObject } from '../../../src/contract/object.js';
import type { ApiRequest, ApiResponse, Transport } from '../../../src/engine/transport.js';

/** An API server that lists these, by plural, and refuses what it is told to refuse. */
export class ListedServer implements Transport {
  readonly host = 'api.test';
  /** Answers to lists, by plural. */
  readonly refused = new Map<string, ApiResponse>();
  /** It takes requests, and never answers. */
  silent = false;
  lists = 0;

  constructor(private readonly objects: Readonly<Record<string, readonly AnyObject[]>>) {}

  async request({ path, signal }: ApiRequest): Promise<ApiResponse> {
    this.lists++;
    if (this.silent)
      return new Promise((_, reject) => {
        signal?.addEventListener('abort', () => {
          reject(signal.reason as Error);
        });
      });
    const plural = path.split('/').at(-1)!;
    const body = { metadata: { resourceVersion: '100' }, items: this.objects[plural] ?? [] };
    return this.refused.get(plural) ?? { status: 200, body };
  }

  stream = () => Promise.reject(new Error('nothing is watched'));
  close = () => Promise.resolve();
}
