/** A request to the API server; what is sent and received is JSON, untouched. */
export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Begins with a slash; without query. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** @default application/json */
  readonly contentType?: string;
  /** The media type of the answer. @default application/json */
  readonly accept?: string;
  readonly signal?: AbortSignal;
  /** It keeps the lease, so nothing may delay it, and no fence holds it back. @default false */
  readonly lease?: boolean;
  /**
   * Called, synchronously, right before the request is handed to its connection, and again whenever it is sent anew:
   * what it throws is what the request fails with, and then nothing has been sent. @default - it may always be sent
   */
  readonly admit?: () => void;
}

export interface ApiResponse {
  readonly status: number;
  /** JSON, or text where the server answered with something else. */
  readonly body: unknown;
  /** From the `Retry-After` header. */
  readonly retryAfterSeconds?: number;
  /** From the `Date` header: the server's clock, in whole seconds since the epoch. */
  readonly dateMilliseconds?: number;
  /** It is that of an earlier try, whose `Retry-After` isn't over: nothing was sent. @default false */
  readonly isRepeated?: true;
  /** The connection ended under a first try, which may have got through all the same. @default false */
  readonly isSecondTry?: true;
}

export interface ApiStream {
  readonly status: number;
  readonly retryAfterSeconds?: number;
  /** As of an ApiResponse. */
  readonly dateMilliseconds?: number;
  /** The body as it arrives; ends with the connection, and throws when it breaks. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** The way to the API server. Tests put faults between. */
export interface Transport {
  /** Host and port of the server, for metrics. */
  readonly host: string;
  /** @throws when there is no answer; an answer of whatever status is returned */
  request(request: ApiRequest): Promise<ApiResponse>;
  /** For watches: they have connections of their own, so that nothing delays them. */
  stream(request: ApiRequest): Promise<ApiStream>;
  /**
   * Takes back, synchronously, what was handed to a connection and hasn't left this process; requests that wait for
   * an answer fail as well. Watches and the lease's calls go on.
   * @default - what was handed over may leave
   */
  withdraw?(): void;
  close(): Promise<void>;
}
