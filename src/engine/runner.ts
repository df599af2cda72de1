import { randomUUID } from 'node:crypto';
import type { Action } from '../contract/change.js';
import type { Controller, Plan, Watch } from '../contract/controller.js';
import type { OperatorError } from '../contract/error.js';
import { describeRef, objectId, refOf, splitKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { askedDelay } from './api-error.js';
import { Blockers } from './blockers.js';
import { carryOut } from './carry-out.js';
import type { Outcome, Tools } from './carry-out.js';
import type { Clock } from './clock.js';
import { canonicalJson } from './managed-fields.js';
import { Queue } from './queue.js';
import { REFUSAL_MILLISECONDS } from './refusals.js';
import { StoreReader } from './stores.js';
import type { Stores } from './stores.js';

/** Stale views mend themselves at once, as a rule; one that doesn't is treated as a failure. */
const IMMEDIATE_RETRIES = 5;

/** A plan that asks for a time that has passed is carried out again after this. */
const PAST_REQUEUE_MILLISECONDS = 1_000;

/** What changed nothing, or is told in other words. */
const QUIET: ReadonlySet<Action> = new Set<Action>(['unchanged', 'skipped', 'failed']);

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
  private readonly blockers = new Blockers();
  private readonly immediateRetries = new Map<string, number>();
  /** The last failure of a key, so that one that stays the same isn't told again and again. */
  private readonly told = new Map<string, string>();

  constructor(private readonly props: RunnerProps) {
    const { controller, stores, clock, random, log } = props;
    this.queue = new Queue({ clock, random });
    this.reader = new StoreReader(controller.watches, stores, controller.name);
    this.log = log.child({ controller: controller.name, kind: controller.kind });
    for (const watch of controller.watches) {
      this.reader.store(watch.type).onChange((before, after, origin) => {
        // A failure whose text is new each time would otherwise wake itself by being written down.
        if (origin === 'own' && differOnlyInStatus(before, after)) return;
        this.changed(watch, before, after);
      }, this.reader);
    }
    props.metrics.onScrape(() => {
      const { name } = controller;
      props.metrics.queueDepth.set({ name, controller: name, priority: 'change' }, this.queue.depth);
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

  /** Adds each key that a change concerns, once: those of the old state too, since an object may change hands. */
  private changed(watch: Watch, before: AnyObject | undefined, after: AnyObject | undefined): void {
    const keys = new Set<string>();
    for (const object of [before, after]) {
      if (!object) continue;
      try {
        for (const key of watch.mapsTo(object)) keys.add(key);
      } catch (error) {
        // Others are to hear of the change all the same.
        this.log.error(
          { err: error },
          `${describeRef(refOf(object))} can't be mapped, which is a bug of the kind`,
        );
      }
      for (const key of this.blockers.waitingFor(objectId(object))) keys.add(key);
    }
    for (const key of keys) this.queue.add(key);
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
    try {
      const plan = controller.reconcile(key, this.reader, new Date(startedAt));
      // While the plan is carried out, what it touches may already change again.
      const touched = [...plan.apply, ...plan.delete].map(({ object }) => objectId(object));
      this.blockers.wait(key, touched);
      const outcome = await carryOut(plan, this.reader, tools);
      metrics.reconcileSeconds.observe({ controller: controller.name }, (clock.now() - startedAt) / 1000);
      this.report(outcome, log);
      this.schedule(key, plan, outcome, log);
    } catch (error) {
      metrics.reconciles.inc({ controller: controller.name, result: 'error' });
      metrics.reconcileErrors.inc({ controller: controller.name });
      const retryMilliseconds = Math.round(this.queue.addRateLimited(key));
      log.error({ err: error, retryMilliseconds }, 'Reconcile threw, which is a bug of the kind');
    }
  }

  private report({ changes, statusChanges }: Outcome, log: Logger): void {
    const { controller, metrics } = this.props;
    for (const { ref, action, drift } of changes) {
      metrics.changes.inc({ controller: controller.name, action });
      const level = QUIET.has(action) ? 'debug' : 'info';
      log[level]({ child: ref.kind, action, ...(drift && { drift }) }, `${describeRef(ref)} ${action}`);
    }
    const statusWritten = statusChanges.some(({ action }) => action === 'configured');
    log.debug({ changes: changes.length, statusWritten }, 'Reconciled');
  }

  /** Decides when the key is taken again. */
  private schedule(key: string, plan: Plan, outcome: Outcome, log: Logger): void {
    const { controller, clock, metrics } = this.props;
    const inTheWay = outcome.changes.filter(({ action }) => action === 'failed' || action === 'skipped');
    this.blockers.wait(
      key,
      inTheWay.map(({ ref }) => objectId(ref)),
    );
    const requeueIn = requeueDelay(plan.requeueAt, clock.now());
    const errors = [...outcome.changes, ...outcome.statusChanges].flatMap(({ error }) => error ?? []);
    if (plan.error) errors.unshift(plan.error);
    if (errors.length > 0) {
      this.fail(key, errors, this.retry(key, errors), log);
    } else {
      this.queue.forget(key);
      this.immediateRetries.delete(key);
      this.told.delete(key);
      const result = requeueIn === undefined ? 'success' : 'requeue_after';
      metrics.reconciles.inc({ controller: controller.name, result });
    }
    if (requeueIn !== undefined) this.queue.addAfter(key, requeueIn);
  }

  /** Logs and counts failures, after which the key is taken again when the pause is over. */
  private fail(key: string, errors: readonly OperatorError[], pause: number, log: Logger): void {
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
    metrics.queueRetries.inc({ name: controller, controller });
    const message = errors.map((error) => error.message).join('; ');
    const level = this.told.get(key) === message ? 'debug' : 'warn';
    this.told.set(key, message);
    const retryMilliseconds = Math.round(pause);
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
    if (errors.some(({ retry }) => retry !== 'onChange')) {
      return this.queue.addRateLimited(key, Math.max(...errors.map(shortestPause)));
    }
    const delay = REFUSAL_MILLISECONDS * (1 + random() / 2);
    this.queue.addAfter(key, delay);
    return delay;
  }
}

/** In milliseconds: what the API server has asked for, or what the error itself says. */
function shortestPause({ cause, retryAfterMilliseconds }: OperatorError): number {
  return Math.max(askedDelay(cause), retryAfterMilliseconds);
}

/** A time that has passed already would be met at once, and then again. */
function requeueDelay(at: Date | undefined, now: number): number | undefined {
  if (at === undefined) return undefined;
  const delay = at.getTime() - now;
  if (Number.isNaN(delay)) throw new TypeError('requeueAt is not a valid date');
  return delay > 0 ? delay : PAST_REQUEUE_MILLISECONDS;
}

function differOnlyInStatus(before: AnyObject | undefined, after: AnyObject | undefined): boolean {
  if (!before || !after) return false;
  const withoutVersion = ({ metadata }: AnyObject): string =>
    canonicalJson({ ...metadata, resourceVersion: '' });
  return withoutVersion(before) === withoutVersion(after);
}
