import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The folder that holds package.json, found upward from this file: the sources (sandbox/) and their compiled
 * form (lib/sandbox/) lie at different depths.
 */
export function repoFolder(): string {
  const start = dirname(fileURLToPath(import.meta.url));
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder;
    if (folder === dirname(folder)) throw new Error(`No package.json in ${start} or above it.`);
  }
}

/** The folder with go.mod, the kwok stages and the watchdog script. */
export function sandboxFolder(): string {
  return join(repoFolder(), 'sandbox');
}

/** The folder that caches built control-plane programs, one subfolder per set of pins. */
export function cacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  const userCache = env.XDG_CACHE_HOME || join(env.HOME ?? homedir(), '.cache');
  return join(userCache, 'reconstruct', 'controlplane');
}
