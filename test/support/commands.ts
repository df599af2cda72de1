import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { stringify } from 'yaml';
import { waitForLock } from '../../sandbox/lock.js';
import { cacheFolder, repoFolder } from '../../sandbox/paths.js';
import { findGo } from '../../sandbox/go.js';
import { logToStderr } from '../../sandbox/progress.js';
import type { FieldChange } from '../../src/engine/preview/fields.js';
import { bundle } from './operator.js';

/** Result of a program. */
export interface Ran {
  /** Exit code; null where a signal has ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  /** @default - the repository */
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** @default - nothing */
  readonly stdin?: string;
}

/** Runs a program to its end, whatever its exit code. */
export async function run(file: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  const { cwd = repoFolder(), env = process.env, stdin = '' } = options;
  const child = spawn(file, args, { cwd, env, stdio: 'pipe' });
  child.stdin.on('error', () => undefined);
  child.stdin.end(stdin);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

/** Runs a program that has to succeed. @returns its standard output @throws with what it printed */
export async function done(file: string, args: readonly string[], options?: RunOptions): Promise<string> {
  const { code, stdout, stderr } = await run(file, args, options);
  if (code !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${code}:\n${stderr}${stdout}`);
  return stdout;
}

/** Runs `reconstruct` as it is shipped, whatever its exit code. */
export function command(...args: readonly string[]): Promise<Ran> {
  return run(process.execPath, [bundle, ...args]);
}

/** Runs `reconstruct`, which has to succeed. @returns its standard output */
export function reconstruct(...args: readonly string[]): Promise<string> {
  return done(process.execPath, [bundle, ...args]);
}

/** Runs `cdk8s`, which writes nothing but its output. @returns its standard output */
export function cdk8s(...args: readonly string[]): Promise<string> {
  const bin = join(repoFolder(), 'node_modules/.bin');
  const PATH = [bin, process.env.PATH].join(delimiter);
  return done(join(bin, 'cdk8s'), args, { env: { ...process.env, CDK8S_CHECK_UPGRADE: 'false', PATH } });
}

/** A PATH with the project's own Node and command, and with programs that are given by their files. */
export function commandPath(...programs: readonly string[]): string {
  const own = [dirname(process.execPath), join(repoFolder(), 'node_modules/.bin')];
  return [...own, ...programs.map((file) => dirname(file)), '/usr/bin', '/bin'].join(delimiter);
}

/** Makes a folder for as long as it is used. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'test-'));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Returns the manifests in a folder, by file name. */
export async function manifestsIn(folder: string): Promise<Record<string, string>> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.yaml')).sort();
  const files = names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')] as const);
  return Object.fromEntries(await Promise.all(files));
}

/** One command of `reconstruct`, with the credentials of one user. */
export class Reconstruct {
  constructor(
    private readonly name: string,
    private readonly kubeconfig: string,
    private readonly args: readonly string[] = [],
  ) {}

  run(...args: readonly string[]): Promise<Ran> {
    return command(this.name, '--kubeconfig', this.kubeconfig, ...this.args, ...args);
  }

  /** Of objects that stand in one file. */
  of(objects: readonly object[], ...args: readonly string[]): Promise<Ran> {
    return withFolder(async (folder) => {
      const source = join(folder, 'resources.yaml');
      await writeFile(source, objects.map((object) => `---\n${stringify(object)}`).join(''));
      return this.run(source, ...args);
    });
  }

  /** A diff as JSON. @throws where there is no diff, with what was printed instead */
  async diff(
    objects: readonly object[],
    ...args: readonly string[]
  ): Promise<DiffDocument & { code: number | null }> {
    const { code, stdout, stderr } = await this.of(objects, '-o', 'json', ...args);
    if (stdout === '') throw new Error(`diff has ended with ${code}: ${stderr}`);
    return { code, ...(JSON.parse(stdout) as DiffDocument) };
  }
}

/** One object in the JSON of a diff. */
export interface DiffObject {
  readonly kind: string;
  readonly name: string;
  readonly action: string;
  readonly fields?: readonly FieldChange[];
  readonly object?: Readonly<Record<string, unknown>>;
}

export interface DiffDocument {
  readonly differs: boolean;
  readonly objects: readonly DiffObject[];
  readonly explanations: readonly { readonly summary: string }[];
}

/** Lists what would become of which object, in a line each. */
export function actions({ objects }: DiffDocument): string[] {
  return objects.map(({ action, kind, name }) => `${action} ${kind} ${name}`);
}

/** Lists which field of which object would change, in a line each. */
export function changedPaths({ objects }: DiffDocument): string[] {
  return objects.flatMap(({ kind, fields = [] }) => fields.map(({ path }) => `${kind} ${path}`));
}

/** Folders whose go.mod pins the tools, which are built together. */
const TOOLS = {
  helm: 'test/install/tools/helm',
  'kube-score': 'test/install/tools/manifests',
  kubeconform: 'test/install/tools/manifests',
  kustomize: 'test/support/go/kustomize',
  health: 'test/support/go/health',
  etcdutl: 'test/support/go/etcdutl',
} as const;

export type Tool = keyof typeof TOOLS;

/**
 * Returns the path of a program that is made of Go modules. The first call builds it, which takes half a minute to a few
 * minutes: ask before the tests, which have less time.
 * @throws Error without Go, and with what Go printed
 */
export async function goTool(name: Tool): Promise<string> {
  const folder = join(repoFolder(), TOOLS[name]);
  const hash = createHash('sha256').update(`${process.platform}/${process.arch}`);
  for (const file of readdirSync(folder).sort()) hash.update(readFileSync(join(folder, file)));
  const cache = join(dirname(cacheFolder()), 'tools', hash.digest('hex').slice(0, 16));
  const path = join(cache, name);
  if (existsSync(path)) return path;
  await mkdir(dirname(cache), { recursive: true });
  const lock = await waitForLock(`${cache}.lock`, () => undefined);
  try {
    if (!existsSync(path)) await build(name, folder, cache);
  } finally {
    await lock.release();
  }
  return path;
}

/** All that is made of a folder appears together or not at all. */
async function build(name: string, folder: string, cache: string): Promise<void> {
  process.stderr.write(`Building ${name} with Go, once.\n`);
  const temporary = `${cache}.building`;
  await rm(temporary, { recursive: true, force: true });
  const isProgram = existsSync(join(folder, 'main.go'));
  const [to, what] = isProgram ? [join(temporary, name), '.'] : [`${temporary}/`, 'tool'];
  const args = ['build', '-mod=readonly', '-trimpath', '-ldflags', '-s -w', '-o', to, what];
  const scratch = `${cache}.go`;
  await go(args, folder, scratch);
  await rename(temporary, cache);
  await rm(scratch, { recursive: true, force: true });
}

/** Runs Go, which has to succeed. @returns its standard output */
async function go(args: readonly string[], module: string, scratch: string): Promise<string> {
  const { command, env } = await findGo({ module, scratch, env: process.env, log: logToStderr });
  return done(command, args, { cwd: module, env });
}

/** Runs a tool, which finds nothing of its user's, whatever its exit code. */
export async function runTool(name: Tool, args: readonly string[], home: string): Promise<Ran> {
  return run(await goTool(name), args, { env: { PATH: process.env.PATH, HOME: home } });
}

/** Modules whose files are read. */
const MODULES = {
  'gateway-api': 'sigs.k8s.io/gateway-api',
  'prometheus-operator': 'github.com/prometheus-operator/prometheus-operator',
} as const;

/** Returns the folder of a module in the module cache of Go, which fetches it if need be and checks it. */
export async function goModule(name: keyof typeof MODULES): Promise<string> {
  const cwd = join(repoFolder(), 'test/support/go', name);
  const args = ['mod', 'download', '-json', MODULES[name]];
  const stdout = await go(args, cwd, join(dirname(cacheFolder()), 'modules'));
  return (JSON.parse(stdout) as { readonly Dir: string }).Dir;
}
