import type { Change, ChangeSet } from '../contract/change.js';
import { describeRef } from '../contract/object.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { ReconcileLog } from './reconcile-log.js';

/** Whoever writes under ever new names mustn't make ever new series. */
const MANAGER_LIMIT = 20;

const LEVELS = {
  created: 'info',
  configured: 'info',
  recreated: 'info',
  deleted: 'info',
  corrected: 'warn',
  unchanged: 'debug',
  skipped: 'debug',
  // Why is told where the retry is planned.
  failed: 'debug',
} as const satisfies Record<Change['action'], keyof Logger>;

/** Logs and counts what became of the objects of a controller's plans. */
export class ChangeMetrics {
  private readonly managers = new Set<string>();

  constructor(
    private readonly metrics: Metrics,
    private readonly controller: string,
  ) {}

  record(changes: ChangeSet, log: Pick<ReconcileLog, 'at'>): void {
    const { controller, metrics } = this;
    for (const { ref, action, drift, conflicts } of changes) {
      metrics.changes.inc({ controller, action });
      const level = LEVELS[action];
      const more = { ...drift, ...(conflicts && { conflicts }) };
      log.at(level)?.[level]({ child: ref.kind, action, ...more }, `${describeRef(ref)} ${action}`);
      if (action === 'corrected') this.countDrift(drift?.managers ?? []);
    }
  }

  private countDrift(managers: readonly string[]): void {
    const names = managers.length > 0 ? managers.map((manager) => this.named(manager)) : ['unknown'];
    for (const manager of new Set(names)) this.metrics.drift.inc({ controller: this.controller, manager });
  }

  private named(manager: string): string {
    if (this.managers.has(manager)) return manager;
    if (this.managers.size >= MANAGER_LIMIT) return 'other';
    this.managers.add(manager);
    return manager;
  }
}
