import { createHash, randomUUID } from 'node:crypto';
import { accessSync, constants, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { basename, delimiter, dirname, join } from 'node:path';
import { downloadReleases, type Release } from './download.js';
import { buildPrograms, kubernetesVersion, pinnedVersion, platform, type Program } from './go.js';
import { waitForLock } from './lock.js';
import { cacheFolder, sandboxFolder } from './paths.js';
import { type Log, logToStderr } from './progress.js';
import { startWatchdog } from './watchdog.js';

/** Folders in which programs are looked for. */
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
   * Read for RECONSTRUCT_CONTROL_PLANE (folders), KUBEBUILDER_ASSETS, XDG_CACHE_HOME and HOME; RECONSTRUCT_DOWNLOAD_MIRROR and
   * HTTP_PROXY, HTTPS_PROXY and NO_PROXY; PATH, GOPROXY and other variables of Go.
   *
   * @default process.env
   */
  readonly env?: NodeJS.ProcessEnv;
  /** @default - standard error */
  readonly log?: Log;
}

/**
 * Finds each program, in this order: the folders of `assets`, of RECONSTRUCT_CONTROL_PLANE and of KUBEBUILDER_ASSETS; the
 * cache; the release of its project; a build from the pinned Go modules. What one place lacks comes from the next.
 *
 * **Guarantees**: a program appears in the cache complete or not at all; one process fills it at a time; an interrupt leaves no
 * process behind, and no file but what the next attempt goes on with.
 * **Errors**: where none has a program, one with the reasons and the ways out.
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
  const missing = (): P[] => names.filter((name) => locate(name, folders) === undefined);
  if (missing().length > 0) {
    await mkdir(dirname(cache), { recursive: true });
    const lock = await waitForLock(`${cache}.lock`, ({ pid }) => {
      log(`Process ${pid} is fetching the control plane; waiting for it.`);
    });
    try {
      // Another process may have done it meanwhile.
      if (missing().length > 0) await fillCache(missing, { cache, module, env, log });
    } finally {
      await lock.release();
    }
  }
  const found = names.map((name) => [name, locate(name, folders) ?? join(cache, name)] as const);
  const foreign = env.KUBEBUILDER_ASSETS ?? '';
  const taken = found.flatMap(([name, path]) =>
    foreign !== '' && path === join(foreign, name) ? [name] : [],
  );
  if (taken.length > 0) {
    const tried = kubernetesVersion(sandboxFolder());
    log(`${taken.join(', ')} from KUBEBUILDER_ASSETS (${foreign}); the sandbox is tried with ${tried}.`);
  }
  return Object.fromEntries(found) as Record<P, string>;
}

interface CacheOptions extends Required<Omit<ProgramOptions, 'assets'>> {
  readonly cache: string;
}

async function fillCache(missing: () => readonly Program[], options: CacheOptions): Promise<void> {
  const { cache, module, env, log } = options;
  const releases = missing().flatMap((program) => releaseOf(program, module, env) ?? []);
  const failures = releases.length > 0 ? await downloadReleases(releases, { cache, env, log }) : [];
  for (const failure of failures) log(`  ${failure}`);
  if (missing().length === 0) return;
  try {
    await buildInto(missing(), options);
  } catch (error) {
    throw new Error(waysOut(missing(), [...failures, (error as Error).message]), { cause: error });
  }
}

function waysOut(programs: readonly Program[], reasons: readonly string[]): string {
  return [
    `The control plane lacks ${programs.join(', ')}:`,
    ...reasons.map((reason) => `  - ${reason}`),
    'Ways out, any of them:',
    '  - name a folder that holds etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl and kwok in',
    '    RECONSTRUCT_CONTROL_PLANE;',
    '  - let https://dl.k8s.io and https://github.com be reached, by HTTPS_PROXY where there is a proxy, or name a mirror of',
    '    them in RECONSTRUCT_DOWNLOAD_MIRROR;',
    '  - let https://proxy.golang.org be reached, or name another proxy for Go modules in GOPROXY;',
    '  - for the demo, use a cluster of your own instead: npm run demo -- --context NAME',
  ].join('\n');
}

/**
 * Sums of the releases of kwok, which publishes none: those that distributions pin
 * (https://github.com/NixOS/nixpkgs, package `kwok`).
 */
const kwokSums: Readonly<Record<string, string>> = {
  'v0.8.0/linux-amd64': 'f5a4385a2ae1b9dd7f8acae18e002a75c0ebba124ae9d7259aa8dadb50711f46',
  'v0.8.0/linux-arm64': '628f7d277860f524a2a775c217adcc58828e7b59ab0933680315784f1b8b0e37',
};

/** Returns the release of a program in the pinned version, where its project has one for this platform. */
function releaseOf(program: Program, module: string, env: NodeJS.ProcessEnv): Release | undefined {
  const mirror = env.RECONSTRUCT_DOWNLOAD_MIRROR;
  // Kubernetes releases no API server for macOS, so all of it is built there.
  if (mirror === 'off' || !['linux-amd64', 'linux-arm64'].includes(platform)) return undefined;
  const at = (host: string, path: string): string =>
    mirror === undefined || mirror === ''
      ? `https://${host}/${path}`
      : `${mirrorUrl(mirror)}/${host}/${path}`;
  switch (program) {
    case 'etcd': {
      const version = pinnedVersion(module, 'go.etcd.io/etcd/server/v3');
      const folder = `etcd-io/etcd/releases/download/${version}`;
      const name = `etcd-${version}-${platform}`;
      return {
        ...{ program, url: at('github.com', `${folder}/${name}.tar.gz`), member: `${name}/etcd` },
        sha256: { url: at('github.com', `${folder}/SHA256SUMS`) },
      };
    }
    case 'kwok': {
      const version = pinnedVersion(module, 'sigs.k8s.io/kwok');
      const sha256 = kwokSums[`${version}/${platform}`];
      const path = `kubernetes-sigs/kwok/releases/download/${version}/kwok-${platform}`;
      return sha256 === undefined ? undefined : { program, url: at('github.com', path), sha256 };
    }
    case 'kube-apiserver':
    case 'kube-controller-manager':
    case 'kube-scheduler':
    case 'kubectl': {
      const folder = `release/${kubernetesVersion(module)}/bin/${platform.replace('-', '/')}`;
      const url = at('dl.k8s.io', `${folder}/${program}`);
      return { program, url, sha256: { url: `${url}.sha256` } };
    }
    default:
      return undefined;
  }
}

function mirrorUrl(mirror: string): string {
  if (URL.canParse(mirror) && /^https?:/.test(mirror)) return mirror.replace(/\/$/, '');
  throw new Error(
    `RECONSTRUCT_DOWNLOAD_MIRROR=${mirror.replace(/^.*@/, '...@')} has to be the URL of a mirror that holds dl.k8s.io/... and github.com/..., or "off".`,
  );
}

async function buildInto(
  programs: readonly Program[],
  { cache, module, env, log }: CacheOptions,
): Promise<void> {
  await removeLeftovers(cache);
  const watchdog = await startWatchdog();
  const temporary = `${temporaryPrefix(cache)}${randomUUID()}`;
  const scratch = `${cache}.go`;
  watchdog.watchFolder(temporary);
  try {
    const [output, work] = [join(temporary, 'bin'), join(temporary, 'work')];
    await buildPrograms({ programs, output, work, scratch, module, env, log, watchdog });
    await mkdir(cache, { recursive: true });
    for (const program of programs) await rename(join(output, program), join(cache, program));
    await rm(scratch, { recursive: true, force: true });
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
    ...(env.RECONSTRUCT_CONTROL_PLANE ?? '').split(delimiter),
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
