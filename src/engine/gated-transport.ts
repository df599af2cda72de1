import { OperatorError } from '../contract/error.js';
import type { Answer, ServerGate } from './server-gate.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from './transport.js';

/** Served to everybody by default, and of no work to the server; an answer that refuses it is as good as any. */
const CHEAP: ApiRequest = { method: 'GET', path: '/version' };

/** What a gate sends through a transport to find out whether the server is there. */
export function probeOf(transport: Transport): (signal: AbortSignal) => Promise<Answer> {
  return (signal) => transport.request({ ...CHEAP, signal });
}

/**
 * Sends only what the gate of the server lets through.
 *
 * **Caveats.** A stream that was answered and breaks later says nothing: whoever read it opens another, which does.
 */
export function gated(transport: Transport, gate: ServerGate): Transport {
  const through = async <T extends Answer>(req: ApiRequest, send: () => Promise<T>): Promise<T> => {
    const pass = await gate.enter(req);
    let answer: T;
    try {
      answer = await send();
    } catch (error) {
      // A fence within holds back what is never sent.
      if (req.signal?.aborted || error instanceof OperatorError) gate.calledOff(pass);
      else gate.failed(pass, error as Error);
      throw error;
    }
    gate.answered(pass, answer);
    return answer;
  };
  return {
    host: transport.host,
    request: (req): Promise<ApiResponse> => through(req, () => transport.request(req)),
    stream: (req): Promise<ApiStream> => through(req, () => transport.stream(req)),
    close: async () => {
      gate.close();
      await transport.close();
    },
  };
}
