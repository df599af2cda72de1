import { fstatSync, statSync } from 'node:fs';

/**
 * Whether a file is where this process writes to, as in `reconstruct dev > dev.log`: what is told of a reload would lead to
 * the next one.
 * @param outputs file descriptors
 */
export function isOwnOutput(path: string, outputs: readonly number[] = [1, 2]): boolean {
  const file = statSync(path, { throwIfNoEntry: false });
  if (!file?.isFile()) return false;
  return outputs.some((descriptor) => {
    const output = fstatSync(descriptor);
    return output.ino === file.ino && output.dev === file.dev;
  });
}
