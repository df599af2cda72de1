import { writeYaml } from '../../contract/yaml.js';
import { accessTemplate } from './access.js';
import type { ChartProps } from './chart-props.js';
import { definitionTemplates } from './definitions.js';
import { helpersTemplate } from './helpers.js';
import { NOTES } from './notes.js';
import { operatorTemplate } from './operator.js';
import { valuesSchema } from './schema.js';
import { valuesFile } from './values.js';

/** What is no part of the chart when it is packed: the list of what was written, and what is being written. */
const IGNORED = '.reconstruct-synth*\n';

/** A file of a chart. */
export interface ChartFile {
  /** Its path in the chart. */
  readonly name: string;
  readonly text: string;
}

/**
 * A Helm chart that installs what `installManifests` makes of the same, with what its values say in place of props.
 *
 * **Guarantees.** Every object comes from `installManifests`, with expressions where values count. The same input gives
 * the same files.
 *
 * **Caveats.** The namespace itself is Helm's to make (`--create-namespace`).
 *
 * @throws OperatorError `InvalidInput` where a flag's value or the policy can't be worked with
 */
export function helmChart(props: ChartProps): ChartFile[] {
  return [
    { name: 'Chart.yaml', text: writeYaml(metadata(props)) },
    { name: 'values.yaml', text: valuesFile(props) },
    { name: 'values.schema.json', text: `${JSON.stringify(valuesSchema(props), undefined, 2)}\n` },
    { name: '.helmignore', text: IGNORED },
    { name: 'templates/NOTES.txt', text: NOTES },
    { name: 'templates/_helpers.tpl', text: helpersTemplate(props) },
    { name: 'templates/access.yaml', text: accessTemplate(props) },
    { name: 'templates/operator.yaml', text: operatorTemplate(props) },
    ...definitionTemplates(props).map(({ name, text }) => ({ name: `templates/${name}`, text })),
  ];
}

function metadata({ version, oldestKubernetes }: ChartProps): object {
  return {
    apiVersion: 'v2',
    name: 'reconstruct',
    description: 'The operator Reconstruct: its CRDs, the controller, and the rights that its kinds need',
    type: 'application',
    version,
    appVersion: version,
    // With pre-releases, as what providers append to the version is taken for one.
    kubeVersion: `>=${oldestKubernetes}.0-0`,
  };
}
