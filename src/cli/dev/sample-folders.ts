import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** The folders whose files have to be watched for these samples: those that are named, and those of files. */
export function foldersOf(sources: readonly string[]): string[] {
  const folders = sources.map((source) => (isFolder(source) ? resolve(source) : dirname(resolve(source))));
  return [...new Set(folders)].filter(isFolder);
}

/** Whether a file is one of the samples, or in one of their folders. */
export function isSample(file: string, sources: readonly string[]): boolean {
  return sources.some((source) => file === resolve(source) || dirname(file) === resolve(source));
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
