/**
 * Reaction to a failure.
 *
 * - `onChange`: nothing helps but a change of what was asked for, or of what stands in the way. It is tried
 *   again when one of them changes, and otherwise only every few minutes.
 * - `backoff`: the cause may pass by itself; tried again after an exponentially growing pause.
 * - `now`: our view was stale; tried again at once and not counted as a failure.
 */
export type Retry = 'onChange' | 'backoff' | 'now';

/** Properties of an `OperatorError`. */
export interface OperatorErrorProps {
  /** Word in CamelCase; becomes the reason of the condition that reports the failure. */
  readonly reason: string;
  /** A full sentence: what is wrong, where, and what to do about it. */
  readonly message: string;
  /** Path of the mistake in the custom resource, so that a line of a file can be named. @default - unknown */
  readonly path?: readonly (string | number)[];
  /** @default 'onChange' */
  readonly retry?: Retry;
  /** Least time until another try. @default 0 */
  readonly retryAfterMilliseconds?: number;
  /** Whether a kind has thrown what it shouldn't have: counted as a panic, and logged with its stack. @default false */
  readonly isBug?: boolean;
  readonly cause?: unknown;
}

/** Maximum number of characters of a message: it may hold what a user has written, and goes into logs, conditions and events. */
const MAX_MESSAGE = 4_096;

const BRAND = Symbol.for('reconstruct.OperatorError');

/** Error that this project throws on purpose. */
export class OperatorError extends Error {
  readonly reason: string;
  readonly retry: Retry;
  readonly retryAfterMilliseconds: number;
  readonly path: readonly (string | number)[];
  readonly isBug: boolean;
  readonly [BRAND] = true;

  /** Reports whether it is an OperatorError, also of another copy of this package: an author's kinds may bring their own. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    if (this !== OperatorError) return Function.prototype[Symbol.hasInstance].call(this, value);
    return typeof value === 'object' && value !== null && BRAND in value;
  }

  constructor(props: OperatorErrorProps) {
    const { message } = props;
    const isLong = message.length > MAX_MESSAGE;
    super(
      isLong ? `${message.slice(0, MAX_MESSAGE).toWellFormed()}... (${message.length} characters)` : message,
      props.cause === undefined ? undefined : { cause: props.cause },
    );
    this.name = 'OperatorError';
    this.reason = props.reason;
    this.retry = props.retry ?? 'onChange';
    this.retryAfterMilliseconds = props.retryAfterMilliseconds ?? 0;
    this.path = props.path ?? [];
    this.isBug = props.isBug ?? false;
  }
}

/** Returns the message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
