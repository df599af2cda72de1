import { spawn } from 'node:child_process';
import type { ChildProcess, StdioOptions } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Kind } from '../../contract/kind.js';
import { objectKey } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { describeThrown } from '../../values/origin.js';
import { DEFAULT_NAMESPACE, kindName } from '../../install/names.js';
import { installedRules } from '../../install/rules.js';
import type { PolicyRule } from '../../install/rules.js';
import { readCustomResources } from '../../validate/custom-resource.js';
import { InputError } from '../../validate/problem.js';
import type { SharedOptions } from '../options.js';
import { CONFIG_FILE, loadControllers } from '../config.js';
import { CliError } from '../output.js';
import { childTypes } from '../tree/model.js';
import type { Guard, LoadedKind, Sample } from './stand.js';
import type { Tone } from './view.js';
import { isMap } from '../../values/json.js';

/** Options of the command; the path of the configuration, too, where it is the usual one. */
export interface ProjectOptions extends Pick<SharedOptions, 'config' | 'kinds'> {
  /** Files, folders and patterns. Empty: the usual places. */
  readonly samples: readonly string[];
}

/** @throws CliError with exit code 2 where neither a configuration nor kinds are there */
export function projectOptions(samples: readonly string[], { config, kinds }: SharedOptions): ProjectOptions {
  const file = config ?? (existsSync(CONFIG_FILE) ? CONFIG_FILE : undefined);
  if (config !== undefined && !existsSync(config))
    throw new CliError(`${config}: there is no such file; check the path given to --config`);
  if (file === undefined && !kinds)
    throw new CliError(
      `There is no ${CONFIG_FILE} here; go to its folder, name another with --config, or kinds with --kinds`,
    );
  return { samples, ...(file !== undefined && { config: file }), ...(kinds && { kinds }) };
}

export interface Project {
  readonly kinds: readonly LoadedKind[];
  /** Names of controllers without custom resources. */
  readonly controllers: readonly string[];
  readonly rules: readonly PolicyRule[];
  readonly sources: readonly string[];
  readonly samples: readonly Sample[];
  /** A line for each mistake in the samples, with its place; then there are no samples. */
  readonly mistakes: readonly string[];
}

/** Project, or the lines that say why it can't be loaded. */
interface Loaded {
  readonly project?: Project;
  readonly problems: readonly string[];
}

/** Maximum time for the imports, and to find the place of a mistake in them. */
const MAX_LOAD_SECONDS = 75;

/**
 * Starts this very command in a process of its own, with other arguments. It ends with this one, and signals of the terminal
 * don't reach it.
 */
function startCommand(args: readonly string[], stdio: StdioOptions, guard: Guard): ChildProcess {
  const [, command = ''] = process.argv;
  // Two processes can't share a debugger's port, and Node 22 warns at each start that it strips types.
  const flags = process.execArgv.filter((flag) => !flag.startsWith('--inspect'));
  const all = [...flags, '--disable-warning=ExperimentalWarning', command, ...args];
  const child = spawn(process.execPath, all, { detached: true, stdio });
  const { pid } = child;
  if (pid !== undefined) {
    guard.watch(pid);
    child.once('exit', () => {
      guard.forget(pid);
    });
  }
  return child;
}

/**
 * Loads a project in a process of its own, so that its code can be loaded again and again, and can't break this one.
 *
 * @param signal ends it early, without problems
 */
export async function loadProject(
  { samples, config, kinds }: ProjectOptions,
  guard: Guard,
  signal: AbortSignal,
): Promise<Loaded> {
  const args = [
    ...(config === undefined ? [] : ['--config', config]),
    ...(kinds ? ['--kinds', kinds.join()] : []),
  ];
  const stdio: StdioOptions = ['ignore', 'ignore', 'pipe', 'ipc'];
  const child = startCommand(['dev-load', ...args, '--', ...samples], stdio, guard);
  const received: { loaded?: Loaded } = {};
  let printed = '';
  child.stderr?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  child.on('message', (loaded: Loaded) => {
    received.loaded = loaded;
    // The author's code may have started something; a failure is still to be printed.
    if (loaded.project) child.kill('SIGKILL');
  });
  if (signal.aborted) child.kill('SIGKILL');
  const tooLong = AbortSignal.timeout(MAX_LOAD_SECONDS * 1000);
  for (const end of [signal, tooLong]) end.addEventListener('abort', () => child.kill('SIGKILL'));
  const [exitCode, by] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  if (received.loaded) return received.loaded;
  if (signal.aborted) return { problems: [] };
  if (tooLong.aborted)
    return { problems: [`Loading took longer than ${MAX_LOAD_SECONDS} s and was stopped`] };
  const how = by ?? `exit code ${exitCode ?? '?'}: take out what calls process.exit`;
  return { problems: [`It ends the process, with ${how}`, ...printed.split('\n').filter(Boolean)] };
}

/** `reconstruct dev-load`: loads a project in this process, for `loadProject` in the parent process. */
export async function runDevLoad(samples: readonly string[], options: SharedOptions): Promise<void> {
  if (!process.send) throw new CliError('This command is for "reconstruct dev" alone; run that');
  const loaded = await readProject(projectOptions(samples, options)).then(
    (project): Loaded => ({ project, problems: [] }),
    (error: unknown): Loaded => {
      const text = error instanceof CliError ? error.message : describeThrown(error);
      return { problems: text.split('\n') };
    },
  );
  await new Promise<void>((done) => {
    process.send?.(loaded, undefined, undefined, () => {
      done();
    });
  });
}

async function readProject({ samples, config, kinds: named }: ProjectOptions): Promise<Project> {
  // A configuration is about its own kinds.
  const own = { config, kinds: named, ...(!named && { builtIn: [] }) };
  const { kinds, controllers } = await loadControllers(own);
  if (kinds.length + controllers.length === 0)
    throw new CliError('It has no kinds: list one that defineKind has made, or name some with --kinds');
  const sources = sampleSources(samples, dirname(config ?? 'any'));
  return {
    kinds: kinds.map((kind) => {
      const { name, type, crd } = kind;
      return { name, type, crd, children: childTypes(kind) };
    }),
    controllers: controllers.map(({ name }) => name),
    rules: installedRules([...kinds, ...controllers], { namespace: DEFAULT_NAMESPACE }),
    sources,
    ...(await readSamples(sources, kinds)),
  };
}

async function readSamples(sources: readonly string[], kinds: readonly Kind[]) {
  if (sources.length === 0) return { samples: [], mistakes: [] };
  try {
    const inputs = await readCustomResources({ sources, kinds, namespace: 'default' });
    // As they are written: defaults are the API server's.
    const samples = inputs.map(({ type, cr: { metadata }, document }) => ({
      ...{ type, object: { ...(document.value as AnyObject), metadata } },
    }));
    return { samples, mistakes: [] };
  } catch (error) {
    if (error instanceof InputError) return { samples: [], mistakes: error.lines };
    throw error;
  }
}

/**
 * Returns the files and folders that hold the samples.
 *
 * @param named as on the command line: files, folders, and patterns that the shell didn't expand
 * @param folder the configuration's
 */
export function sampleSources(named: readonly string[], folder: string): string[] {
  for (const pattern of named.length > 0 ? [] : ['samples/*.{yaml,yml,json}', 'sample.yaml']) {
    const found = globSync(pattern, { cwd: folder }).sort();
    if (found.length > 0) return found.map((file) => join(folder, file));
  }
  return named.flatMap((name) => {
    const found = existsSync(name) ? [name] : globSync(name).sort();
    // A pattern without matches is kept, so that it is reported as missing.
    return found.length > 0 ? found : [name];
  });
}

/** Maximum time for a controller to finish work in progress. */
const GRACE_MILLISECONDS = 5_000;

/** A warning or error of the controller, or output of the author's code. */
type ControllerLine = readonly [text: string, tone: Tone];

interface ControllerProps {
  readonly guard: Guard;
  readonly kubeconfig: string;
  readonly config: string | undefined;
  readonly kinds: readonly LoadedKind[];
  readonly controllers: readonly string[];
  readonly onStarted: () => void;
  readonly onLine: (...line: ControllerLine) => void;
  /** Called when it has ended unexpectedly. @param how as in `exit code 1` */
  readonly onEnd: (how: string) => void;
}

/**
 * Starts `reconstruct run` in a process of its own, with the author's code as it is now.
 * @returns stops it. @param graceMilliseconds to finish work in progress
 */
export function startController(props: ControllerProps): (graceMilliseconds?: number) => Promise<void> {
  const { guard, kubeconfig, config, kinds, controllers, onStarted, onLine, onEnd } = props;
  const names = [...kinds.map(kindName), ...controllers].join();
  const args = [
    ...['run', '--kubeconfig', kubeconfig, '--kinds', names, '--no-leader-elect'],
    ...(config === undefined ? [] : ['--config', config]),
    ...['--metrics-bind-address', '0', '--health-bind-address', '0', '--log-level', 'info'],
  ];
  const child = startCommand(args, ['ignore', 'pipe', 'pipe'], guard);
  let isStopping = false;
  // Kinds of several groups may have the same name.
  const starting = [...kinds.map(({ name }) => name), ...controllers];
  const read = (text: string): void => {
    const line = isStopping ? undefined : readLogLine(text, controllers);
    if (typeof line === 'object') onLine(...line);
    else if (line !== undefined && starting.includes(line)) {
      starting.splice(starting.indexOf(line), 1);
      if (starting.length === 0) onStarted();
    }
  };
  for (const input of [child.stdout, child.stderr]) if (input) createInterface({ input }).on('line', read);
  const ended = once(child, 'close').then(([code, signal]) => {
    if (!isStopping) onEnd(String(signal ?? `exit code ${String(code ?? '?')}`));
  });
  return async (graceMilliseconds = GRACE_MILLISECONDS) => {
    isStopping = true;
    if (graceMilliseconds > 0) child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), graceMilliseconds);
    await ended;
    clearTimeout(timer);
  };
}

/**
 * Reads a line of the controller's output.
 *
 * @param without names of controllers without custom resources
 * @returns a line to show, the name of a controller that has started, or undefined for what isn't shown
 */
export function readLogLine(line: string, without: readonly unknown[]): ControllerLine | string | undefined {
  let entry: unknown;
  try {
    entry = JSON.parse(line);
  } catch {
    // Not of the controller.
  }
  if (!isMap(entry) || !('level' in entry) || typeof entry.msg !== 'string') return [line, 'news'];
  const { level, msg, controller, kind, namespace, name, err, error, errors, reason } = entry;
  if (/^controller started$/i.test(msg) && typeof controller === 'string') return controller;
  const isWarning = level === 'warn';
  if (!isWarning && level !== 'error') return undefined;
  // The rest of a cause is in the status.
  const all = Array.isArray(errors) ? errors.join('; ') : undefined;
  const causes = [isMap(err) ? err.message : undefined, error, all, reason];
  const [cause = ''] = causes.find((text) => typeof text === 'string')?.split('\n') ?? [];
  // The status of the custom resource says the same.
  if (isWarning && kind !== undefined && cause !== '' && !without.includes(controller)) return undefined;
  const key = typeof name === 'string' ? objectKey(namespace as string | undefined, name) : '';
  const subject = [kind ?? controller, key].filter(Boolean).join(' ');
  const texts = [subject, msg, msg.includes(cause) ? '' : cause, driftIn(entry)].filter(Boolean);
  return [texts.join(': '), isWarning ? 'warning' : 'error'];
}

/** Returns the fields that another writer has changed, and the writer, as the log of a correction names them. */
function driftIn({ action, fields, managers }: Readonly<Record<string, unknown>>): string {
  if (action !== 'corrected' && action !== 'drifted') return '';
  const [which, who] = [fields, managers].map((names) => (Array.isArray(names) ? names.join(', ') : ''));
  return `${which || 'fields'} changed by ${who || 'another writer'}`;
}
