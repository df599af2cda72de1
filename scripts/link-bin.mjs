// Makes `npx reconstruct` work in this repository: npm links the commands of dependencies, not those of the package
// itself, and npx would install the folder into its cache instead.
import { chmodSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Links the compiled command. */
export function linkBin() {
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  const link = join(root, 'node_modules/.bin/reconstruct');
  chmodSync(join(root, 'lib/cli/main.js'), 0o755);
  // Windows has no use for it: its links need a right of their own.
  if (process.platform === 'win32') return;
  mkdirSync(dirname(link), { recursive: true });
  rmSync(link, { force: true });
  symlinkSync('../../lib/cli/main.js', link);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) linkBin();
