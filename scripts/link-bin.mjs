// Links the compiled command as `reconstruct` in node_modules/.bin, which is in the PATH of npm scripts: npm links the commands of
// dependencies, not those of the package itself. `npx reconstruct` runs the bundle, as the package's own command.
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Links the compiled command. */
export function linkBin() {
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  chmodSync(join(root, 'lib/cli/main.js'), 0o755);
  // Windows has no use for it: its links need a right of their own.
  if (process.platform === 'win32') return;
  const folder = join(root, 'node_modules/.bin');
  mkdirSync(folder, { recursive: true });
  const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const link of Object.keys(bin).map((name) => join(folder, name))) {
    rmSync(link, { force: true });
    symlinkSync('../../lib/cli/main.js', link);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) linkBin();
