import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { accessSync, constants, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { basename, delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { programEnded } from '#telemetry/program.js';
import { waitForLock } from './lock.js';
import { cacheFolder, sandboxFolder } from './paths.js';
import { formatDuration, logToStderr, showProgress, type Log } from './progress.js';
import { killGroup, startWatchdog, type Watchdog } from './watchdog.js';

/** Go packages of the programs of a control plane, by file name. Any other program is the root package of its module. */
const packages = {
  etcd: 'go.etcd.io/etcd/server/v3',
  'kube-apiserver': 'k8s.io/kubernetes/cmd/kube-apiserver',
  'kube-controller-manager': 'k8s.io/kubernetes/cmd/kube-controller-manager',
  'kube-scheduler': 'k8s.io/kubernetes/cmd/kube-scheduler',
  kubectl: 'k8s.io/kubernetes/cmd/kubectl',
  kwok: 'sigs.k8s.io/kwok/cmd/kwok',
} as const;

export type Program = keyof typeof packages;

export const programNames = Object.keys(packages) as Program[];

/** The name `go build` gives a program's file: the last element of its package, without the major version. */
function goBinaryName(program: Program): string {
  return program === 'etcd' ? 'server' : program;
}

/** The arguments of the `go build` that puts `programs`, as the module in `folder` pins them, into the folder `output`. */
function goBuildArguments(programs: readonly Program[], output: string, folder: string): string[] {
  return [
    ...['build', '-v', '-mod=readonly', '-trimpath', '-ldflags', ['-s -w', ...stamps(folder)].join(' ')],
    ...[
      '-o',
      output,
      ...programs.map((program) => (packages as Partial<Record<string, string>>)[program] ?? '.'),
    ],
  ];
}

/** Arguments by which a program of Kubernetes prints its version; nothing in a module without such programs. */
function stamps(folder: string): string[] {
  if (!readFileSync(join(folder, 'go.mod'), 'utf8').includes('k8s.io/kubernetes ')) return [];
  const version = kubernetesVersion(folder);
  const [major, minor] = version.slice(1).split('.');
  const stamp = 'k8s.io/component-base/version';
  return [
    `-X ${stamp}.gitVersion=${version}`,
    `-X ${stamp}.gitMajor=${major ?? ''}`,
    `-X ${stamp}.gitMinor=${minor ?? ''}`,
  ];
}

/** The Kubernetes that the module in `folder` pins, e.g. `v1.36.3`. */
export function kubernetesVersion(folder: string): string {
  return goMod(folder, /^[\t ]*(?:require )?k8s\.io\/kubernetes (v\S+)/m);
}

/** Throws unless a Go that can build the modules pinned in `folder` is on the PATH. */
async function checkGo(env: NodeJS.ProcessEnv, folder: string, log: Log): Promise<void> {
  const wanted = goMod(folder, /^go (\S+)$/m);
  const go = spawn('go', ['env', 'GOVERSION'], {
    ...{ cwd: folder, env: goEnvironment(env) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  go.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  go.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const { code } = await programEnded(go, {
    ...{ what: 'go env GOVERSION', say: log },
    remedy: `run it in ${folder} to see what it waits for, such as the download of another Go`,
  }).catch((error: unknown) => {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new Error(waysOut(code === 'ENOENT' ? 'There is no `go` on the PATH.' : `${message}.`, wanted));
  });
  // In the folder of go.mod, Go fetches the version asked for by itself unless GOTOOLCHAIN forbids it; then it says so.
  if (code !== 0) throw new Error(waysOut(`Go cannot build the control plane: ${stderr.trim()}.`, wanted));
  const found = /^go(\d+)\.(\d+)/.exec(stdout.trim());
  const [major, minor] = wanted.split('.').map(Number);
  const newEnough =
    found !== null && (Number(found[1]) - (major ?? 0) || Number(found[2]) - (minor ?? 0)) >= 0;
  if (newEnough || stdout.startsWith('devel')) return;
  throw new Error(waysOut(`The Go on the PATH is ${stdout.trim()}, too old.`, wanted));
}

function waysOut(reason: string, goVersion: string): string {
  return [
    `The programs of the control plane are not there and cannot be built. ${reason} Ways out:`,
    `  - install Go ${goVersion} or later (https://go.dev/dl) and run this again;`,
    '  - point KUBEBUILDER_ASSETS at a folder that holds etcd, kube-apiserver, kube-controller-manager,',
    '    kube-scheduler, kubectl and kwok;',
    '  - for the demo, use a cluster of your own instead: npm run demo -- --context NAME',
  ].join('\n');
}

function goMod(folder: string, pattern: RegExp): string {
  const file = join(folder, 'go.mod');
  const value = pattern.exec(readFileSync(file, 'utf8'))?.[1];
  if (value === undefined) throw new Error(`${file} has nothing that matches ${String(pattern)}.`);
  return value;
}

/** A workspace file above this folder must not change which modules are built. */
export function goEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...env, GOWORK: 'off' };
}

/** Programs to build, and their folder. */
interface BuildOptions {
  /** The folder the programs go to; made if missing. */
  readonly cache: string;
  /** The folder of the go.mod that pins them. */
  readonly module: string;
  /** Returns what the cache lacks; called again once it is this process's turn, since another may have built meanwhile. */
  readonly missing: () => readonly Program[];
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
}

/**
 * Builds the missing programs from the pinned Go modules.
 *
 * **Guarantees**: a program appears in the cache complete or not at all; one process builds at a time; an
 * interrupted build leaves neither a process nor a file behind.
 * **Errors**: without a usable Go, one that names the ways out; a failed build, one with what Go printed; a Go that prints
 * nothing for twenty minutes is killed, with the remedy.
 */
async function buildPrograms(options: BuildOptions): Promise<void> {
  const { cache, module, env, log } = options;
  await checkGo(env, module, log);
  await mkdir(dirname(cache), { recursive: true });
  const lock = await waitForLock(`${cache}.lock`, (holder) => {
    log(`Process ${holder.pid} is building the control plane; waiting for it.`);
  });
  try {
    const programs = options.missing();
    if (programs.length > 0) await buildInto(options, programs);
  } finally {
    await lock.release();
  }
}

async function buildInto(options: BuildOptions, programs: readonly Program[]): Promise<void> {
  const { cache, module, env, log } = options;
  await removeLeftovers(cache);
  const watchdog = await startWatchdog();
  const temporary = `${temporaryPrefix(cache)}${randomUUID()}`;
  watchdog.watchFolder(temporary);
  try {
    const [output, work] = [join(temporary, 'bin'), join(temporary, 'work')];
    await Promise.all([mkdir(output, { recursive: true }), mkdir(work, { recursive: true })]);
    // Go's own scratch folder lies in ours, so that it goes with it when Go is killed.
    const goEnv = { ...goEnvironment(env), GOTMPDIR: work };
    log(`Building ${programs.join(', ')} with Go. The first build takes minutes; later starts use ${cache}.`);
    const args = goBuildArguments(programs, `${output}/`, module);
    await runGoBuild(args, { ...options, env: goEnv }, watchdog);
    await mkdir(cache, { recursive: true });
    for (const program of programs) await rename(join(output, goBinaryName(program)), join(cache, program));
  } finally {
    await rm(temporary, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    await watchdog.release();
  }
}

/** Removes what a power cut may have left of earlier builds; called under the lock, so none is under way. */
async function removeLeftovers(cache: string): Promise<void> {
  const prefix = basename(temporaryPrefix(cache));
  for (const entry of await readdir(dirname(cache))) {
    if (entry.startsWith(prefix)) await rm(join(dirname(cache), entry), { recursive: true, force: true });
  }
}

function temporaryPrefix(cache: string): string {
  return `${cache}.building-`;
}

async function runGoBuild(
  args: readonly string[],
  { module, env, log }: BuildOptions,
  watchdog: Watchdog,
): Promise<void> {
  const started = Date.now();
  const go = spawn('go', args, {
    cwd: module,
    env,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  if (go.pid !== undefined) watchdog.watch(go.pid);
  const build = { downloads: 0, packages: 0, output: [] as string[] };
  createInterface({ input: go.stderr }).on('line', (line) => {
    if (line.startsWith('go: downloading ')) build.downloads++;
    else if (isPackage(line)) build.packages++;
    else build.output.push(line);
  });
  const elapsed = (): string => formatDuration(Date.now() - started);
  const counts = (): string => `${build.downloads} modules downloaded, ${build.packages} packages compiled`;
  const progress = showProgress(() => `  building for ${elapsed()}: ${counts()}`, log);
  try {
    const { code, signal } = await programEnded(go, {
      ...{ what: 'go build', say: log, sayMilliseconds: 60_000 },
      // It names packages before it compiles them, and links the largest program in silence, for minutes.
      limitMilliseconds: 1_200_000,
      remedy:
        'see that the proxy for Go modules (go env GOPROXY) can be reached and run this again, or point ' +
        'KUBEBUILDER_ASSETS at a folder that holds the programs',
    }).catch((error: unknown) => {
      if (go.pid !== undefined) killGroup(go.pid); // Compilers go on when Go itself is killed.
      throw error;
    });
    if (code !== 0) {
      const how = signal === null ? `exit code ${code ?? '?'}` : signal;
      throw new Error(`go build failed (${how}):\n${build.output.join('\n')}`);
    }
  } finally {
    progress.stop();
    if (go.pid !== undefined) watchdog.forget(go.pid);
  }
  log(`Built in ${elapsed()} (${counts()}).`);
}

/** `go build -v` names each package it compiles on a line of its own. */
function isPackage(line: string): boolean {
  return /^[\w.~-]+(\/[\w.~-]+)*$/.test(line);
}

/** Where to look for programs. */
export interface ProgramOptions {
  /**
   * Folders looked into first, in order.
   *
   * @default - none
   */
  readonly assets?: readonly string[];
  /**
   * The folder of the go.mod that pins what is built.
   *
   * @default - sandbox/
   */
  readonly module?: string;
  /**
   * Read for RECONSTRUCT_SANDBOX_ASSETS (folders), KUBEBUILDER_ASSETS, XDG_CACHE_HOME, HOME and PATH.
   *
   * @default process.env
   */
  readonly env?: NodeJS.ProcessEnv;
  /** @default - standard error */
  readonly log?: Log;
}

/**
 * Finds each program, in this order: the folders of `assets`, of RECONSTRUCT_SANDBOX_ASSETS and of
 * KUBEBUILDER_ASSETS; the cache; `go build` from the pinned modules into the cache. What one place lacks comes
 * from the next.
 *
 * **Errors**: when something has to be built and Go is missing, too old or fails.
 */
export async function findPrograms<P extends Program>(
  names: readonly P[],
  options: ProgramOptions = {},
): Promise<Readonly<Record<P, string>>> {
  const env = options.env ?? process.env;
  const log = options.log ?? logToStderr;
  const module = options.module ?? sandboxFolder();
  const cache = programCache(env, module);
  const folders = [...namedFolders(options.assets ?? [], env, log), cache];
  const missing = names.filter((name) => locate(name, folders) === undefined);
  if (missing.length > 0) {
    await buildPrograms({
      cache,
      module,
      env,
      log,
      missing: () => missing.filter((name) => locate(name, [cache]) === undefined),
    });
  }
  const found = names.map((name) => [name, locate(name, folders) ?? join(cache, name)] as const);
  return Object.fromEntries(found) as Record<P, string>;
}

/** The cache folder of the pins and sources of a module, by default the sandbox's own, on this platform. */
export function programCache(env: NodeJS.ProcessEnv = process.env, module = sandboxFolder()): string {
  const hash = createHash('sha256');
  const sources = readdirSync(module).filter((file) => /^go\.(mod|sum)$|\.go$/.test(file));
  for (const file of sources.sort()) hash.update(readFileSync(join(module, file)));
  hash.update(`${process.platform}/${process.arch}`);
  return join(cacheFolder(env), hash.digest('hex').slice(0, 16));
}

function namedFolders(assets: readonly string[], env: NodeJS.ProcessEnv, log: Log): string[] {
  const named = [
    ...assets,
    ...(env.RECONSTRUCT_SANDBOX_ASSETS ?? '').split(delimiter),
    env.KUBEBUILDER_ASSETS ?? '',
  ].filter((folder) => folder !== '');
  for (const folder of named) {
    if (!existsSync(folder)) log(`The folder ${folder}, named for control-plane programs, does not exist.`);
  }
  return named;
}

function locate(name: Program, folders: readonly string[]): string | undefined {
  return folders.map((folder) => join(folder, name)).find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
