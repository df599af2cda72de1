// The controller as users run it: the bundled command, as a process of its own that doesn't outlive this one.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'node:http';
import { freePort, root, until } from './util.mjs';
import { cpuSeconds, residentMiB, resetPeak } from './process.mjs';

export const COMMAND = join(root, 'lib/bundle/reconstruct.mjs');

export class Controller {
  /** Starts it and waits until its watches have delivered everything. */
  static async start(
    cluster,
    { nodeArguments = [], args = [], command = COMMAND, kinds = 'appservice' } = {},
  ) {
    const port = await freePort();
    const logFile = join(cluster.sandbox.dir, `controller-${port}.log`);
    const log = openSync(logFile, 'a');
    const started = performance.now();
    const child = spawn(
      process.execPath,
      [
        ...nodeArguments,
        ...[command, 'run', '--kinds', kinds, '--kubeconfig', cluster.sandbox.kubeconfig(cluster.user)],
        ...['--metrics-bind-address', `127.0.0.1:${port}`, '--health-bind-address', '0'],
        ...args,
      ],
      { cwd: cluster.sandbox.dir, stdio: ['ignore', log, log], detached: true },
    );
    closeSync(log);
    await once(child, 'spawn');
    cluster.watchdog.watch(child.pid);
    const controller = new Controller(child, { port, logFile, cluster, started });
    await until('the controller to start', () => controller.hasStarted(), { milliseconds: 120_000 });
    return controller;
  }

  constructor(child, { port, logFile, cluster, started }) {
    Object.assign(this, { child, port, logFile, cluster, started });
    this.ended = once(child, 'exit').then(([code]) => {
      this.exitCode = code ?? -1;
      cluster.watchdog.forget(child.pid);
    });
  }

  hasStarted() {
    if (this.exitCode !== undefined) throw new Error(`It has ended:\n${this.log().slice(-2_000)}`);
    return this.log().includes('"msg":"Controller started"');
  }

  log() {
    return readFileSync(this.logFile, 'utf8');
  }

  get cpuSeconds() {
    return cpuSeconds(this.child.pid);
  }

  get resident() {
    return residentMiB(this.child.pid);
  }

  resetPeak() {
    resetPeak(this.child.pid);
  }

  /** The sum of a metric over its labels. */
  async metric(name, text = undefined) {
    const lines = (text ?? (await this.scrape())).split('\n');
    const own = lines.filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
    return own.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  }

  /** Whether it has reconciled at least that often, and nothing is in work or waits. */
  async idle(reconciles = 0) {
    const text = await this.scrape();
    const [done, busy, queued] = await Promise.all(
      ['controller_runtime_reconcile_total', 'controller_runtime_active_workers', 'workqueue_depth'].map(
        (name) => this.metric(name, text),
      ),
    );
    return done >= reconciles && busy === 0 && queued === 0;
  }

  scrape() {
    return new Promise((resolve, reject) => {
      request({ host: '127.0.0.1', port: this.port, path: '/metrics', agent: false }, (response) => {
        const chunks = [];
        response.on('data', (chunk) => chunks.push(chunk));
        response.on('end', () => resolve(Buffer.concat(chunks).toString()));
      })
        .on('error', reject)
        .end();
    });
  }

  async stop() {
    this.child.kill('SIGTERM');
    await this.ended;
  }
}
