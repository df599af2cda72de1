import { writeYaml } from '../../contract/yaml.js';
import type { Plan } from './code.js';
import { fieldsOf } from './fields.js';

/** A custom resource that leads to everything that the kind makes. */
export function sampleText({ names, design }: Plan): string {
  const given = fieldsOf(design, names).filter(({ sample }) => sample !== undefined);
  return writeYaml({
    apiVersion: `${names.group}/v1`,
    kind: names.kind,
    metadata: { name: 'hello' },
    spec: Object.fromEntries(given.map(({ name, sample }) => [name, sample])),
  });
}
