// Writes the package as it is published to dist/package/, or the folder that --out names: what `files` in package.json
// lists, with a manifest for users. Packs it beside that folder, and prints the file. `--repository` and `--image` say what is
// known only where it is released; the latter is what `reconstruct install` of this package installs.
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values } = parseArgs({
  options: {
    out: { type: 'string', default: join(root, 'dist/package') },
    repository: { type: 'string' },
    image: { type: 'string' },
  },
});

const folder = packInto(values.out);
cpSync(join(root, 'node_modules/undici'), join(folder, 'node_modules/undici'), {
  recursive: true,
  filter: (path) => basename(path) !== 'docs',
});
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
 * Returns the manifest without what only this repository needs, and without `engines`, which the command checks itself. npm prints
 * a block about those of a dependency unless it is optional, as undici is, which comes within the package and so is never missing.
 * client-node, of which only types are used, is an optional peer: a project that names none of them is spared its 80 MB.
 */
function publishedManifest({ scripts, workspaces, devDependencies, overrides, engines, imports, ...rest }) {
  const { undici, '@kubernetes/client-node': types, ...dependencies } = rest.dependencies;
  const { '#cli/*': ofTheDemo, ...ownImports } = imports;
  return {
    ...rest,
    dependencies,
    imports: ownImports,
    optionalDependencies: { undici },
    peerDependencies: { ...rest.peerDependencies, '@kubernetes/client-node': `^${types}` },
    peerDependenciesMeta: { '@kubernetes/client-node': { optional: true } },
    bundleDependencies: ['undici'],
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
