import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { goEnvironment } from '../../../sandbox/go.js';
import { waitForLock } from '../../../sandbox/lock.js';
import { cacheFolder, repoFolder } from '../../../sandbox/paths.js';
import type { Outcome } from './installation.js';

/** The tools, by the folder whose go.mod pins them. */
const TOOLS = {
  helm: 'helm',
  'kube-score': 'manifests',
  kubeconform: 'manifests',
} as const;

export type Tool = keyof typeof TOOLS;

/**
 * The path of a tool, which is built of its Go module where the cache lacks it: about two minutes for Helm, and half a
 * minute for the others together.
 * @throws Error without Go, and with what Go printed
 */
async function locate(tool: Tool): Promise<string> {
  const folder = join(repoFolder(), 'test/install/tools', TOOLS[tool]);
  const hash = createHash('sha256').update(`${process.platform}/${process.arch}`);
  for (const file of ['go.mod', 'go.sum']) hash.update(readFileSync(join(folder, file)));
  const cache = join(dirname(cacheFolder()), 'tools', hash.digest('hex').slice(0, 16));
  const path = join(cache, tool);
  if (existsSync(path)) return path;
  await mkdir(dirname(cache), { recursive: true });
  const lock = await waitForLock(`${cache}.lock`, () => undefined);
  try {
    if (!existsSync(path)) await build(folder, cache);
  } finally {
    await lock.release();
  }
  return path;
}

/** All tools of a module; they appear together or not at all. */
async function build(folder: string, cache: string): Promise<void> {
  process.stderr.write(`Building the tools of ${folder} with Go, once.\n`);
  const temporary = `${cache}.building`;
  await rm(temporary, { recursive: true, force: true });
  const args = ['build', '-mod=readonly', '-trimpath', '-ldflags', '-s -w', '-o', `${temporary}/`, 'tool'];
  await promisify(execFile)('go', args, { cwd: folder, env: goEnvironment(process.env) });
  await rename(temporary, cache);
}

/** Runs a tool, however it ends. It finds nothing of its user's. */
export async function goTool(tool: Tool, args: readonly string[], home: string): Promise<Outcome> {
  const file = await locate(tool);
  const env = { PATH: process.env.PATH, HOME: home };
  try {
    const { stdout, stderr } = await promisify(execFile)(file, args, { env, maxBuffer: 64 * 1024 * 1024 });
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: unknown; stdout: string; stderr: string };
    if (typeof code !== 'number') throw error;
    return { code, stdout, stderr };
  }
}
