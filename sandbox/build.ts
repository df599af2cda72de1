import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { programEnded } from '#telemetry/program.js';
import { checkGo, goBinaryName, goBuildArguments, goEnvironment } from './go.js';
import { waitForLock } from './lock.js';
import type { Program } from './program.js';
import { formatDuration, type Log, showProgress } from './progress.js';
import { killGroup, startWatchdog, type Watchdog } from './watchdog.js';

/** What to build and where to. */
export interface BuildOptions {
  /** The folder the programs go to; made if missing. */
  readonly cache: string;
  /** The folder of the go.mod that pins them. */
  readonly module: string;
  /** What the cache lacks; asked again once it is this process's turn, since another may have built meanwhile. */
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
export async function buildPrograms(options: BuildOptions): Promise<void> {
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
