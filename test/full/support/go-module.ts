import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { goEnvironment } from '../../../sandbox/programs.js';

/**
 * Where a module is in the module cache of Go, which fetches it if need be and checks it.
 * @param pin the folder whose go.mod pins its version
 * @throws Error without Go
 */
export async function goModuleFolder(module: string, pin: string): Promise<string> {
  const args = ['mod', 'download', '-json', module];
  const { stdout } = await promisify(execFile)('go', args, { cwd: pin, env: goEnvironment(process.env) });
  return (JSON.parse(stdout) as { readonly Dir: string }).Dir;
}
