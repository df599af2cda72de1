import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { goEnvironment } from '../../../sandbox/go.js';
import { waitForLock } from '../../../sandbox/lock.js';
import { cacheFolder, repoFolder } from '../../../sandbox/paths.js';

/**
 * The path of a program that is made of Go modules, which is built where the cache lacks it.
 * @param name of the folder beside this file whose go.mod pins what it is made of: the program itself, or a `tool`
 * @throws Error without Go, and with what Go printed
 */
export async function goProgram(name: string): Promise<string> {
  const folder = join(repoFolder(), 'test/cluster/support', name);
  const hash = createHash('sha256').update(`${process.platform}/${process.arch}`);
  for (const file of readdirSync(folder).sort()) hash.update(readFileSync(join(folder, file)));
  const cache = join(dirname(cacheFolder()), 'tools', hash.digest('hex').slice(0, 16));
  const program = join(cache, name);
  if (existsSync(program)) return program;
  await mkdir(dirname(cache), { recursive: true });
  const lock = await waitForLock(`${cache}.lock`, () => undefined);
  try {
    if (!existsSync(program)) await build(folder, name, cache);
  } finally {
    await lock.release();
  }
  return program;
}

/** The program appears complete or not at all. */
async function build(folder: string, name: string, cache: string): Promise<void> {
  process.stderr.write(`Building ${name} with Go, once.\n`);
  const temporary = `${cache}.building`;
  await rm(temporary, { recursive: true, force: true });
  const what = existsSync(join(folder, 'main.go')) ? '.' : 'tool';
  const args = ['build', '-mod=readonly', '-trimpath', '-o', join(temporary, name), what];
  await promisify(execFile)('go', args, { cwd: folder, env: goEnvironment(process.env) });
  await rename(temporary, cache);
}
