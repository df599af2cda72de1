import type { Dispatcher } from 'undici';

type Dispatch = Dispatcher['dispatch'];

/**
 * Lets undici ask `admit` of a request's options at the one moment that counts: when a request leaves undici's queues,
 * in which it may have waited for a connection or for others, and right before it is written to the socket. undici
 * tells the handler of it by `onRequestStart`; what that throws fails the request, and nothing is written.
 * @see https://undici.nodejs.org/#/docs/api/Dispatcher.md#parameter-dispatchhandler
 */
export function admitting(dispatch: Dispatch): Dispatch {
  return (options, handler) => {
    const { admit } = options as { admit?: () => void };
    return dispatch(options, admit ? new Admitted(handler, admit) : handler);
  };
}

/** Passes everything on. */
class Admitted implements Dispatcher.DispatchHandler {
  constructor(
    private readonly handler: Dispatcher.DispatchHandler,
    private readonly admit: () => void,
  ) {}

  onRequestStart(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onRequestStart']>>): void {
    this.admit();
    this.handler.onRequestStart?.(...args);
  }

  onRequestUpgrade(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onRequestUpgrade']>>): void {
    this.handler.onRequestUpgrade?.(...args);
  }

  onResponseStart(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>): void {
    this.handler.onResponseStart?.(...args);
  }

  onResponseData(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseData']>>): void {
    this.handler.onResponseData?.(...args);
  }

  onResponseEnd(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseEnd']>>): void {
    this.handler.onResponseEnd?.(...args);
  }

  onResponseError(...args: Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseError']>>): void {
    this.handler.onResponseError?.(...args);
  }
}
