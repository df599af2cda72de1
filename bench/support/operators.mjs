// The operators that are measured, and one of them as a process of its own that doesn't outlive this one.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findPrograms } from '../../lib/sandbox/programs.js';
import { cpuSeconds, residentMiB, resetPeak } from './process.mjs';
import { freePort, root, until } from './util.mjs';

export const COMMAND = join(root, 'lib/bundle/reconstruct.mjs');

/** The flags of Node by which the image starts our operator. */
const imageFlags = JSON.parse(
  /^ENTRYPOINT (.*)$/m.exec(readFileSync(join(root, 'Dockerfile'), 'utf8'))[1],
).filter((word) => word.startsWith('--'));

/**
 * How an operator is started, and what it logs once its watches have delivered everything. Both serve the metrics of
 * controller-runtime, and apply children as `appservice-controller`.
 */
export const ours = {
  name: 'reconstruct',
  started: /"controller started"/i,
  env: { ...process.env, MALLOC_ARENA_MAX: '1' },
  command: ({ kinds, nodeArguments = [], args = [] }) => [
    ...[process.execPath, ...imageFlags, ...nodeArguments, COMMAND, 'run', '--health-bind-address', '0'],
    ...['--kinds', kinds.map(({ name }) => name).join(), ...args],
  ],
};

/** Written with controller-runtime, in `bench/peer`; built once for each state of its sources. */
export async function buildPeer() {
  const { peer } = await findPrograms(['peer'], { module: join(root, 'bench/peer') });
  return { name: 'controller-runtime', started: /Starting workers/, command: () => [peer] };
}

export class OperatorProcess {
  /** Starts it and waits until its watches have delivered everything. */
  static async start(operator, cluster, options) {
    const port = await freePort();
    const logFile = join(cluster.sandbox.dir, `operator-${port}.log`);
    const log = openSync(logFile, 'a');
    const started = performance.now();
    const [program, ...args] = operator.command({ ...options, kinds: cluster.kinds });
    const common = [
      ...['--kubeconfig', cluster.sandbox.kubeconfig(cluster.user)],
      ...['--metrics-bind-address', `127.0.0.1:${port}`],
      ...['--leader-elect', '--leader-election-namespace', 'default'],
    ];
    const child = spawn(program, [...args, ...common], {
      ...{ cwd: cluster.sandbox.dir, stdio: ['ignore', log, log], detached: true },
      ...(operator.env && { env: operator.env }),
    });
    closeSync(log);
    await once(child, 'spawn');
    cluster.watchdog.watch(child.pid);
    const process = new OperatorProcess(child, { port, logFile, cluster, started });
    const hasStarted = () => operator.started.test(process.log());
    await until('the operator to start', hasStarted, { milliseconds: 120_000 });
    return process;
  }

  constructor(child, { port, logFile, cluster, started }) {
    Object.assign(this, { child, port, logFile, started });
    this.ended = once(child, 'exit').then(([code]) => {
      this.exitCode = code ?? -1;
      cluster.watchdog.forget(child.pid);
    });
  }

  log() {
    const text = readFileSync(this.logFile, 'utf8');
    if (this.exitCode !== undefined) throw new Error(`It has ended:\n${text.slice(-2_000)}`);
    return text;
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

  /** Reports whether it has reconciled at least that often, and nothing is in work or waits. */
  async idle(reconciles = 0) {
    const lines = (await (await globalThis.fetch(`http://127.0.0.1:${this.port}/metrics`)).text()).split(
      '\n',
    );
    const total = (name) =>
      lines
        .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
    return (
      total('controller_runtime_reconcile_total') >= reconciles &&
      total('controller_runtime_active_workers') === 0 &&
      total('workqueue_depth') === 0
    );
  }

  async stop() {
    this.child.kill('SIGTERM');
    await this.ended;
  }
}
