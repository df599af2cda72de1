import type { Change, ChangeSet } from '../../contract/change.js';
import type { Barrier, DriftMode, EventProps, Step } from '../../contract/plan.js';
import type { Logger } from '../../telemetry/logger.js';
import type { Metrics } from '../../telemetry/metrics.js';
import type { Api } from '../../client/api.js';
import type { Clock } from '../../client/clock.js';
import type { Regarding } from '../loop/events.js';
import type { Memory } from '../steps/memory.js';
import type { Writer } from '../watch/cache.js';
import type { StoreReader } from '../watch/reader.js';

/**
 * Tools of the steps of a plan: live, or dry. A dry hand can't write, whatever a handler does: its API refuses all but reads
 * and dry runs, its memory and its metrics are its own, its stores are its own or take nothing, and it sends no events.
 */
export interface Hand {
  readonly api: Api;
  readonly reader: StoreReader;
  readonly writer: Writer;
  readonly memory: Memory;
  readonly clock: Clock;
  readonly events: { send(regarding: Regarding, event: EventProps): void };
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Mode for objects whose steps don't give one. */
  readonly drift: DriftMode;
  /** Whether nothing is written. */
  readonly isDry: boolean;
  /** Aborts when the plan is to be given up; its reason is an OperatorError. */
  readonly signal: AbortSignal;
  /** Aborts when the process is to end: then no step waits any more, and what is left is left. */
  readonly stopping: AbortSignal;
}

/** Reason with which a dry hand refuses to delete: the object would have to go before it is created again. */
export const WOULD_DELETE = 'WouldDelete';

/** Step that a handler carries out. */
export type HandledStep = Exclude<Step, Barrier>;

/**
 * Carries out the steps of one name.
 *
 * **Guarantees** that it has to give: what is as the step wants it costs no request; a failure is part of the answer, or thrown as
 * an ApiError or OperatorError; whatever it writes, it writes through the store of the object, which then knows.
 */
export interface StepHandler<S extends HandledStep = HandledStep> {
  readonly do: S['do'];
  /** @param before changes of the steps before it, in the order of the plan */
  carryOut(step: S, hand: Hand, before: ChangeSet): Promise<Change>;
  /**
   * Returns what carrying the step out would change, for a dry hand.
   * @default - `carryOut` does, with dry runs: for steps that do nothing but apply
   */
  preview?(step: S, hand: Hand, before: ChangeSet): Promise<Change>;
}
