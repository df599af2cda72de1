import { dirname, join } from 'node:path';
import { repoFolder } from '../../../sandbox/paths.js';

/** A PATH with the project's own Node and command, and with programs that are given by their files. */
export function commandPath(...programs: readonly string[]): string {
  const own = [dirname(process.execPath), join(repoFolder(), 'node_modules/.bin')];
  return [...own, ...programs.map((file) => dirname(file)), '/usr/bin', '/bin'].join(':');
}
