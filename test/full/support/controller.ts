import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { repoFolder } from '../../../sandbox/paths.js';
import { startWatchdog } from '../../../sandbox/watchdog.js';
import type { Watchdog } from '../../../sandbox/watchdog.js';
import type { Kind } from '../../../src/contract/kind.js';
import type { PolicyRule } from '../../../src/install/rules.js';
import { accountKubeconfig, accountToken } from './accounts.js';
import type { Cluster } from './cluster.js';
import { eventually } from './eventually.js';
import { installedRights } from './installed-rights.js';
import { noteLog } from './recent-log.js';
import { grant } from './rights.js';

export interface ControllerProps {
  readonly cluster: Cluster;
  /** Names its ServiceAccount and the namespace of that; no other controller runs as it at the same time. */
  readonly user: string;
  readonly kinds: readonly Kind[];
  /** The path of a kubeconfig, for example of one that leads through a proxy. @default - its ServiceAccount's own */
  readonly kubeconfig?: string;
  /** Starts `reconstruct` in another way, with these arguments. @default - as it is compiled */
  readonly program?: (args: readonly string[]) => Program;
  /** Arguments of Node itself. @default - none */
  readonly nodeArgs?: readonly string[];
  /** The configuration that brings the kinds. @default - they are built in */
  readonly config?: string;
  /** Watched, with Roles in them and nothing cluster-wide. @default - all, with a ClusterRole */
  readonly namespaces?: readonly string[];
  /** Rights that differ from those that are installed. @default - exactly those */
  readonly rights?: (installed: PolicyRule[]) => readonly PolicyRule[];
  /**
   * Takes part in the election whose lease is in this namespace. Those that compete have ServiceAccounts of their own, so
   * that the audit log tells them apart; so the lease isn't at home, as it is where the replicas of one compete.
   * @default - none, it works at once
   */
  readonly electionNamespace?: string;
  /** Receives the log as it is written. @default - none */
  readonly logFile?: string;
  /** Further arguments of `reconstruct run`. @default - none */
  readonly args?: readonly string[];
  /** Wait until every kind's controller works. @default true */
  readonly awaitStart?: boolean;
}

/** A program and how to start it. */
export interface Program {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/** A line of the log, as far as tests read it. */
export interface LogLine {
  readonly level: string;
  readonly time: string;
  readonly msg: string;
  readonly kind?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly reconcileId?: string;
  readonly controller?: string;
  readonly [field: string]: unknown;
}

/** The controller as users run it: a process of its own. */
export interface RunningController extends AsyncDisposable {
  readonly pid: number;
  /** What it has logged so far, oldest first. */
  readonly log: readonly LogLine[];
  /** Lines on standard error that aren't one JSON object, and whatever is on standard output. */
  readonly strayOutput: readonly string[];
  /** Resolves with a line of the log, from the given position on. */
  logged(matches: (line: LogLine) => boolean, from?: number): Promise<LogLine>;
  /** Stops it where it is, or lets it go on. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void;
  /** Sends SIGTERM. Returns the exit code, which is null where a signal has ended it. */
  stop(): Promise<number | null>;
  /** Ends it with SIGKILL. */
  kill(): Promise<void>;
}

let watchdog: Promise<Watchdog> | undefined;

/** Starts `reconstruct run` as its own ServiceAccount, with the rights that an installation would give it. */
export async function startController(given: ControllerProps): Promise<RunningController> {
  const { cluster, user, kinds, namespaces, args = [], awaitStart = true } = given;
  const { rights, electionNamespace = user } = given;
  await accountToken(cluster, user);
  const watched = namespaces && { watchNamespaces: namespaces };
  const installed = installedRights({ kinds, args, namespace: electionNamespace, ...watched });
  await grant(cluster, { user, rules: rights?.(installed) ?? installed, ...(namespaces && { namespaces }) });
  const props = { ...given, kubeconfig: given.kubeconfig ?? (await accountKubeconfig(cluster, user)) };
  // Whatever happens to this process, the controller doesn't outlive it.
  watchdog ??= startWatchdog();
  const guard = await watchdog;
  const { program = compiled(props.nodeArgs) } = props;
  const started = program(argumentsOf(props));
  const child = spawn(started.file, started.args, {
    ...{ cwd: repoFolder(), env: started.env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await once(child, 'spawn');
  guard.watch(child.pid!);
  const controller = new ControllerProcess(child, props.logFile, () => {
    guard.forget(child.pid!);
  });
  if (awaitStart) await controller.started(kinds);
  return controller;
}

function compiled(nodeArgs: readonly string[] = []): (args: readonly string[]) => Program {
  const command = [...nodeArgs, join(repoFolder(), 'lib/bundle/reconstruct.mjs')];
  return (args) => ({ file: process.execPath, args: [...command, ...args], env: process.env });
}

function argumentsOf(props: ControllerProps & { readonly kubeconfig: string }): string[] {
  const { kubeconfig, kinds, config, namespaces, electionNamespace, args = [] } = props;
  const names = kinds.map(({ name, crd }) => `${name}.${crd.spec.group}`);
  return [
    ...['run', '--kubeconfig', kubeconfig, '--kinds', names.join()],
    ...['--metrics-bind-address', '0', '--health-bind-address', '0', '--log-level', 'debug'],
    ...(config === undefined ? [] : ['--config', config]),
    ...(namespaces ? ['--watch-namespace', namespaces.join()] : []),
    ...(electionNamespace === undefined
      ? []
      : ['--leader-elect', '--leader-election-namespace', electionNamespace]),
    ...args,
  ];
}

class ControllerProcess implements RunningController {
  readonly log: LogLine[] = [];
  readonly strayOutput: string[] = [];
  readonly pid: number;
  private readonly ended: Promise<number | null>;

  constructor(
    private readonly child: ChildProcess,
    private readonly logFile: string | undefined,
    onEnd: () => void,
  ) {
    this.pid = child.pid!;
    if (logFile !== undefined) writeFileSync(logFile, '');
    this.ended = new Promise((resolve) => {
      // Not `exit`, since the last lines may still be on their way.
      child.once('close', (code) => {
        onEnd();
        resolve(code);
      });
    });
    createInterface({ input: child.stdout! }).on('line', (line) => this.strayOutput.push(line));
    createInterface({ input: child.stderr! }).on('line', (line) => {
      this.read(line);
    });
  }

  /** Kinds of several groups may have one name, and a kind may have more controllers than the one that is named like it. */
  async started(kinds: readonly Kind[]): Promise<void> {
    await eventually(() => {
      const lines = this.log.filter(({ msg }) => msg === 'Controller started');
      const started = lines.map(({ controller }) => controller);
      for (const { name } of kinds) {
        const index = started.indexOf(name);
        if (index < 0) throw this.notLogged('that all controllers have started');
        started.splice(index, 1);
      }
    });
  }

  logged(matches: (line: LogLine) => boolean, from = 0): Promise<LogLine> {
    return eventually(() => {
      const line = this.log.slice(from).find(matches);
      if (line) return line;
      throw this.notLogged('it');
    });
  }

  private notLogged(what: string): Error {
    return new Error(`The controller hasn't logged ${what}:\n${this.lastLines()}`);
  }

  private lastLines(): string {
    const tail = this.log.slice(-5).map((entry) => JSON.stringify(entry));
    return [...tail, ...this.strayOutput].join('\n');
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.child.kill(name);
  }

  async stop(): Promise<number | null> {
    this.child.kill('SIGTERM');
    const code = await this.ended;
    if (code !== 0) console.error(`A controller has ended with ${String(code)}:\n${this.lastLines()}`);
    return code;
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  private read(line: string): void {
    try {
      const entry = JSON.parse(line) as LogLine;
      if (this.logFile !== undefined) appendFileSync(this.logFile, `${line}\n`);
      this.log.push(entry);
      noteLog(entry, line);
    } catch {
      this.strayOutput.push(line);
    }
  }
}
