import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { goEnvironment } from '../../../sandbox/go.js';
import { cacheFolder, repoFolder } from '../../../sandbox/paths.js';

const run = promisify(execFile);

/** The folder whose go.mod pins the release. */
const PIN = join(repoFolder(), 'test/cluster/support/promtool');

/** Without service discovery, which is most of it, and isn't of use here. */
const TAGS = 'remove_all_sd';

/**
 * Runs Prometheus' own tool. The first call builds it, which takes minutes; later ones find it in the cache.
 * @returns what it has printed
 * @throws Error without Go, and with what it has printed where it finds something wrong
 */
export async function promtool(...args: readonly string[]): Promise<string> {
  try {
    const { stdout } = await run(await program(), args);
    return stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`promtool ${args.join(' ')}\n${stdout}${stderr}`, { cause: error });
  }
}

async function program(): Promise<string> {
  const hash = createHash('sha256');
  for (const file of ['go.mod', 'go.sum']) hash.update(readFileSync(join(PIN, file)));
  const pins = hash.update(`${process.platform}/${process.arch}`).digest('hex').slice(0, 16);
  const file = join(dirname(cacheFolder()), 'promtool', pins, 'promtool');
  if (existsSync(file)) return file;
  await mkdir(dirname(file), { recursive: true });
  const made = `${file}.${process.pid}`;
  const args = ['build', '-mod=readonly', '-trimpath', '-tags', TAGS, '-ldflags', '-s -w', '-o', made];
  const env = goEnvironment(process.env);
  await run('go', [...args, 'github.com/prometheus/prometheus/cmd/promtool'], { cwd: PIN, env });
  // It is there complete or not at all.
  await rename(made, file);
  return file;
}
