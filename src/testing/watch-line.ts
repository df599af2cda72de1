import type { AnyObject } from '../contract/object.js';

/** Event of a watch, as the bytes that it came in. */
export class WatchLine {
  private parsed: { readonly type: string; readonly object: AnyObject } | undefined;

  /** @param bytes without the newline */
  constructor(readonly bytes: Uint8Array) {}

  static of(type: string, object: object): WatchLine {
    return new WatchLine(Buffer.from(JSON.stringify({ type, object })));
  }

  /** Returns the end of a watch by the server: HTTP status 200, and an error as the last event. */
  static error(code: number, reason: string): WatchLine {
    const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure' };
    return WatchLine.of('ERROR', { ...status, message: `${reason}, by the test`, reason, code });
  }

  get type(): string {
    return this.event.type;
  }

  get object(): AnyObject {
    return this.event.object;
  }

  private get event(): { readonly type: string; readonly object: AnyObject } {
    this.parsed ??= JSON.parse(Buffer.from(this.bytes).toString()) as { type: string; object: AnyObject };
    return this.parsed;
  }
}
