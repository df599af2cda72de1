// Writes crds/optional/appservices.app.example.com.yaml from the CRD of kosmos.io: the same kind under the group of the
// tutorial, for those who install it on request. `npm run crds` runs it; a test compares,
// with what it writes to the file that its argument names.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { stringify } from 'yaml';
import { readYaml } from '../lib/values/yaml.js';

const GROUP = 'app.example.com';
const SOURCE = 'crds/appservices.kosmos.io.yaml';
const TARGET = `crds/optional/appservices.${GROUP}.yaml`;

const HEADER = `# Generated from ${SOURCE} by "npm run crds"; edit that file instead.\n`;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const target = process.argv[2] ?? join(root, TARGET);
writeFileSync(target, appExampleCrd(readFileSync(join(root, SOURCE), 'utf8')));

/**
 * The text of the generated file. It has neither the short name nor the category, so that `kubectl get appsvc` and
 * `kubectl get all` speak of kosmos.io alone.
 * @param {string} source the text of the CRD of kosmos.io
 */
function appExampleCrd(source) {
  const { metadata, spec, ...rest } = readYaml(source);
  const { shortNames, categories, ...names } = spec.names;
  const [{ name, served, storage, ...version }] = spec.versions;
  const versions = [
    { name: 'v1', served: true, storage: true, ...version },
    {
      name: 'v1alpha1',
      served: true,
      storage: false,
      deprecated: true,
      deprecationWarning: `${GROUP}/v1alpha1 AppService is deprecated; use ${GROUP}/v1 AppService, which has the same fields`,
      ...version,
    },
  ];
  const crd = {
    ...rest,
    metadata: { ...metadata, name: `appservices.${GROUP}` },
    spec: { ...spec, group: GROUP, names, versions },
  };
  // What is alike stands there once, by aliases of YAML, which our own writer doesn't make; kubectl writes it out.
  const text = stringify(crd, { lineWidth: 0 });
  if (!isDeepStrictEqual(readYaml(text), crd))
    throw new Error(
      `${TARGET} would be another CRD to kubectl; put quotes into ${SOURCE} where text looks like a number`,
    );
  return HEADER + text;
}
