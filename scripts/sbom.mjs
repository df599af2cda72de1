// Writes a bill of materials (CycloneDX) of the bundle to a file: the packages that esbuild took something of. Scanners of
// an image or a package don't see them, since they are in one file. `node scripts/sbom.mjs META FILE`.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The bill for what `inputs` names, by the packages of a lock file. */
export function billOf(inputs, { name, version, packages }) {
  const paths = new Set(inputs.flatMap((input) => packagePath(input, packages) ?? []));
  const components = [...paths].sort().map((path) => component(path, packages[path]));
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: {
        type: 'application',
        name,
        version,
        purl: purlOf(name, version),
        'bom-ref': purlOf(name, version),
      },
    },
    components,
  };
}

/** The innermost package that a file is of; what is part of the project itself is of none. */
function packagePath(input, packages) {
  for (let path = dirname(input); path !== '.' && path !== '/'; path = dirname(path))
    if (/(^|\/)node_modules\/(@[^/]+\/)?[^/]+$/.test(path) && packages[path]) return path;
  return undefined;
}

function component(
  path,
  { version, license, integrity, name = path.slice(path.lastIndexOf('node_modules/') + 13) },
) {
  const purl = purlOf(name, version);
  const [algorithm, digest] = integrity?.split('-') ?? [];
  return {
    ...{ type: 'library', name, version, purl, 'bom-ref': `${purl}#${path}` },
    ...(license && {
      licenses: [/[ ()]/.test(license) ? { expression: license } : { license: { id: license } }],
    }),
    ...(algorithm === 'sha512' && {
      hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }],
    }),
  };
}

function purlOf(name, version) {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [meta, file] = process.argv.slice(2);
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const { inputs } = JSON.parse(readFileSync(meta, 'utf8'));
  writeFileSync(file, `${JSON.stringify(billOf(Object.keys(inputs), lock), null, 2)}\n`);
}
