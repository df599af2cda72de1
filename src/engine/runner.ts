import { randomUUID } from 'node:crypto';
import type { Controller, Plan } from '../contract/controller.js';
import type { OperatorError } from '../contract/error.js';
import { describeRef, objectKey, splitKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { carryOut } from './carry-out.js';
import type { Outcome, Tools } from './carry-out.js';
import type { Clock } from './clock.js';
import { Queue } from './queue.js';
import { REFUSAL_MILLISECONDS } from './refusals.js';
import { StoreReader } from './stores.js';
import type { Stores } from './stores.js';

/** Stale views mend themselves at once, as a rule; one that doesn't is treated as a failure. */
const IMMEDIATE_RETRIES = 5;

export interface RunnerProps {
  readonly controller: Controller;
  readonly stores: Stores;
  readonly tools: Tools;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Keys in work at once. */
  readonly workers: number;
}

/** Runs one controller: from a change in a store to the key, through the queue, to the plan carried out. */
export class Runner {
  readonly queue: Queue;
  private readonly reader: StoreReader;
  private readonly log: Logger;
  /** Which keys to try again when an object that stood in their way changes. */
  private readonly blocked = new Map<string, Set<string>>();
  private readonly immediateRetries = new Map<string, number>();
  /** The last failure of a key, so that one that stays the same isn't told again and again. */
  private readonly told = new Map<string, string>();

  constructor(private readonly props: RunnerProps) {
    const { controller, stores, clock, random, log } = props;
    this.queue = new Queue({ clock, random });
    this.reader = new StoreReader(controller.watches, stores);
    this.log = log.child({ controller: controller.name, kind: controller.kind });
    for (const watch of controller.watches) {
      this.reader.store(watch.type).onChange((before, after) => {
        // The old state too: an object may have changed hands.
        for (const object of [before, after]) {
          if (!object) continue;
          for (const key of watch.mapsTo(object)) this.queue.add(key);
          this.unblock(object);
        }
      });
    }
    props.metrics.onScrape(() => {
      const { name } = controller;
      props.metrics.queueDepth.set({ name, controller: name }, this.queue.depth);
    });
  }

  /** Works until the queue is closed; then every worker finishes what it has begun. Never rejects. */
  async run(): Promise<void> {
    const { controller, workers, metrics } = this.props;
    metrics.controllerStarted(controller.name, workers);
    await Promise.all(Array.from({ length: workers }, () => this.work()));
  }

  stop(): void {
    this.queue.close();
  }

  private async work(): Promise<void> {
    const { metrics, controller } = this.props;
    for (;;) {
      const key = await this.queue.take();
      if (key === undefined) return;
      metrics.activeWorkers.inc({ controller: controller.name });
      try {
        await this.reconcile(key);
      } finally {
        metrics.activeWorkers.dec({ controller: controller.name });
        this.queue.done(key);
      }
    }
  }

  private async reconcile(key: string): Promise<void> {
    const { controller, clock, metrics, tools } = this.props;
    const startedAt = clock.now();
    const log = this.log.child({ ...splitKey(key), reconcileId: randomUUID() });
    let plan: Plan;
    let outcome: Outcome;
    try {
      plan = controller.reconcile(key, this.reader, new Date(startedAt));
      outcome = await carryOut(plan, this.reader, tools);
    } catch (error) {
      metrics.reconciles.inc({ controller: controller.name, result: 'error' });
      metrics.reconcileErrors.inc({ controller: controller.name });
      const retryMilliseconds = Math.round(this.queue.addRateLimited(key));
      log.error({ err: error, retryMilliseconds }, 'Reconcile threw, which is a bug of the kind');
      return;
    }
    metrics.reconcileSeconds.observe({ controller: controller.name }, (clock.now() - startedAt) / 1000);
    this.report(outcome, log);
    this.schedule(key, plan, outcome, log);
  }

  private report({ changes, statusChanges }: Outcome, log: Logger): void {
    const { controller, metrics } = this.props;
    for (const { ref, action } of changes) {
      metrics.changes.inc({ controller: controller.name, action });
      const level =
        action === 'created' || action === 'configured' || action === 'deleted' ? 'info' : 'debug';
      log[level]({ child: ref.kind, action }, `${describeRef(ref)} ${action}`);
    }
    const statusWritten = statusChanges.some(({ action }) => action === 'configured');
    log.debug({ changes: changes.length, statusWritten }, 'Reconciled');
  }

  /** Decides when the key is taken again. */
  private schedule(key: string, plan: Plan, outcome: Outcome, log: Logger): void {
    const { controller, clock, metrics } = this.props;
    const failed = [...outcome.changes, ...outcome.statusChanges].filter(({ error }) => error !== undefined);
    for (const { ref } of failed) this.block(`${groupKind(ref)} ${objectKey(ref.namespace, ref.name)}`, key);
    const errors = failed.flatMap(({ error }) => error ?? []);
    if (errors.length > 0) {
      this.fail(key, errors, this.retry(key, errors), log);
      return;
    }
    this.queue.forget(key);
    this.immediateRetries.delete(key);
    if (plan.requeueAt) this.queue.addAfter(key, Math.max(0, plan.requeueAt.getTime() - clock.now()));
    if (plan.error) {
      this.fail(key, [plan.error], undefined, log);
      return;
    }
    this.told.delete(key);
    metrics.reconciles.inc({
      controller: controller.name,
      result: plan.requeueAt ? 'requeue_after' : 'success',
    });
  }

  /** Logs and counts failures; without a pause, nothing but a change leads to another try. */
  private fail(key: string, errors: readonly OperatorError[], pause: number | undefined, log: Logger): void {
    const { metrics } = this.props;
    const controller = this.props.controller.name;
    if (pause === 0) {
      metrics.reconciles.inc({ controller, result: 'requeue' });
      log.debug({ errors: errors.map(({ message }) => message) }, 'The view was stale, trying again');
      return;
    }
    metrics.reconciles.inc({ controller, result: 'error' });
    metrics.reconcileErrors.inc({ controller });
    if (errors.some(({ retry }) => retry === 'onChange')) metrics.terminalReconcileErrors.inc({ controller });
    if (pause !== undefined) metrics.queueRetries.inc({ name: controller, controller });
    const message = errors.map((error) => error.message).join('; ');
    const level = this.told.get(key) === message ? 'debug' : 'warn';
    this.told.set(key, message);
    const retryMilliseconds = pause === undefined ? undefined : Math.round(pause);
    for (const { reason, message } of errors)
      log[level]({ reason, error: message, retryMilliseconds }, 'Reconcile failed');
  }

  /** Plans the next try. Returns the pause in milliseconds. */
  private retry(key: string, errors: readonly OperatorError[]): number {
    const { random } = this.props;
    if (errors.every(({ retry }) => retry === 'now')) {
      const tries = (this.immediateRetries.get(key) ?? 0) + 1;
      this.immediateRetries.set(key, tries);
      if (tries <= IMMEDIATE_RETRIES) {
        this.queue.add(key);
        return 0;
      }
    }
    this.immediateRetries.delete(key);
    if (errors.some(({ retry }) => retry !== 'onChange')) return this.queue.addRateLimited(key);
    const delay = REFUSAL_MILLISECONDS * (1 + random() / 2);
    this.queue.addAfter(key, delay);
    return delay;
  }

  private block(objectId: string, key: string): void {
    const keys = this.blocked.get(objectId) ?? new Set();
    this.blocked.set(objectId, keys.add(key));
  }

  private unblock(object: AnyObject): void {
    if (this.blocked.size === 0) return;
    const { namespace, name } = object.metadata;
    const id = `${groupKind(object)} ${objectKey(namespace, name)}`;
    for (const key of this.blocked.get(id) ?? []) this.queue.add(key);
    this.blocked.delete(id);
  }
}
