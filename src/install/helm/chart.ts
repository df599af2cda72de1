import type { StructuralSchema } from '../../contract/crd.js';
import { writeYaml } from '../../contract/yaml.js';
import { kindName, runArguments } from '../arguments.js';
import { installManifests } from '../manifests.js';
import { INSTALL_NAME } from '../names.js';
import { accessTemplate } from './access.js';
import { COMMON_PLACES, RELEASE_NAMESPACE, renderProps, WATCHED_NAMESPACE } from './chart-props.js';
import type { ChartProps } from './chart-props.js';
import { kindOn } from './kind-values.js';
import { operatorTemplate } from './operator.js';
import { chartOptions, optionName, placeOf } from './options.js';
import { valuesSchema } from './schema.js';
import { Template } from './template.js';
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

/** The CRDs, which Helm brings up to date and never takes away. */
function definitionTemplates(props: ChartProps): { readonly name: string; readonly text: string }[] {
  const template = new Template(new Map(COMMON_PLACES));
  const all = installManifests(renderProps(props)).filter(({ kind }) => kind === 'CustomResourceDefinition');
  return props.kinds.map((kind) => {
    const { name } = kind.crd.metadata;
    const found = all.filter(({ metadata }) => metadata.name === name);
    const kept = found.map((crd) => ({
      ...crd,
      metadata: {
        ...crd.metadata,
        annotations: { ...crd.metadata.annotations, 'helm.sh/resource-policy': 'keep' },
      },
    }));
    const text = kept.map((crd) => template.write(template.filled(crd))).join('---\n');
    return {
      name: `crd-${name}.yaml`,
      text: `{{- if and $.Values.crds.enabled (${kindOn(kind, props.kinds)}) }}\n${text}{{- end }}\n`,
    };
  });
}

/** What the templates share. */
function helpersTemplate(props: ChartProps): string {
  const kinds = [...props.kinds].sort((a, b) => (kindName(a) < kindName(b) ? -1 : 1));
  return `{{/* The image, with tag, digest, or both. */}}
{{- define "reconstruct.image" -}}
{{- $.Values.image.repository }}
{{- with $.Values.image.tag }}:{{ . }}{{ end }}
{{- with $.Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/* The full names of the kinds that are on. */}}
{{- define "reconstruct.kinds" -}}
{{- $kinds := list }}
${kinds.map((kind) => `{{- if ${kindOn(kind, props.kinds)} }}{{ $kinds = append $kinds "${kindName(kind)}" }}{{ end }}`).join('\n')}
{{- join "," $kinds }}
{{- end }}

{{/* What the container is started with. */}}
{{- define "reconstruct.arguments" -}}
${argumentLines(props).join('\n')}
{{- end }}
`;
}

/** The arguments with everything that may be among them, each with the condition on which it is. */
function argumentLines(props: ChartProps): string[] {
  const options = props.kinds.flatMap((kind) =>
    chartOptions(kind, { ...props, namespace: RELEASE_NAMESPACE }),
  );
  const flags = Object.fromEntries(options.map(({ flag }) => [flag.name, placeOf(flag)]));
  const all = runArguments({
    ...{ ...renderProps(props), flags, policy: { text: '', parsed: {} } },
    watchNamespaces: [WATCHED_NAMESPACE],
  });
  return all.flatMap((argument) => {
    const [name = '', value] = argument.split('=', 2);
    const line = (text: string): string => `- {{ printf "${name}=%v" (${text}) | quote }}`;
    const on = (condition: string, text: string): string[] => [`{{- ${condition} }}`, text, '{{- end }}'];
    if (name === '--kinds') return [line('include "reconstruct.kinds" $')];
    if (name === '--watch-namespace')
      return on('with $.Values.watchNamespaces', line('sortAlpha . | join ","'));
    if (name === '--policy') return on('if $.Values.policy', `- ${argument}`);
    const option = options.find(({ flag }) => flag.name === name);
    if (!option || value === undefined) return [`- ${argument}`];
    if (option.use === 'fixed') return fixed(name, props);
    return on(`with $.Values.options.${optionName(option.flag)}`, line(textOf(option.flag)));
  });
}

function fixed(name: string, { flags = {} }: ChartProps): string[] {
  const value = flags[name];
  return value === undefined ? [] : [`- ${JSON.stringify(`${name}=${[value].flat().join()}`)}`];
}

function textOf({ list, schema }: { readonly list?: boolean; readonly schema?: StructuralSchema }): string {
  if (list) return 'join "," .';
  // Helm reads numbers as floating ones.
  return schema?.type === 'integer' ? 'int .' : '.';
}

/** What Helm says once a release is installed or upgraded: what to do next. */
const NOTES = `${INSTALL_NAME} is installed in {{ $.Release.Namespace }}. It looks after {{ include "reconstruct.kinds" $ | replace "," ", " }}
{{- with $.Values.watchNamespaces }} in {{ sortAlpha . | join ", " }}{{ end }}.

Wait until it is ready:

  kubectl rollout status deployment/${INSTALL_NAME} --namespace {{ $.Release.Namespace }}

Apply a custom resource, such as one of examples/ in the repository:

  kubectl apply -f FILE

See how it fares, what was made for it, and why it isn't ready yet:

  reconstruct status
`;
