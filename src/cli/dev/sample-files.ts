import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';

/** Where samples are looked for, beside the configuration, when none are named. */
const USUAL = ['samples/*.{yaml,yml,json}', 'sample.yaml'];

/**
 * The files and folders that hold the samples.
 * @param named as on the command line: files, folders, and patterns that the shell has left as they are
 * @param folder the configuration's
 * @returns none where none are named, and none are where they usually are
 */
export function sampleSources(named: readonly string[], folder: string): string[] {
  if (named.length > 0) return named.flatMap((name) => (existsSync(name) ? [name] : matching(name)));
  for (const pattern of USUAL) {
    const found = globSync(pattern, { cwd: folder }).sort();
    if (found.length > 0) return found.map((file) => join(folder, file));
  }
  return [];
}

/** What matches nothing stays, so that somebody says that it isn't there. */
function matching(pattern: string): string[] {
  const found = globSync(pattern).sort();
  return found.length > 0 ? found : [pattern];
}
