import { randomUUID } from 'node:crypto';
import { splitKey } from '../contract/object.js';
import type { Logger, LogLevel } from '../telemetry/logger.js';

/**
 * The log of one reconcile. After a start most reconciles have nothing to tell, so what marks the lines as those of
 * one reconcile is made for the first line that is written.
 */
export class ReconcileLog {
  private child: Logger | undefined;

  constructor(
    private readonly parent: Logger,
    private readonly key: string,
  ) {}

  /** Nothing where lines of this level aren't written. */
  at(level: LogLevel): Logger | undefined {
    if (!this.parent.isLevelEnabled(level)) return undefined;
    return (this.child ??= this.parent.child({ ...splitKey(this.key), reconcileId: randomUUID() }));
  }
}
