// Bundles the compiled command, for the package or, with --image, for the image; `--out` names another folder than
// the target's own, and `--released IMAGE` what `install` installs by default. Needs nothing of node_modules at run time.
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { oneYaml, undiciInParts, withinModules } from './bundle-plugins.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const lib = join(root, 'lib');

const { values } = parseArgs({
  options: { image: { type: 'boolean' }, out: { type: 'string' }, released: { type: 'string' } },
});

/**
 * One entry, and a chunk for whatever a subcommand loads on demand, so that `--help` loads next to nothing and `run`
 * doesn't load what only `synth` needs. The modules name files as if they were where they were compiled.
 */
const forPackage = {
  folder: join(lib, 'bundle'),
  place: join(lib, 'bundle'),
  options: { splitting: true, sourcemap: 'external', legalComments: 'linked' },
};

/** One file and nothing beside it, which is where all modules are. */
const forImage = {
  folder: join(lib, 'image'),
  place: lib,
  options: { splitting: false, sourcemap: false, legalComments: 'eof' },
};

await bundle(values.image ? forImage : forPackage);

async function bundle({ folder, place, options }) {
  const outdir = resolve(values.out ?? folder);
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
    // Their builds in CommonJS, which Node takes, show no names where they are loaded on demand.
    alias: Object.fromEntries(
      ['asn1-schema', 'asn1-x509'].map((name) => [
        `@peculiar/${name}`,
        join(root, `node_modules/@peculiar/${name}/build/es2015/index.js`),
      ]),
    ),
    plugins: [withinModules({ lib, place, image: values.released }), oneYaml, undiciInParts],
    ...options,
  });
  writeFileSync(join(outdir, 'meta.json'), JSON.stringify(metafile));
  chmodSync(join(outdir, 'reconstruct.mjs'), 0o755);
}
