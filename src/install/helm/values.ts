import type { Kind } from '../../contract/kind.js';
import { writeYaml } from '../../contract/yaml.js';
import { MONITORING_PARTS } from '../monitoring/props.js';
import type { MonitoringProps } from '../monitoring/props.js';
import type { ChartProps } from './chart-props.js';
import { kindKey } from './kind-values.js';
import { defaultResources } from './operator.js';
import { chartOptions, optionName } from './options.js';
import type { ChartOption } from './options.js';
import { partValue } from './parts.js';
import { indented } from './template.js';

/** The file of default values, with a word on each. */
export function valuesFile(props: ChartProps): string {
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
