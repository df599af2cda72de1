import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setImmediate } from 'node:timers/promises';
import { inflateRawSync } from 'node:zlib';
import { programEnded } from '#telemetry/program.js';
import { Downloads } from './download.js';
import { BuildEstimate } from './estimate.js';
import { waitForLock } from './lock.js';
import { cacheFolder } from './paths.js';
import { formatDuration, type Log, showProgress } from './progress.js';
import { killGroup, onInterrupt, type Watchdog } from './watchdog.js';

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

/**
 * Toolchain for machines without Go, and the sums of its module `golang.org/toolchain` by platform, as Go's checksum database
 * has them: `go mod download -json golang.org/toolchain@v0.0.1-go1.26.8.linux-amd64` prints and verifies one.
 */
const toolchain = {
  version: '1.26.8',
  sums: {
    'darwin-amd64': 'h1:7/9KPPN8PckcA9s91hm2jmQMhzW4KyTJXHIs45L0C9M=',
    'darwin-arm64': 'h1:dFjGhY6f8DTsY8/rLchUTDRRfjJP4pCrGCwxvHFT2Fg=',
    'linux-amd64': 'h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM=',
    'linux-arm64': 'h1:sYL/O6MqS68ML0kjsQ36WoYIpJqkw60TxizWUYUKQMc=',
  } as Readonly<Record<string, string>>,
};

/** This platform by Go's names, e.g. `linux-amd64`. */
export const platform = `${process.platform}-${process.arch === 'x64' ? 'amd64' : process.arch}`;

/** The version of a module that the go.mod in `folder` pins, e.g. `v1.36.3`. */
export function pinnedVersion(folder: string, module: string): string {
  return goMod(
    folder,
    new RegExp(String.raw`^[\t ]*(?:require )?${module.replaceAll('.', '\\.')} (v\S+)`, 'm'),
  );
}

/** The Kubernetes that the module in `folder` pins, e.g. `v1.36.3`. */
export function kubernetesVersion(folder: string): string {
  return pinnedVersion(folder, 'k8s.io/kubernetes');
}

function goMod(folder: string, pattern: RegExp): string {
  const file = join(folder, 'go.mod');
  const value = pattern.exec(readFileSync(file, 'utf8'))?.[1];
  if (value === undefined) throw new Error(`${file} has nothing that matches ${String(pattern)}.`);
  return value;
}

/** A Go that can build. */
export interface Go {
  readonly command: string;
  readonly env: NodeJS.ProcessEnv;
}

interface GoOptions {
  /** The folder of the go.mod to build. */
  readonly module: string;
  /** Folder for the modules and the compiled packages of a Go that isn't the user's; worth nothing after the build. */
  readonly scratch: string;
  readonly env: NodeJS.ProcessEnv;
  readonly log: Log;
}

/**
 * Finds a Go that can build the modules pinned in a folder: that on the PATH, or else the pinned toolchain, which the proxy
 * for Go modules has as a module. It is downloaded once, and verified before anything of it runs.
 *
 * **Errors**: where neither is to be had, one that says why.
 */
export async function findGo(options: GoOptions): Promise<Go> {
  const problem = await problemOfGo(options);
  if (problem === undefined) return { command: 'go', env: goEnvironment(options.env) };
  const { env, log, scratch } = options;
  const folder = join(dirname(cacheFolder(env)), 'go');
  const root = join(folder, `go${toolchain.version}.${platform}`);
  if (!existsSync(root)) {
    log(`${problem} Downloading Go ${toolchain.version}, once, to ${root}.`);
    await mkdir(folder, { recursive: true });
    const lock = await waitForLock(`${root}.lock`, ({ pid }) => {
      log(`Process ${pid} is downloading it; waiting for it.`);
    });
    try {
      if (!existsSync(root)) await installToolchain(root, env, log);
    } finally {
      await lock.release();
    }
  }
  return {
    command: join(root, 'bin', 'go'),
    env: {
      ...{ ...goEnvironment(env), GOROOT: root, GOTOOLCHAIN: 'local' },
      ...{ GOMODCACHE: join(scratch, 'modules'), GOCACHE: join(scratch, 'packages') },
      PATH: [join(root, 'bin'), env.PATH].join(delimiter),
      GOFLAGS: `${env.GOFLAGS ?? ''} -modcacherw`.trim(), // So that it can be removed.
    },
  };
}

/** A workspace file above this folder must not change which modules are built. */
function goEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...env, GOWORK: 'off' };
}

/** Returns why the Go on the PATH can't build the modules pinned in a folder. */
async function problemOfGo({ module, env, log }: GoOptions): Promise<string | undefined> {
  const wanted = goMod(module, /^go (\S+)$/m);
  const go = spawn('go', ['env', 'GOVERSION'], {
    ...{ cwd: module, env: goEnvironment(env) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  go.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  go.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  try {
    const { code } = await programEnded(go, {
      ...{ what: 'go env GOVERSION', say: log },
      remedy: `run it in ${module} to see what it waits for, such as the download of another Go`,
    });
    // In the folder of go.mod, Go fetches the version asked for by itself unless GOTOOLCHAIN forbids it; then it says so.
    if (code !== 0) return `Go cannot build the control plane: ${stderr.trim()}.`;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' ? 'There is no `go` on the PATH.' : `${message}.`;
  }
  const found = /^go(\d+)\.(\d+)/.exec(stdout.trim());
  const [major, minor] = wanted.split('.').map(Number);
  const newEnough =
    found !== null && (Number(found[1]) - (major ?? 0) || Number(found[2]) - (minor ?? 0)) >= 0;
  if (newEnough || stdout.startsWith('devel')) return undefined;
  return `The Go on the PATH is ${stdout.trim()}, older than ${wanted}.`;
}

/** Puts the toolchain into the folder `root`, complete or not at all. */
async function installToolchain(root: string, env: NodeJS.ProcessEnv, log: Log): Promise<void> {
  const version = `v0.0.1-go${toolchain.version}.${platform}`;
  const sum = toolchain.sums[platform];
  if (sum === undefined) throw new Error(`There is no Go toolchain for ${platform} here; install Go.`);
  const [zip, unpacked] = [`${root}.zip`, `${root}.unpacked`];
  await downloadFromProxy(`golang.org/toolchain/@v/${version}.zip`, zip, env, log);
  await rm(unpacked, { recursive: true, force: true });
  const progress = showProgress(() => '  unpacking Go, for the build', log);
  const takeBack = onInterrupt(() => {
    rmSync(unpacked, { recursive: true, force: true });
  });
  try {
    const content = await readFile(zip);
    let found: string;
    try {
      found = await unpack(content, `golang.org/toolchain@${version}/`, unpacked);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).syscall !== undefined) throw cause;
      throw new Error(
        `${version} of golang.org/toolchain isn't the zip of a module (a login page of a proxy?): ${(cause as Error).message}.`,
        { cause },
      );
    }
    if (found !== sum)
      throw new Error(`${version} of golang.org/toolchain has the hash ${found} instead of ${sum}.`);
    await rename(unpacked, root);
  } finally {
    progress.stop();
    takeBack();
    for (const path of [zip, unpacked]) await rm(path, { recursive: true, force: true });
  }
}

/** Downloads a file of a module from the first proxy of GOPROXY that has it. */
async function downloadFromProxy(
  path: string,
  file: string,
  env: NodeJS.ProcessEnv,
  log: Log,
): Promise<void> {
  const list = env.GOPROXY || 'https://proxy.golang.org,direct';
  const proxies = list.split(/[,|]/).filter((proxy) => /^https?:/.test(proxy));
  const failures =
    proxies.length > 0
      ? []
      : [`GOPROXY=${list.includes('@') ? '...' : list} names no proxy to download from`];
  await using downloads = new Downloads(env);
  const progress = showProgress(() => `  downloading Go, for the build: ${downloads.progress}`, log);
  try {
    for (const proxy of proxies) {
      try {
        await downloads.file(`${proxy.replace(/\/$/, '')}/${path}`, file);
        return;
      } catch (error) {
        failures.push((error as Error).message);
      }
    }
  } finally {
    progress.stop();
  }
  throw new Error(`The Go toolchain cannot be downloaded: ${failures.join('; ')}.`);
}

/**
 * Unpacks a module's zip file.
 * @param prefix what the names in it begin with; it is left out
 * @returns the hash `h1:` of its files, as go.sum has it (golang.org/x/mod/sumdb/dirhash); nothing may be used before it is compared
 */
async function unpack(zip: Buffer, prefix: string, folder: string): Promise<string> {
  const lines: string[] = [];
  const end = zip.lastIndexOf('PK\x05\x06', undefined, 'latin1');
  if (end < 0) throw new Error('no directory of files');
  const count = zip.readUInt16LE(end + 10);
  for (let [index, at] = [0, zip.readUInt32LE(end + 16)]; index < count; index++) {
    const [method, size] = [zip.readUInt16LE(at + 10), zip.readUInt32LE(at + 20)];
    const [nameLength, header] = [zip.readUInt16LE(at + 28), zip.readUInt32LE(at + 42)];
    const name = zip.toString('utf8', at + 46, at + 46 + nameLength);
    at += 46 + nameLength + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
    const start = header + 30 + zip.readUInt16LE(header + 26) + zip.readUInt16LE(header + 28);
    const data = zip.subarray(start, start + size);
    const content = method === 0 ? data : inflateRawSync(data, { maxOutputLength: 256e6 });
    lines.push(`${createHash('sha256').update(content).digest('hex')}  ${name}\n`);
    if (!name.startsWith(prefix) || name.split('/').includes('..')) throw new Error(`A module with ${name}.`);
    const path = join(folder, name.slice(prefix.length));
    mkdirSync(dirname(path), { recursive: true });
    const isProgram = /^(bin|pkg\/tool)\//.test(name.slice(prefix.length));
    writeFileSync(path, content, { mode: isProgram ? 0o755 : 0o644 });
    if (index % 100 === 0) await setImmediate(); // So that signals and the screen don't wait for thousands of files.
  }
  // By name, in bytes.
  lines.sort((a, b) => Buffer.compare(Buffer.from(a.slice(66)), Buffer.from(b.slice(66))));
  return `h1:${createHash('sha256').update(lines.join('')).digest('base64')}`;
}

/** Programs to build, and where. */
interface BuildOptions extends GoOptions {
  readonly programs: readonly Program[];
  /** The folder they go to, each by its name; made here. */
  readonly output: string;
  /** Folder for the scratch files of this build; made here. */
  readonly work: string;
  readonly watchdog: Watchdog;
}

/**
 * Builds programs from the pinned Go modules.
 *
 * **Errors**: without a usable Go, one that says why; a failed build, one with what Go printed; a Go that prints nothing for
 * twenty minutes is killed, with the remedy.
 */
export async function buildPrograms(options: BuildOptions): Promise<void> {
  const { programs, output, work, log } = options;
  await Promise.all([mkdir(output, { recursive: true }), mkdir(work, { recursive: true })]);
  const go = await findGo(options);
  const size = programs.includes('kube-apiserver') ? ': some 2,800 packages' : '';
  log(
    `Building ${programs.join(', ')} with Go, once${size}. It takes minutes, unless RECONSTRUCT_CONTROL_PLANE ` +
      'names a folder that has them.',
  );
  await runGoBuild(go, options);
  // By its package, the file of etcd is called `server`.
  if (programs.includes('etcd')) await rename(join(output, 'server'), join(output, 'etcd'));
}

async function runGoBuild(
  go: Go,
  { programs, module, output, work, log, watchdog }: BuildOptions,
): Promise<void> {
  const started = Date.now();
  const flags = ['-v', '-mod=readonly', '-trimpath', '-gcflags=all=-dwarf=false'];
  const named = programs.map((program) => (packages as Partial<Record<string, string>>)[program] ?? '.');
  const linker = ['-ldflags', ['-s -w', ...stamps(module)].join(' ')];
  const build = spawn(go.command, ['build', ...flags, ...linker, '-o', `${output}/`, ...named], {
    cwd: module,
    // No compiler of C is needed, and with enough memory, short-lived compilers collect less garbage.
    env: { ...(totalmem() >= 12e9 && { GOGC: '400' }), ...go.env, CGO_ENABLED: '0', GOTMPDIR: work },
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  if (build.pid !== undefined) watchdog.watch(build.pid);
  const seen = { downloads: 0, packages: 0, output: [] as string[] };
  const estimate = new BuildEstimate();
  createInterface({ input: build.stderr }).on('line', (line) => {
    if (line.startsWith('go: downloading ')) seen.downloads++;
    else if (isPackage(line)) estimate.add(++seen.packages, Date.now());
    else seen.output.push(line);
  });
  const elapsed = (): string => formatDuration(Date.now() - started);
  const counts = (): string => `${seen.downloads} modules downloaded, ${seen.packages} packages compiled`;
  const status = (): string => estimate.describe(Date.now());
  const progress = showProgress(() => `  building the control plane: ${status()} (${counts()})`, log);
  try {
    const { code, signal } = await programEnded(build, {
      ...{ what: 'go build', say: log, sayMilliseconds: 60_000 },
      // It names packages before it compiles them, and links the largest program in silence, for minutes.
      limitMilliseconds: 1_200_000,
      remedy: 'see that the proxy for Go modules (go env GOPROXY) can be reached and run this again',
    }).catch((error: unknown) => {
      if (build.pid !== undefined) killGroup(build.pid); // Compilers go on when Go itself is killed.
      throw error;
    });
    if (code !== 0) {
      const how = signal === null ? `exit code ${code ?? '?'}` : signal;
      const isKilled = signal === 'SIGKILL' || seen.output.some((line) => line.includes('signal: killed'));
      const why = isKilled ? '; memory has probably run out' : '';
      throw new Error(`go build failed (${how}${why}):\n${seen.output.join('\n')}`);
    }
  } finally {
    progress.stop();
    if (build.pid !== undefined) watchdog.forget(build.pid);
  }
  log(`Built in ${elapsed()} (${counts()}).`);
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

/** Reports whether a line of `go build -v` names a package that it compiles. */
function isPackage(line: string): boolean {
  return /^[\w.~-]+(\/[\w.~-]+)*$/.test(line);
}
