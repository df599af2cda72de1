import { eventually } from './cluster.js';
import type { RunningController } from './operator.js';

/** Arguments by which Node prints where its inspector listens, on loopback. */
export const inspectable = ['--inspect=127.0.0.1:0'];

/** The functions of one script and how often each was called. */
export interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly {
    readonly functionName: string;
    readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
  }[];
}

interface Reply {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

/** Inspector protocol of a controller that was started as `inspectable`. */
export class Inspector implements Disposable {
  private readonly waiting = new Map<number, PromiseWithResolvers<unknown>>();
  private last = 0;

  private constructor(private readonly socket: WebSocket) {
    socket.addEventListener('message', ({ data }) => {
      const { id = 0, result, error } = JSON.parse(String(data)) as Reply;
      const reply = this.waiting.get(id);
      this.waiting.delete(id);
      if (error) reply?.reject(new Error(error.message));
      else reply?.resolve(result);
    });
  }

  static async attach(controller: RunningController): Promise<Inspector> {
    const url = await eventually(() => {
      const line = controller.strayOutput.find((candidate) => candidate.startsWith('Debugger listening on'));
      if (line === undefined) throw new Error('The controller has not printed where its inspector listens');
      return line.replace('Debugger listening on ', '');
    });
    const socket = new WebSocket(url);
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    socket.addEventListener('open', () => {
      resolve(undefined);
    });
    socket.addEventListener('error', () => {
      reject(new Error(`${url} can't be connected to`));
    });
    await promise;
    return new Inspector(socket);
  }

  /** Counts the calls of every function from now on. */
  async startCoverage(): Promise<void> {
    await this.send('Profiler.enable');
    await this.send('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  }

  /** Returns the calls since it was asked last. */
  async takeCoverage(): Promise<readonly ScriptCoverage[]> {
    const { result } = (await this.send('Profiler.takePreciseCoverage')) as { result: ScriptCoverage[] };
    return result;
  }

  /** Returns the size of the heap after a full garbage collection. */
  async heapBytes(): Promise<number> {
    // What finalizers let go of is collected by the second one.
    for (let times = 0; times < 2; times++) await this.send('HeapProfiler.collectGarbage');
    return ((await this.send('Runtime.getHeapUsage')) as { usedSize: number }).usedSize;
  }

  /** Returns the value of an expression in the controller's process. */
  async evaluate(expression: string): Promise<unknown> {
    const { result } = (await this.send('Runtime.evaluate', { expression, returnByValue: true })) as {
      readonly result: { readonly value?: unknown };
    };
    return result.value;
  }

  [Symbol.dispose](): void {
    this.socket.close();
  }

  private send(method: string, params: object = {}): Promise<unknown> {
    const id = ++this.last;
    const reply = Promise.withResolvers<unknown>();
    this.waiting.set(id, reply);
    this.socket.send(JSON.stringify({ id, method, params }));
    return reply.promise;
  }
}
