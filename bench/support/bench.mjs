// What the phases share: one control plane, at most one controller, and what was measured so far.
import { setTimeout as delay } from 'node:timers/promises';
import { Audit, beyondWatching, byKind, writes } from './audit.mjs';
import { BenchCluster } from './cluster.mjs';
import { Controller } from './controller.mjs';
import { othersSince } from './process.mjs';
import { settle } from './statuses.mjs';
import { until } from './util.mjs';
import { createAll, customResources } from './workload.mjs';

export class Bench {
  #populations = new Map();
  #namespaces = 0;

  /**
   * @param options `count` custom resources, further arguments for the controller and its Node
   * @param clusterOptions see `BenchCluster.start`
   */
  static async start(figures, options, clusterOptions) {
    return new Bench(await BenchCluster.start(clusterOptions), figures, options);
  }

  constructor(cluster, figures, options) {
    Object.assign(this, { cluster, figures, options, count: options.count });
    this.audit = new Audit(cluster.sandbox.auditLogPath, cluster.user);
  }

  note(...figure) {
    this.figures.note(...figure);
  }

  namespace(purpose) {
    return this.cluster.makeNamespace(`${purpose}-${++this.#namespaces}`);
  }

  /** The one that runs, or a new one. */
  async withController() {
    this.controller ??= await Controller.start(this.cluster, this.options);
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

  /** A namespace with that many settled custom resources of a size, made once. */
  async population(size, count = this.count) {
    const id = `${count} ${size}`;
    if (!this.#populations.has(id)) {
      await this.withController();
      const namespace = await this.namespace(`size-${size}`);
      await createAll(this.cluster, customResources(namespace, count, size));
      await this.settled([namespace]);
      this.#populations.set(id, namespace);
    }
    return this.#populations.get(id);
  }

  keepPopulation(size, namespace) {
    this.#populations.set(`${this.count} ${size}`, namespace);
  }

  /** Everything that was asked for has happened, and nothing more is written. */
  async settled(namespaces) {
    const result = await settle(this.cluster, namespaces);
    await this.quiet();
    return result;
  }

  /** Waits until the controller has nothing left to do, and has written nothing for a second. */
  async quiet() {
    let mark = this.audit.mark();
    await until(
      'the controller to write nothing',
      async () => {
        const quiet = writes(this.audit.since(mark)).length === 0;
        mark = this.audit.mark();
        return quiet && (await this.controller.idle());
      },
      // Ten thousand custom resources keep a control plane of two processors busy for minutes.
      { every: 1_000, milliseconds: 1_800_000 },
    );
  }

  /**
   * Notes what the controller asks for while it is left alone, which may be nothing.
   * @param when told before each figure, where a phase does so more than once
   */
  async leaveAlone(phase, when = '') {
    const { controller } = this;
    const { idleSeconds } = this.options;
    const [mark, cpu] = [this.audit.mark(), controller.cpuSeconds];
    await delay(idleSeconds * 1000);
    const requests = beyondWatching(this.audit.since(mark));
    const label = (figure) => (when ? `${when}: ${figure}` : figure);
    this.note(phase, label('seconds'), idleSeconds);
    this.note(phase, label('requests beside watches and the lease'), requests.length, '', 0);
    this.note(phase, label('controller CPU'), controller.cpuSeconds - cpu, 's');
    for (const kind of Object.entries(byKind(requests))) process.stderr.write(`    ${kind.join(' ')}\n`);
  }

  /** Measures what a piece of work costs the controller, until all has settled; notes it, and the statuses' faults. */
  async costs(phase, namespaces, work) {
    const controller = await this.withController();
    const [mark, cpu] = [this.audit.mark(), controller.cpuSeconds];
    controller.resetPeak();
    const others = othersSince(() => this.ownPids());
    await work();
    this.note(phase, 'share of the processors that others took', others() * 100, '%');
    const { faults, lagSeconds } = await this.settled(namespaces);
    const entries = this.audit.since(mark);
    const usage = { cpuSeconds: controller.cpuSeconds - cpu, entries };
    this.note(phase, 'controller CPU', usage.cpuSeconds, 's');
    this.note(phase, 'controller peak RSS', controller.resident.peak, 'MiB');
    this.note(phase, 'requests', byKind(beyondWatching(entries)));
    this.note(phase, 'statuses wrong in the end', faults.length, '', 0);
    this.note(phase, 'statuses right after the last rollout', lagSeconds, 's');
    for (const fault of faults.slice(0, 3)) process.stderr.write(`    ${fault}\n`);
    return usage;
  }

  /** What a measurement is made of: this process, the controller and the control plane. */
  ownPids() {
    const programs = Object.values(this.cluster.sandbox.processes).map(({ pid }) => pid);
    return [process.pid, this.controller.child.pid, ...programs];
  }

  async stop() {
    await this.withoutController();
    await this.cluster.stop();
  }
}
