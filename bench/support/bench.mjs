// What the phases share: one control plane, at most one operator process, and the figures of the operator.
import { setTimeout as delay } from 'node:timers/promises';
import { Audit, beyondWatching, byKind, writes } from './audit.mjs';
import { BenchCluster } from './cluster.mjs';
import { OperatorProcess, ours } from './operators.mjs';
import { othersSince } from './process.mjs';
import { settle } from './statuses.mjs';
import { until } from './util.mjs';

export class Bench {
  /** The operator that the phase is about. */
  operator = ours;
  #namespaces = [];
  #made = 0;

  /**
   * @param options `count` custom resources, further arguments for our operator and its Node
   * @param clusterOptions see `BenchCluster.start`
   */
  static async start(figures, options, clusterOptions) {
    return new Bench(await BenchCluster.start(clusterOptions), figures, options);
  }

  constructor(cluster, figures, options) {
    Object.assign(this, { cluster, figures, options, count: options.count });
    this.audit = new Audit(cluster.sandbox.auditLogPath, cluster.user);
  }

  note(phase, figure, value, unit, bar) {
    this.figures.note(this.operator.name, phase, figure, value, unit, bar);
  }

  async namespace(purpose) {
    const name = await this.cluster.makeNamespace(`${purpose}-${++this.#made}`);
    this.#namespaces.push(name);
    return name;
  }

  /** The one that runs, or a new one. */
  async withController() {
    this.controller ??= await OperatorProcess.start(this.operator, this.cluster, this.options);
    return this.controller;
  }

  async withoutController() {
    await this.controller?.stop();
    this.controller = undefined;
  }

  async freshController() {
    await this.withoutController();
    return this.withController();
  }

  /** Stops the operator and deletes everything that a phase has made, so that the next one begins with nothing. */
  async cleanUp() {
    await this.withoutController();
    for (const namespace of this.#namespaces) await this.cluster.deleteAll(namespace);
    this.#namespaces = [];
  }

  /** Everything that was asked for has happened, and nothing more is written. */
  async settled(namespaces) {
    const result = await settle(this.cluster, namespaces);
    await this.quiet();
    return result;
  }

  /** Waits until the operator has nothing left to do, and has written nothing for a second. */
  async quiet() {
    let mark = this.audit.mark();
    await until(
      'the operator to write nothing',
      async () => {
        const quiet = writes(this.audit.since(mark)).length === 0;
        mark = this.audit.mark();
        return quiet && (await this.controller.idle());
      },
      // Ten thousand custom resources keep a control plane of two processors busy for minutes.
      { every: 1_000, milliseconds: 1_800_000 },
    );
  }

  /** Notes what the operator asks for while it is left alone, which may be nothing. */
  async leaveAlone(phase) {
    const { controller } = this;
    const { idleSeconds } = this.options;
    const [mark, cpu] = [this.audit.mark(), controller.cpuSeconds];
    await delay(idleSeconds * 1000);
    const requests = beyondWatching(this.audit.since(mark));
    this.note(phase, 'seconds', idleSeconds);
    this.note(phase, 'requests beside watches and the lease', requests.length, '', 0);
    this.note(phase, 'CPU', controller.cpuSeconds - cpu, 's');
    for (const kind of Object.entries(byKind(requests))) process.stderr.write(`    ${kind.join(' ')}\n`);
  }

  /**
   * Measures what a piece of work costs the operator, until all has settled; notes it, and the statuses' faults.
   * @param cold begins with the start of the process
   */
  async costs(phase, namespaces, work, { cold = false } = {}) {
    const mark = this.audit.mark();
    if (cold) await this.freshController();
    const controller = await this.withController();
    const cpu = cold ? 0 : controller.cpuSeconds;
    if (!cold) controller.resetPeak();
    const others = othersSince(() => this.ownPids());
    await work();
    this.note(phase, 'share of the processors that others took', others() * 100, '%');
    const { faults, lagSeconds } = await this.settled(namespaces);
    const entries = this.audit.since(mark);
    const usage = { cpuSeconds: controller.cpuSeconds - cpu, entries };
    this.note(phase, 'CPU', usage.cpuSeconds, 's');
    this.note(phase, 'peak RSS', controller.resident.peak, 'MiB');
    this.note(phase, 'requests', byKind(beyondWatching(entries)));
    this.note(phase, 'statuses wrong in the end', faults.length, '', 0);
    this.note(phase, 'statuses right after the last rollout', lagSeconds, 's');
    for (const fault of faults.slice(0, 3)) process.stderr.write(`    ${fault}\n`);
    return usage;
  }

  /** What a measurement is made of: this process, the operator and the control plane. */
  ownPids() {
    const programs = Object.values(this.cluster.sandbox.processes).map(({ pid }) => pid);
    return [process.pid, this.controller.child.pid, ...programs];
  }

  async stop() {
    await this.withoutController();
    await this.cluster.stop();
  }
}
