import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parse } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import { startWatchdog } from '../../sandbox/watchdog.js';
import type { Watchdog } from '../../sandbox/watchdog.js';
import type { FlagValues, Kind, Sections, StandaloneController } from '../../src/contract/kind.js';
import { kindName } from '../../src/install/names.js';
import { installedRules } from '../../src/install/rules.js';
import type { PolicyRule, RightsProps } from '../../src/install/rules.js';
import { accountKubeconfig, accountToken, eventually, grant } from './cluster.js';
import type { Cluster } from './cluster.js';

/** Controllers that were started in each cluster. */
const started = new WeakMap<Cluster, Set<RunningController>>();

/** Ends all controllers of a cluster, and its connections. */
export async function closeCluster(cluster: Cluster): Promise<void> {
  for (const controller of started.get(cluster) ?? []) await controller.kill();
  await cluster.close();
}

export interface ControllerProps {
  readonly cluster: Cluster;
  /** Names its ServiceAccount and the namespace of that; no other controller runs as it at the same time. */
  readonly user: string;
  readonly kinds: readonly Kind[];
  /** Controllers without custom resources. @default - none */
  readonly controllers?: readonly StandaloneController[];
  /** Path of a kubeconfig, for example of one that leads through a proxy. @default - its ServiceAccount's own */
  readonly kubeconfig?: string;
  /** Starts `reconstruct` in another way, with these arguments. @default - the bundle */
  readonly program?: (args: readonly string[]) => Program;
  /** Arguments of Node itself. @default - none */
  readonly nodeArgs?: readonly string[];
  /** Configuration that brings the kinds. @default - they are built in */
  readonly config?: string;
  /** Watched, with Roles in them and nothing cluster-wide. @default - all, with a ClusterRole */
  readonly namespaces?: readonly string[];
  /** Rights that differ from those that are installed. @default - exactly those */
  readonly rights?: (installed: PolicyRule[]) => readonly PolicyRule[];
  /**
   * Namespace of the lease. Those that compete have ServiceAccounts of their own, so that the audit log distinguishes
   * them; so the lease isn't at home, as it is where the replicas of one compete.
   * @default - no election, it works at once
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
  readonly controller?: string;
  readonly [field: string]: unknown;
}

let watchdog: Promise<Watchdog> | undefined;

/** Arguments by which AppServices may have any route: without a policy they may have none. */
export const anyRoute = ['--policy', join(repoFolder(), 'test/support/any-route.yaml')];

/** Folder of the package as it is published, packed and unpacked. */
export const packed = join(repoFolder(), 'lib/packed/package');

/** Path of the command as it is shipped. */
export const bundle = join(packed, 'lib/bundle/reconstruct.mjs');

/** Starts `reconstruct run` as its own ServiceAccount, with the rights that an installation would give it. */
export async function startController(given: ControllerProps): Promise<RunningController> {
  const { cluster, user, kinds, namespaces, args = [], nodeArgs = [], awaitStart = true } = given;
  const { rights, electionNamespace = user, controllers = [] } = given;
  await accountToken(cluster, user);
  const watched = namespaces && { watchNamespaces: namespaces };
  const installed = installedRights({ kinds, controllers, args, namespace: electionNamespace, ...watched });
  await grant(cluster, { user, rules: rights?.(installed) ?? installed, ...(namespaces && { namespaces }) });
  const props = { ...given, kubeconfig: given.kubeconfig ?? (await accountKubeconfig(cluster, user)) };
  // Whatever happens to this process, the controller doesn't outlive it.
  watchdog ??= startWatchdog();
  const guard = await watchdog;
  const shipped = (all: readonly string[]): Program => ({
    ...{ file: process.execPath, args: [...nodeArgs, bundle, ...all], env: process.env },
  });
  const program = (props.program ?? shipped)(argumentsOf(props));
  const child = spawn(program.file, program.args, {
    ...{ cwd: repoFolder(), env: program.env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] },
  });
  await once(child, 'spawn');
  guard.watch(child.pid!);
  const controller = new RunningController(child, props.logFile, () => {
    guard.forget(child.pid!);
  });
  started.set(cluster, (started.get(cluster) ?? new Set()).add(controller));
  if (awaitStart) await controller.started([...kinds, ...controllers]);
  return controller;
}

function argumentsOf(props: ControllerProps & { readonly kubeconfig: string }): string[] {
  const { kubeconfig, kinds, controllers = [], config, namespaces, electionNamespace, args = [] } = props;
  const names = [...kinds.map(kindName), ...controllers.map(({ name }) => name)];
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

/** `reconstruct run` as a process of its own. */
export class RunningController implements AsyncDisposable {
  /** Lines that it has logged so far, oldest first. */
  readonly log: LogLine[] = [];
  /** Lines on standard error that aren't one JSON object, and all that is on standard output. */
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
  async started(kinds: readonly StandaloneController[]): Promise<void> {
    await eventually(() => {
      const running = this.log
        .filter(({ msg }) => msg === 'controller started')
        .map(({ controller }) => controller);
      for (const { name } of kinds) {
        const index = running.indexOf(name);
        if (index < 0) throw this.notLogged('that all controllers have started');
        running.splice(index, 1);
      }
    });
  }

  /** Resolves with a line of the log, from the given position on. */
  logged(matches: (line: LogLine) => boolean, from = 0): Promise<LogLine> {
    return eventually(() => {
      const line = this.log.slice(from).find(matches);
      if (line) return line;
      throw this.notLogged('it');
    });
  }

  /** Resolves once a custom resource, or a key of that name, has been reconciled. */
  reconciled(name: string, from = 0): Promise<LogLine> {
    return this.logged((line) => line.msg === 'reconciled' && line.name === name, from);
  }

  private notLogged(what: string): Error {
    return new Error(`The controller hasn't logged ${what}:\n${this.lastLines()}`);
  }

  private lastLines(): string {
    const tail = this.log.slice(-5).map((entry) => JSON.stringify(entry));
    return [...tail, ...this.strayOutput].join('\n');
  }

  /** Stops it where it is, or lets it go on. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.child.kill(name);
  }

  /** Sends SIGTERM. Returns the exit code, which is null where a signal has ended it. */
  async stop(): Promise<number | null> {
    this.child.kill('SIGTERM');
    const code = await this.ended;
    if (code !== 0) console.error(`A controller has ended with ${String(code)}:\n${this.lastLines()}`);
    return code;
  }

  /** Ends it with SIGKILL. */
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
    } catch {
      this.strayOutput.push(line);
    }
  }
}

export interface Installation {
  readonly kinds: readonly Kind[];
  /** @default - none */
  readonly controllers?: readonly StandaloneController[];
  /** Namespace of the operator and of its lease. */
  readonly namespace: string;
  /** @default - all */
  readonly watchNamespaces?: readonly string[];
  /** Of `reconstruct run`. */
  readonly args: readonly string[];
}

/** Returns the rights that `reconstruct install` gives an operator of these kinds that is run with these arguments. */
export function installedRights({ kinds, controllers = [], args, ...places }: Installation): PolicyRule[] {
  const file = valueOf(args, '--policy');
  const text = file === undefined ? undefined : readFileSync(file, 'utf8');
  const surroundings: RightsProps = {
    ...places,
    flags: flagsIn(kinds, args),
    ...(text !== undefined && { policy: { text, parsed: parse(text) as Sections } }),
  };
  return installedRules([...kinds, ...controllers], surroundings);
}

function flagsIn(kinds: readonly Kind[], args: readonly string[]): FlagValues {
  const names = kinds.flatMap(({ flags = [] }) => flags.map(({ name }) => name));
  const given = names.map((name) => [name, valueOf(args, name)] as const);
  return Object.fromEntries(given.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

/** Of `--name value` or `--name=value`. */
function valueOf(args: readonly string[], name: string): string | undefined {
  const index = args.indexOf(name);
  if (index >= 0) return args[index + 1];
  return args.find((arg) => arg.startsWith(`${name}=`))?.slice(name.length + 1);
}
