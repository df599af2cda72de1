import type { Change } from '../contract/change.js';
import type { OperatorError } from '../contract/error.js';
import type { ObjectRef } from '../contract/object.js';

const ABORTED = Symbol('aborted');

/**
 * The steps of a plan, one after another or several at a time, until going on is of no use: the signal has aborted, or
 * the API server is out of reach. An answer is about its own object, 429 included.
 *
 * **Guarantees.** Once the signal has aborted, no step is begun. A step that is under way then isn't ended, since its
 * request may take effect all the same; only the wait for it is. Never rejects unless a step does.
 */
export class Steps {
  /** Why the signal ended the plan before its last step. */
  givenUp: OperatorError | undefined;
  /** Resolves once the steps that aren't waited for any more have ended. */
  pending: Promise<void> | undefined;
  private over = false;
  private aborted: Promise<typeof ABORTED> | undefined;

  constructor(private readonly signal: AbortSignal) {}

  /** Nothing more is tried. */
  get ended(): boolean {
    return this.over || this.signal.aborted;
  }

  /** What became of one object. Skipped once going on is of no use. */
  async take(ref: ObjectRef, step: () => Promise<Change>): Promise<Change> {
    if (this.over) return { ref, action: 'skipped' };
    const change = this.signal.aborted ? undefined : await this.wait(step());
    if (!change) return this.giveUp(ref);
    if (change.error?.reason === 'Unreachable') this.over = true;
    return change;
  }

  /** The outcome of the step, or nothing if the signal aborts before. */
  private async wait<T>(step: Promise<T>): Promise<T | undefined> {
    this.aborted ??= abortOf(this.signal);
    const outcome = await Promise.race([step, this.aborted]);
    if (outcome !== ABORTED) return outcome;
    this.pending = settled([this.pending, step]);
    return undefined;
  }

  private giveUp(ref: ObjectRef): Change {
    this.over = true;
    this.givenUp = this.signal.reason as OperatorError;
    return { ref, action: 'failed', error: this.givenUp };
  }
}

async function abortOf(signal: AbortSignal): Promise<typeof ABORTED> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => {
      resolve(ABORTED);
    });
  });
}

async function settled(steps: readonly unknown[]): Promise<void> {
  await Promise.allSettled(steps);
}
