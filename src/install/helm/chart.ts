import type { StructuralSchema } from '../../contract/crd.js';
import type { Kind } from '../../contract/kind.js';
import { writeYaml } from '../../contract/yaml.js';
import { kindName, runArguments } from '../arguments.js';
import { installManifests } from '../manifests.js';
import { MONITORING_PARTS } from '../props.js';
import type { MonitoringProps } from '../props.js';
import { INSTALL_NAME } from '../names.js';
import { accessTemplate, defaultResources, operatorTemplate, partValue } from './parts.js';
import {
  COMMON_PLACES,
  RELEASE_NAMESPACE,
  renderProps,
  WATCHED_NAMESPACE,
  kindKey,
  kindOn,
  chartOptions,
  optionName,
  placeOf,
} from './values.js';
import type { ChartProps, ChartOption } from './values.js';
import { valuesSchema } from './schema.js';
import { indented, Template } from './template.js';

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

/** The file of default values, with a word on each. */
function valuesFile(props: ChartProps): string {
  const { watchNamespaces = [], replicas } = props;
  return [
    commented('The image of the controller: with a tag, a digest, or both.', {
      image: imageParts(props.image),
    }),
    commented('Controllers, of which one leads.', { replicas }),
    kindValues(props),
    commented(
      'The only namespaces that are looked at: with Roles there, and no rights in the whole cluster. All, if empty.',
      { watchNamespaces },
    ),
    optionValues(props),
    commented(
      'What the admin allows, by kind; everything, if empty. What StreamIngress may use decides on rights, so it is\n' +
        'part of the chart: make one with "reconstruct install --format helm --policy FILE".',
      { policy: policyOf(props) },
    ),
    commented(
      'For Prometheus and Grafana: what they find, labels by which they find it, and the address (https://...) under which\n' +
        'docs/runbooks is read. The first two need the types of the Prometheus operator in the cluster.',
      { monitoring: monitoringOf(props) },
    ),
    commented(
      'CRDs come with the chart, are brought up to date by it, and stay when it is uninstalled. Of several releases in\n' +
        'one cluster, one has them.',
      { crds: { enabled: true } },
    ),
    commented('What the controller asks for, and may use.', { resources: defaultResources(props) }),
    commented('Where the image is pulled from takes credentials: [{ name: my-registry }].', {
      imagePullSecrets: [],
    }),
    commented('Where the controller may run.', { nodeSelector: {}, tolerations: [] }),
    commented('How important it is beside other Pods: the name of a PriorityClass.', {
      priorityClassName: '',
    }),
  ].join('\n');
}

function commented(comment: string, value: object): string {
  return `${comment.replaceAll(/^/gm, '# ')}\n${writeYaml(value)}`;
}

function imageParts(image: string): object {
  const [name = '', digest = ''] = image.split('@');
  const colon = name.lastIndexOf(':');
  const hasTag = colon > name.lastIndexOf('/');
  return {
    repository: hasTag ? name.slice(0, colon) : name,
    tag: hasTag ? name.slice(colon + 1) : '',
    digest,
  };
}

function kindValues({ kinds, on }: ChartProps): string {
  const lines = kinds.map((kind) => `${JSON.stringify(kindKey(kind, kinds))}: ${on.includes(kind)}`);
  const plain = lines.map((line) => line.replace(/^"([\w-]+)":/, '$1:'));
  const off = kinds.filter((kind) => !on.includes(kind)).map((kind) => kindKey(kind, kinds));
  const why =
    off.length > 0
      ? `${off.join(', ')}: off unless asked for, since it needs rights in a namespace that has to be there.`
      : '';
  const comment = ['What the controller looks after; at least one has to be on.', why]
    .filter(Boolean)
    .join('\n');
  return `${comment.replaceAll(/^/gm, '# ')}\nkinds:\n${indented(plain.join('\n'), 2)}\n`;
}

/** Each as a line to be completed, since what isn't given has a default of its own. */
function optionValues(props: ChartProps): string {
  const { flags = {} } = props;
  const all = props.kinds
    .flatMap((kind: Kind) => chartOptions(kind, { ...props, namespace: '' }))
    .filter(({ use }) => use !== 'fixed');
  const given = all.filter(({ flag }) => flag.name in flags);
  const values = Object.fromEntries(
    given.map(({ flag }) => [optionName(flag), valueOf(flag, flags[flag.name])]),
  );
  const comments = all.map(({ flag }) => `  ${optionName(flag)}: ${flag.description}`);
  return commented(`Options of the kinds:\n${comments.join('\n')}`, { options: values });
}

function valueOf({ list, schema }: ChartOption['flag'], value: unknown): unknown {
  if (list) return [value].flat();
  return schema?.type === 'integer' ? Number(value) : value;
}

function monitoringOf({ monitoring }: ChartProps): object {
  const { parts = [], labels = {}, runbooks = '' }: Partial<MonitoringProps> = monitoring ?? {};
  const on = MONITORING_PARTS.map((part) => [partValue(part), parts.includes(part)] as const);
  return { ...Object.fromEntries<boolean>(on), labels, runbooks };
}

/** Of the kinds that the chart has. */
function policyOf({ kinds, policy }: ChartProps): object {
  const names = new Set(kinds.map(({ name }) => name));
  return Object.fromEntries(Object.entries(policy?.parsed ?? {}).filter(([name]) => names.has(name)));
}
