// What the bundle takes of its dependencies. Each plugin leaves out what is never used at run time; a name that is
// used and left out fails the build.
import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { readYaml } from '../lib/values/yaml.js';
import { chartIn } from '../lib/install/chart.js';

/**
 * What modules read of files beside them comes along within them: CRDs as JSON, since to parse 50 KiB of YAML takes
 * 12 MiB of memory and more time than all the rest of the start, the files of the chart, and the version of the package,
 * with the image that was released with it. Otherwise, a module goes on naming files as if it were at its place below `lib`, and `lib` were the
 * folder `place` as seen from there.
 */
export function withinModules({ lib, place, image }) {
  return {
    name: 'within-modules',
    setup({ onLoad }) {
      onLoad({ filter: /\.js$/, namespace: 'file' }, async ({ path }) => {
        if (!path.startsWith(lib + sep)) return undefined;
        const contents = await readFile(path, 'utf8');
        if (!contents.includes('import.meta.url')) return undefined;
        const url = JSON.stringify(relative(place, path).split(sep).join('/'));
        return {
          contents: contents
            .replaceAll(CRD_BESIDE, (_, file) =>
              jsonIn(readYaml(readFileSync(resolve(dirname(path), file), 'utf8'))),
            )
            .replaceAll(CHART_BESIDE, (_, chart) =>
              jsonIn(chartIn(pathToFileURL(`${resolve(dirname(path), chart)}/`))),
            )
            .replaceAll(PACKAGE_BESIDE, (_, file) => packageIn(resolve(dirname(path), file), image))
            .replaceAll('import.meta.url', `new URL(${url}, import.meta.url).href`),
        };
      });
    },
  };
}

const CRD_BESIDE = /new URL\('([^']*\/crds\/[^']+\.yaml)', import\.meta\.url\)/g;
const CHART_BESIDE = /chartIn\(new URL\('([^']*\/charts\/[^']+)\/', import\.meta\.url\)\)/g;
const PACKAGE_BESIDE = /readFileSync\(new URL\('([^']*\/package\.json)', import\.meta\.url\), 'utf8'\)/g;

/** An expression that is the value. V8 reads JSON in a string twice as fast as the same in code. */
function jsonIn(value) {
  return `JSON.parse(${JSON.stringify(JSON.stringify(value))})`;
}

/** An expression that is all that is read of the package. */
function packageIn(file, image) {
  const { version } = JSON.parse(readFileSync(file, 'utf8'));
  return JSON.stringify(JSON.stringify({ version, image }));
}

/** cdk8s packs a YAML library of its own; where it is the very version that we use, one is enough. */
export const oneYaml = {
  name: 'one-yaml',
  setup({ onResolve }) {
    const own = fileURLToPath(import.meta.resolve('yaml'));
    onResolve({ filter: /^yaml$/ }, ({ resolveDir }) => {
      const packed = join(resolveDir.replace(/(node_modules.cdk8s).*$/, '$1'), 'node_modules/yaml');
      return sameVersion(packed, dirname(dirname(own))) ? { path: own } : undefined;
    });
  },
};

function sameVersion(one, other) {
  const versionOf = (folder) => {
    const file = join(folder, 'package.json');
    return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : undefined;
  };
  return versionOf(one) === versionOf(other);
}

/** Takes the parts of undici that are used. */
export const undiciInParts = {
  name: 'undici-in-parts',
  setup({ onResolve }) {
    onResolve({ filter: /^undici$/ }, () => ({ path: UNDICI_PARTS }));
  },
};

export const UNDICI_PARTS = fileURLToPath(new URL('./undici-parts.mjs', import.meta.url));
