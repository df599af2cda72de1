import type { Controller } from '../contract/controller.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { assemble } from './assemble.js';
import type { Parts } from './assemble.js';
import { aborted, systemClock } from './clock.js';
import type { Clock, Timer } from './clock.js';
import type { ElectorProps } from './elector.js';
import type { Transport } from './transport.js';

/** Silence of 75 s replaces a watch, so this much means that replacing it doesn't work. */
const LONGEST_SILENCE_MILLISECONDS = 300_000;
/** Kubernetes kills a Pod 30 s after it has asked it to stop; until then there has to be time to release the lease. */
const DRAIN_MILLISECONDS = 20_000;

export interface ManagerProps {
  readonly controllers: readonly Controller[];
  readonly transport: Transport;
  readonly log: Logger;
  readonly metrics: Metrics;
  /** Names this process in events; a Pod's name is a good choice. */
  readonly instance: string;
  /** Watches only these, so that Roles in them suffice. @default - all namespaces */
  readonly namespaces?: readonly string[];
  /** Keys in work at once, per controller. @default 16 */
  readonly workers?: number;
  /** Writes under way at once, at most. @default 32 */
  readonly maxWrites?: number;
  /** Works only while it holds the lease. @default - works at once, and with any number of others */
  readonly election?: ElectionProps;
  /** @default systemClock */
  readonly clock?: Clock;
  /** From 0 to 1, for jitter. @default Math.random */
  readonly random?: () => number;
  /** Makes whoever changes an object in memory fail: for tests. @default false */
  readonly freeze?: boolean;
}

export type ElectionProps = Pick<
  ElectorProps,
  'namespace' | 'identity' | 'leaseDurationSeconds' | 'renewDeadlineMilliseconds' | 'retryPeriodMilliseconds'
>;

/** What a part of the engine is waiting for. */
export interface NotReady {
  /** The resource, as in `deployments.apps in shop`. */
  readonly what: string;
  readonly why: string;
}

/**
 * The engine: watches what the controllers name, and reconciles what their watches map to, until it is stopped.
 *
 * **Guarantees.** A controller works only once all of its watches have delivered a complete list, and with an election
 * only while this process leads; until then it is ready to take over. When the engine is stopped, what is in flight is
 * finished first, and then the lease is released.
 */
export class Manager {
  private readonly clock: Clock;
  private readonly parts: Parts;

  constructor(private readonly props: ManagerProps) {
    this.clock = props.clock ?? systemClock;
    this.parts = assemble(props, this.clock, props.random ?? Math.random);
  }

  /**
   * What has yet to deliver its first list, and what may be installed and isn't served. Of a controller whose custom
   * resources can't be read, these alone are named: its other watches wait for them.
   */
  notReady(): NotReady[] {
    return this.parts.watching.opened().flatMap(({ name, reflector }) => {
      const { state, doubtful } = reflector;
      if (doubtful !== undefined) return [{ what: name, why: doubtful }];
      if (reflector.synced) return [];
      return [
        {
          what: name,
          why: state.phase === 'waiting' ? state.error.message : this.whyListing(),
        },
      ];
    });
  }

  /** Why this process may believe wrongly that it leads; empty while it can't. */
  staleLeadership(): string[] {
    return this.parts.elector?.unhealthy() ?? [];
  }

  /** Watches that have been silent for far too long although the API server answers: a bug, which a restart mends. */
  silentWatches(): string[] {
    if (this.parts.gate.isUnreachable) return [];
    const now = this.clock.monotonic();
    return this.parts.watching.opened().flatMap(({ name, reflector }) => {
      const silence = reflector.silentForMilliseconds(now);
      return silence > LONGEST_SILENCE_MILLISECONDS
        ? [`${name}: nothing heard for ${Math.round(silence / 1000)} s`]
        : [];
    });
  }

  /**
   * Reconciles all keys of a controller again, behind those that somebody waits for: something that its plans depend on
   * has changed, and no watch tells of it. Several controllers may have the name; none need have it.
   */
  lookAgain(name: string): void {
    for (const { runner, controller } of this.parts.runners) if (controller.name === name) runner.lookAgain();
  }

  /** Works until the signal aborts and everything in flight is finished. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { log } = this.props;
    const watching = new AbortController();
    const electing = this.parts.elector?.run();
    const watches = this.watch(watching.signal);
    let drain: Timer | undefined;
    const { promise: tooLong, resolve: giveUp } = Promise.withResolvers<false>();
    const stop = (): void => {
      log.info('Stopping: finishing what is in flight');
      for (const { runner } of this.parts.runners) runner.stop();
      drain = this.clock.setTimer(DRAIN_MILLISECONDS, () => {
        const seconds = DRAIN_MILLISECONDS / 1000;
        log.warn({ seconds }, 'Still not finished: stopping all the same, the lease is not released');
        for (const { runner } of this.parts.runners) void runner.interrupt();
        giveUp(false);
      });
    };
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    const work = Promise.all(this.parts.runners.map((entry) => this.runWhenSynced(entry, signal)));
    const finished = await Promise.race([work.then(() => true), tooLong]);
    drain?.cancel();
    await this.parts.recorder.close();
    // Watches go last: the answers to the last writes were still of use.
    watching.abort();
    await watches;
    // It was renewed until now. What is still under way may yet be carried out, so nobody else may begin then.
    if (finished) await this.parts.elector?.release();
    else this.parts.elector?.stop();
    await electing;
    await this.parts.transport.close();
    log.info('Stopped');
  }

  /** With an election, from its first try on: what is listed after it needn't be listed again to lead at once. */
  private async watch(signal: AbortSignal): Promise<void> {
    const { elector, watching } = this.parts;
    if (elector) await Promise.race([aborted(elector.firstTry), aborted(signal)]);
    await watching.run(signal);
  }

  private whyListing(): string {
    return this.parts.gate.isUnreachable ? 'the API server is unreachable' : 'the first list is not complete';
  }

  private async runWhenSynced(
    { runner, controller }: Parts['runners'][number],
    signal: AbortSignal,
  ): Promise<void> {
    if (signal.aborted) return;
    const synced = this.parts.watching.of(controller).map(({ firstSync }) => firstSync);
    await Promise.race([Promise.all(synced), aborted(signal)]);
    if (isAborted(signal)) return;
    this.props.log.info({ controller: controller.name, queued: runner.queue.depth }, 'Controller started');
    await runner.run();
  }
}

function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}
