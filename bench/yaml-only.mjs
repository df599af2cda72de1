// The yardstick of synth.mjs: parses the custom resources, and writes the manifests, which are given as JSON.
import { readFileSync } from 'node:fs';
import { parseAllDocuments, stringify } from 'yaml';

const [input, output] = process.argv.slice(2);
parseAllDocuments(readFileSync(input, 'utf8')).forEach((document) => document.toJS());
const manifests = JSON.parse(readFileSync(output, 'utf8'));
process.stdout.write(manifests.map((manifest) => `---\n${stringify(manifest)}`).join(''));
