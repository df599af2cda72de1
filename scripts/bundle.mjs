// Bundles the compiled command into lib/bundle/: one entry, and a chunk for whatever a subcommand loads on demand, so
// that `--help` loads next to nothing and `run` doesn't load what only `synth` needs. Needs nothing of node_modules.
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { filesBesideModules, oneYaml, undiciInParts, withoutGeneratedApi } from './bundle-plugins.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const lib = join(root, 'lib');
const outdir = join(lib, 'bundle');

rmSync(outdir, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: { reconstruct: join(lib, 'cli/main.js') },
  outdir,
  outExtension: { '.js': '.mjs' },
  chunkNames: '[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node22.19',
  // Names stay, so that a stack trace can be read.
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: 'linked',
  sourcemap: 'external',
  metafile: true,
  logLevel: 'warning',
  // Dependencies in CommonJS ask for Node's own modules.
  banner: {
    js: "import { createRequire as __createRequire } from 'node:module';const require = __createRequire(import.meta.url);",
  },
  plugins: [filesBesideModules({ lib, outdir }), oneYaml, withoutGeneratedApi, undiciInParts],
});
writeFileSync(join(outdir, 'meta.json'), JSON.stringify(metafile));
chmodSync(join(outdir, 'reconstruct.mjs'), 0o755);
