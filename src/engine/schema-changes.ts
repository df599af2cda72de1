import { isBuiltIn } from '../contract/resource.js';
import type { Api, Scope } from './api.js';
import type { Clock, Timer } from './clock.js';

/** The hash moves within a second of the change, as a rule before the watches end (1.36); other API servers may be later. */
const ASKED_AFTER_MILLISECONDS = 10_000;

export interface SchemaChangesProps {
  readonly api: Api;
  readonly scope: Scope;
  readonly clock: Clock;
  /** Called when objects may have changed although their versions haven't. */
  readonly onChange: () => void;
}

/**
 * Notices that a CRD has another schema: its objects are read with other defaults and without pruned fields then, and
 * their versions don't move. The API server ends the watches of the kind, so nothing is asked for unless one ends early.
 */
export class SchemaChanges {
  private hash: string | undefined;
  private isSuspected = false;
  private endsAt = -Infinity;
  private timer: Timer | undefined;

  constructor(private readonly props: SchemaChangesProps) {}

  /** The API server has accepted a watch, which it ends by itself after so long. */
  opened(lifetimeMilliseconds: number): void {
    const { scope, clock } = this.props;
    this.endsAt = clock.monotonic() + lifetimeMilliseconds;
    if (this.isSuspected && !isBuiltIn(scope.type))
      this.timer = clock.setTimer(ASKED_AFTER_MILLISECONDS, () => void this.ask());
  }

  /** @param isAborted it was given up here */
  ended(isAborted: boolean): void {
    this.timer?.cancel();
    this.isSuspected ||= !isAborted && this.props.clock.monotonic() < this.endsAt - 1_000;
    this.endsAt = -Infinity;
  }

  private async ask(): Promise<void> {
    const { api, scope, onChange } = this.props;
    this.isSuspected = false;
    const hash = await api.schemaHash(scope.type.apiVersion).catch(() => undefined);
    if (hash === undefined || hash === this.hash) return;
    this.hash = hash;
    onChange();
  }
}
