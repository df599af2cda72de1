import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { goProgram } from './go-program.js';

/** Without service discovery, which is most of it, and isn't of use here. */
const PROMTOOL = { name: 'promtool', folder: 'test/full/support/promtool', tags: 'remove_all_sd' };

/**
 * Runs Prometheus' own tool. The first call builds it, which takes minutes; later ones find it in the cache.
 * @returns what it has printed
 * @throws Error without Go, and with what it has printed where it finds something wrong
 */
export async function promtool(...args: readonly string[]): Promise<string> {
  const program = await goProgram(PROMTOOL);
  try {
    const { stdout } = await promisify(execFile)(program, args);
    return stdout;
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`promtool ${args.join(' ')}\n${stdout}${stderr}`, { cause: error });
  }
}
