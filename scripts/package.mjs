// Writes the package as it is published to dist/package/, or the folder that --out names: what `files` in package.json
// lists, with a manifest for users. Packs it beside that folder, and prints the file. `--repository` and `--image` say what is
// known only where it is released; the latter is what `reconstruct install` of this package installs.
import { execFileSync } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values } = parseArgs({
  options: {
    out: { type: 'string', default: join(root, 'dist/package') },
    repository: { type: 'string' },
    image: { type: 'string' },
  },
});

const folder = packInto(values.out);
await inlineUndici(folder);
if (values.image) bundleFor(values.image, join(folder, 'lib/bundle'));
const file = join(folder, 'package.json');
const manifest = publishedManifest(JSON.parse(readFileSync(file, 'utf8')));
writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`);
const [packed] = JSON.parse(npm('pack', folder, '--json', '--pack-destination', dirname(folder)));
process.stdout.write(`${relative(process.cwd(), join(dirname(folder), packed.filename))}\n`);

function packInto(out) {
  mkdirSync(dirname(out), { recursive: true });
  const temporary = mkdtempSync(join(dirname(out), '.package-'));
  try {
    const packed = npm('pack', '--ignore-scripts', '--json', '--pack-destination', temporary);
    const [{ filename }] = JSON.parse(packed);
    run('tar', ['-xzf', join(temporary, filename), '-C', temporary]);
    rmSync(out, { recursive: true, force: true });
    renameSync(join(temporary, 'package'), out);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
  return out;
}

/** Makes the bundle anew, with the image in it; what `files` leaves out is left out. */
function bundleFor(image, bundle) {
  run(process.execPath, [join(root, 'scripts/bundle.mjs'), '--released', image, '--out', bundle]);
  for (const file of globSync('{meta.json,*.map}', { cwd: bundle })) rmSync(join(bundle, file));
}

/**
 * Puts undici into the modules that import it: as a dependency, it would have npm print a block about its `engines` on an older
 * Node, beside the one line of the command that names the remedy.
 */
async function inlineUndici(folder) {
  const modules = ['engine/transport', 'sandbox/download'].map((name) => join(root, 'lib', `${name}.js`));
  const others = ({ path, importer }) => (modules.includes(importer) ? { path, external: true } : undefined);
  await build({
    ...{
      entryPoints: modules,
      outbase: join(root, 'lib'),
      outdir: join(folder, 'lib'),
      allowOverwrite: true,
    },
    ...{
      bundle: true,
      splitting: true,
      chunkNames: 'undici-[hash]',
      legalComments: 'eof',
      logLevel: 'warning',
    },
    ...{ format: 'esm', platform: 'node', target: 'node22.19', minifySyntax: true, minifyWhitespace: true },
    // undici is in CommonJS, and asks for Node's own modules.
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module';const require = __createRequire(import.meta.url);",
    },
    plugins: [{ name: 'others', setup: ({ onResolve }) => onResolve({ filter: /^[.#]/ }, others) }],
  });
}

/**
 * Without what only this repository needs, what `inlineUndici` makes needless, and `engines`, which the command checks itself.
 * The types of Kubernetes' objects, which depend on undici too, are optional: npm checks no engines of those.
 */
function publishedManifest({ scripts, workspaces, devDependencies, overrides, engines, imports, ...rest }) {
  const { undici, '@kubernetes/client-node': types, ...dependencies } = rest.dependencies;
  const { '#cli/*': ofTheDemo, ...ownImports } = imports;
  return {
    ...rest,
    dependencies,
    imports: ownImports,
    optionalDependencies: { '@kubernetes/client-node': types },
    ...(values.repository && { repository: { type: 'git', url: `git+${values.repository}.git` } }),
    publishConfig: { access: 'public' },
  };
}

/** The npm that runs this script, where there is one. */
function npm(...args) {
  const script = process.env.npm_execpath;
  const command = script?.endsWith('.js') ? [process.execPath, script, ...args] : ['npm', ...args];
  return run(command[0], command.slice(1));
}

/** What a program prints, which has nothing to wait for but this machine. */
function run(program, args) {
  const minutes = 5;
  process.stderr.write(`> ${[basename(program), ...args].join(' ')}, at most ${minutes} min\n`);
  return execFileSync(program, args, {
    ...{ cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
    ...{ timeout: minutes * 60_000, killSignal: 'SIGKILL' },
  });
}
