import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { repoFolder } from '../../../sandbox/paths.js';

const bin = join(repoFolder(), 'node_modules/.bin');

/** Runs a program of the project in its root folder, as its users do. Returns what it printed. */
async function run(program: string, args: readonly string[]): Promise<string> {
  const env = {
    ...process.env,
    CDK8S_CHECK_UPGRADE: 'false',
    PATH: [bin, process.env.PATH].join(delimiter),
  };
  const { stdout } = await promisify(execFile)(program, args, { cwd: repoFolder(), env });
  return stdout;
}

/** `cdk8s`, for whose bookkeeping nothing is written but the output. */
export async function cdk8s(...args: readonly string[]): Promise<string> {
  return run(join(bin, 'cdk8s'), args);
}

/** `reconstruct` as it is built. */
export async function reconstruct(...args: readonly string[]): Promise<string> {
  return run(process.execPath, [join(repoFolder(), 'lib/bundle/reconstruct.mjs'), ...args]);
}

/** A folder that is there as long as it is used. */
export async function withFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'synth-'));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The manifests in a folder, by file name. */
export async function manifestsIn(folder: string): Promise<Record<string, string>> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.yaml')).sort();
  const files = names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')] as const);
  return Object.fromEntries(await Promise.all(files));
}
