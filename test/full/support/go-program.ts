import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { goEnvironment } from '../../../sandbox/programs.js';
import { waitForLock } from '../../../sandbox/lock.js';
import { cacheFolder, repoFolder } from '../../../sandbox/paths.js';

export interface GoProgram {
  readonly name: string;
  /** The folder whose go.mod pins what it is made of: a program, or `tool`s, of which it is one. */
  readonly folder: string;
  /** Build tags. @default - none */
  readonly tags?: string;
}

/**
 * The path of a program that is made of Go modules. What is made of a folder is built together where the cache lacks
 * it, which takes half a minute to a few minutes.
 * @throws Error without Go, and with what Go printed
 */
export async function goProgram(program: GoProgram): Promise<string> {
  const folder = join(repoFolder(), program.folder);
  const hash = createHash('sha256').update(`${process.platform}/${process.arch}`);
  for (const file of readdirSync(folder).sort()) hash.update(readFileSync(join(folder, file)));
  const cache = join(dirname(cacheFolder()), 'tools', hash.digest('hex').slice(0, 16));
  const path = join(cache, program.name);
  if (existsSync(path)) return path;
  await mkdir(dirname(cache), { recursive: true });
  const lock = await waitForLock(`${cache}.lock`, () => undefined);
  try {
    if (!existsSync(path)) await build({ ...program, folder }, cache);
  } finally {
    await lock.release();
  }
  return path;
}

/** All that is made of a folder appears together or not at all. */
async function build({ name, folder, tags }: GoProgram, cache: string): Promise<void> {
  process.stderr.write(`Building ${name} with Go, once.\n`);
  const temporary = `${cache}.building`;
  await rm(temporary, { recursive: true, force: true });
  const isProgram = existsSync(join(folder, 'main.go'));
  const [to, what] = isProgram ? [join(temporary, name), '.'] : [`${temporary}/`, 'tool'];
  const args = ['-mod=readonly', '-trimpath', '-ldflags', '-s -w', ...(tags ? ['-tags', tags] : [])];
  const options = { cwd: folder, env: goEnvironment(process.env) };
  await promisify(execFile)('go', ['build', ...args, '-o', to, what], options);
  await rename(temporary, cache);
}
