// What the bundle takes of its dependencies. Each plugin leaves out what is never used at run time; a name that is
// used and left out fails the build.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

/**
 * Files are found at run time relative to the module that names them (package.json). In the bundle, a module goes on
 * naming them as if it still were where it was compiled. Only CRDs come along, as JSON: to parse a YAML file of
 * 50 KiB takes 12 MiB of memory and more time than all the rest of the start.
 */
export function filesBesideModules({ lib, outdir }) {
  return {
    name: 'files-beside-modules',
    setup({ onLoad }) {
      onLoad({ filter: /\.js$/, namespace: 'file' }, async ({ path }) => {
        if (!path.startsWith(lib + sep)) return undefined;
        const contents = await readFile(path, 'utf8');
        if (!contents.includes('import.meta.url')) return undefined;
        const withCrds = contents.replaceAll(CRD_BESIDE, (_, file) => {
          const json = crdAsJson(resolve(dirname(path), file), outdir);
          return `new URL(${JSON.stringify(json)}, HERE)`;
        });
        const place = JSON.stringify(relative(outdir, path).split(sep).join('/'));
        return {
          contents: withCrds
            .replaceAll('import.meta.url', `new URL(${place}, import.meta.url).href`)
            .replaceAll('HERE)', 'import.meta.url)'),
        };
      });
    },
  };
}

const CRD_BESIDE = /new URL\('([^']*\/crds\/[^']+\.yaml)', import\.meta\.url\)/g;

function crdAsJson(file, outdir) {
  const json = `./crds/${basename(file, '.yaml')}.json`;
  mkdirSync(join(outdir, 'crds'), { recursive: true });
  writeFileSync(join(outdir, json), JSON.stringify(parse(readFileSync(file, 'utf8'))));
  return json;
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

/**
 * Of client-node, KubeConfig is used. It could also make clients of the generated API, whose thousand modules take
 * 60 MiB of memory; nobody here asks for one.
 */
export const withoutGeneratedApi = {
  name: 'without-generated-api',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^@kubernetes\/client-node$/ }, () => ({
      path: join(dirname(fileURLToPath(import.meta.resolve('@kubernetes/client-node'))), 'config.js'),
    }));
    onResolve({ filter: /^\.\/gen\// }, ({ importer }) =>
      importer.includes('client-node') ? { path: 'gen', namespace: 'generated-api' } : undefined,
    );
    onLoad({ filter: /./, namespace: 'generated-api' }, () => ({
      contents: `
        const absent = () => {
          throw new Error('The generated API of client-node is not part of the bundle');
        };
        export { absent as createConfiguration, absent as ServerConfiguration, absent as of };`,
    }));
  },
};

/** Of undici, the dispatchers and `request` are used; its index brings fetch, WebSockets, caches and mocks along. */
export const undiciInParts = {
  name: 'undici-in-parts',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^undici$/ }, () => ({ path: 'undici', namespace: 'undici-in-parts' }));
    onLoad({ filter: /./, namespace: 'undici-in-parts' }, () => ({
      resolveDir: dirname(fileURLToPath(import.meta.url)),
      contents: `
        import Agent from 'undici/lib/dispatcher/agent.js';
        import Client from 'undici/lib/dispatcher/client.js';
        import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
        import Pool from 'undici/lib/dispatcher/pool.js';
        import ProxyAgent from 'undici/lib/dispatcher/proxy-agent.js';
        import apiRequest from 'undici/lib/api/api-request.js';
        import errors from 'undici/lib/core/errors.js';
        import buildConnector from 'undici/lib/core/connect.js';
        import util from 'undici/lib/core/util.js';

        Dispatcher.prototype.request = apiRequest;

        /** As in undici's index, for a dispatcher that is given. */
        function request(url, { dispatcher, ...options }) {
          const { origin, pathname, search } = util.parseURL(url);
          const method = options.method || (options.body ? 'PUT' : 'GET');
          return dispatcher.request({ ...options, origin, path: pathname + search, method });
        }

        export { Agent, buildConnector, Client, Dispatcher, errors, Pool, ProxyAgent, request };`,
    }));
  },
};
