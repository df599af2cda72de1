// Bundles the compiled command, for the package and for the image. Needs nothing of node_modules at run time.
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { oneYaml, undiciInParts, withinModules, withoutGeneratedApi } from './bundle-plugins.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const lib = join(root, 'lib');

/**
 * `lib/bundle/`, for the package: one entry, and a chunk for whatever a subcommand loads on demand, so that `--help`
 * loads next to nothing and `run` doesn't load what only `synth` needs.
 */
const forPackage = { folder: 'bundle', splitting: true, sourcemap: 'external', legalComments: 'linked' };

/** `lib/image/`, for the image: one file and nothing beside it. */
const forImage = { folder: 'image', splitting: false, sourcemap: false, legalComments: 'eof' };

for (const target of process.argv.includes('--image') ? [forImage] : [forPackage]) await bundle(target);

async function bundle({ folder, ...options }) {
  const outdir = join(lib, folder);
  rmSync(outdir, { recursive: true, force: true });
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { reconstruct: join(lib, 'cli/main.js') },
    outdir,
    outExtension: { '.js': '.mjs' },
    chunkNames: '[name]-[hash]',
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22.19',
    // Names stay, so that a stack trace can be read.
    minifySyntax: true,
    minifyWhitespace: true,
    metafile: true,
    logLevel: 'warning',
    // Dependencies in CommonJS ask for Node's own modules.
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module';const require = __createRequire(import.meta.url);",
    },
    plugins: [
      // In one file, the modules are where it is; in chunks they go on as if they were where they were compiled.
      withinModules({ lib, place: options.splitting ? outdir : lib }),
      ...[oneYaml, withoutGeneratedApi, undiciInParts],
    ],
    ...options,
  });
  writeFileSync(join(outdir, 'meta.json'), JSON.stringify(metafile));
  chmodSync(join(outdir, 'reconstruct.mjs'), 0o755);
}
