// Compiles without checking types, in a second, where tsc takes ten: the first run of the demo in a clone is to show something at
// once. It writes what tsc does but for the types, for which tsc compiles all of it when it first runs.
import { globSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

await Promise.all([transpile('src', 'lib'), transpile('sandbox', 'lib/sandbox')]);

async function transpile(folder, outdir) {
  await build({
    absWorkingDir: root,
    entryPoints: globSync(`${folder}/**/*.ts`, { cwd: root }),
    outbase: folder,
    outdir,
    format: 'esm',
    platform: 'node',
    sourcemap: true,
    logLevel: 'warning',
  });
}
