import { existsSync, readdirSync, statSync, watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** What an author doesn't write, and much of it. */
const SKIPPED: ReadonlySet<string> = new Set(['node_modules', 'dist', 'vendor']);
/** What editors write beside a file, such as backups and swap files, names that try out whether a file can be made, and logs. */
const PASSING = /^\.|~$|\.(sw[a-z]|tmp|bak|log)$|^#.*#$|^\d+$|___jb_(tmp|old)___$/;

/** Whether a save of a file of this name, or in a folder of this name, is of no interest. */
export function isIgnored(name: string): boolean {
  return SKIPPED.has(name) || PASSING.test(name);
}

/** What is loaded, so that its removal counts too. */
const LOADED = /\.([cm]?[jt]s|json|ya?ml)$/;

/** Whether a file that was saved is gone, and was there only for a moment: a tool has written it, and renamed it. */
export function isPassing(path: string): boolean {
  return !existsSync(path) && !LOADED.test(path);
}

/**
 * Follows folders and all below them. Each folder is watched by itself, so that `node_modules` costs nothing.
 *
 * **Guarantees.** Files are known by their names: one that is saved by putting another in its place, as many editors do, is
 * seen. A folder that comes later is followed too.
 *
 * **Caveats.** Links to folders aren't followed.
 */
export class WatchedFiles {
  private readonly watchers = new Map<string, FSWatcher>();

  /** @param onSaved told the path of each file that was saved, made or removed */
  constructor(private readonly onSaved: (path: string) => void) {}

  /**
   * Follows a folder. One that is followed already stays so.
   * @param deep whether what is below it is followed too
   * @throws where it can't be watched
   */
  follow(folder: string, deep = true): void {
    if (this.watchers.has(folder)) return;
    const watcher = watch(folder, { persistent: false }, (_, name) => {
      if (name === null) this.onSaved(folder);
      else if (!isIgnored(name)) this.seen(join(folder, name), deep);
    });
    watcher.on('error', () => {
      this.forget(folder);
    });
    this.watchers.set(folder, watcher);
    if (!deep) return;
    for (const entry of readdirSync(folder, { withFileTypes: true }))
      if (entry.isDirectory() && !isIgnored(entry.name)) this.follow(join(folder, entry.name));
  }

  close(): void {
    for (const folder of this.watchers.keys()) this.forget(folder);
  }

  private seen(path: string, deep: boolean): void {
    if (deep) this.refollow(path);
    this.onSaved(path);
  }

  /** A folder of that name may have come, gone, or be another one. */
  private refollow(path: string): void {
    const isThere = isFolder(path);
    if (!isThere && !this.watchers.has(path)) return;
    for (const folder of this.watchers.keys())
      if (folder === path || folder.startsWith(`${path}/`)) this.forget(folder);
    if (!isThere) return;
    try {
      this.follow(path);
    } catch {
      // It has gone meanwhile.
    }
  }

  private forget(folder: string): void {
    this.watchers.get(folder)?.close();
    this.watchers.delete(folder);
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** The folders whose files have to be watched for these samples: those that are named, and those of files. */
export function foldersOf(sources: readonly string[]): string[] {
  const folders = sources.map((source) => (isFolder(source) ? resolve(source) : dirname(resolve(source))));
  return [...new Set(folders)].filter(isFolder);
}

/** Whether a file is one of the samples, or in one of their folders. */
export function isSample(file: string, sources: readonly string[]): boolean {
  return sources.some((source) => file === resolve(source) || dirname(file) === resolve(source));
}
