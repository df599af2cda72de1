import type { FlagValues, Kind } from '../../contract/kind.js';
import { objectId } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { writeYaml } from '../../contract/yaml.js';
import { installManifests } from '../manifests.js';
import { INSTALLATION_LABELS } from '../names.js';
import { MONITORING_PARTS } from '../props.js';
import type { InstallProps, MonitoringPart } from '../props.js';
import type { PolicyRule } from '../rules.js';
import { Template } from './template.js';
import {
  renderProps,
  RUNBOOKS_PLACE,
  COMMON_PLACES,
  IMAGE,
  MANAGER,
  RELEASE_NAMESPACE,
  WATCHED_NAMESPACE,
  kindOn,
  chartOptions,
  hasOwnPolicy,
  optionName,
  placeOf,
} from './values.js';
import type { ChartProps, ChartOption } from './values.js';

/** Something that is installed only where a value says so. */
interface Part {
  /** When it is, as an expression of a template. */
  readonly condition: string;
  /** What `install` needs to be told to make it. */
  readonly props: Partial<InstallProps>;
  /** What values decide on within its objects. @default - nothing but what every object has */
  readonly written?: (object: AnyObject, template: Template) => object;
}

/** Whatever is optional, beside kinds and rights: what an option of `install` adds in objects is added here by a value. */
const PARTS: readonly Part[] = [
  {
    condition: '$.Values.policy',
    props: { policy: { text: '', parsed: {} } },
    written: ({ data: _, ...configMap }, template) => ({
      ...configMap,
      ...template.lines(
        (indent) => `data:\n  policy.yaml: |\n    {{- toYaml $.Values.policy | nindent ${indent + 4} }}`,
      ),
    }),
  },
  ...MONITORING_PARTS.map((part) => ({
    condition: `$.Values.monitoring.${partValue(part)}`,
    props: { monitoring: { parts: [part], runbooks: RUNBOOKS_PLACE } },
    written: withMonitoringLabels,
  })),
];

/** Templates of what the parts have beyond an installation without them. */
function partTemplates(props: ChartProps, template: Template): string[] {
  const known = new Set(installManifests(renderProps(props)).map(objectId));
  return PARTS.flatMap(({ condition, props: more, written = (object) => object }) => {
    const objects = installManifests({ ...renderProps(props), ...more });
    const added = objects.filter((object) => !known.has(objectId(object)));
    return [
      `{{- if ${condition} }}\n`,
      ...added.map((object) => `---\n${template.write(written(template.filled(object), template))}`),
      '{{- end }}\n',
    ];
  });
}

/** How a part of what watches over the operator is called among the values. */
export function partValue(part: MonitoringPart): string {
  return part.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** With the labels of the values, which come before those that a part has by itself. */
function withMonitoringLabels(object: AnyObject, template: Template): object {
  const labels = Object.entries(object.metadata.labels ?? {});
  const isFixed = ([name]: readonly [string, string]): boolean => INSTALLATION_LABELS.includes(name);
  const own = labels.filter((label) => !isFixed(label)).flat();
  const byDefault = ['dict', ...own.map((text) => JSON.stringify(text))].join(' ');
  const merged = `merge (deepCopy ($.Values.monitoring.labels | default dict)) (${byDefault})`;
  return {
    ...object,
    metadata: {
      ...object.metadata,
      labels: {
        ...Object.fromEntries(labels.filter(isFixed)),
        ...template.lines(
          (indent) => `{{- with ${merged} }}\n{{- toYaml . | nindent ${indent} }}\n{{- end }}`,
        ),
      },
    },
  };
}

/** What the chart has in templates of their own, or leaves to Helm. */
const ELSEWHERE = /^(Namespace|CustomResourceDefinition|(Cluster)?Role(Binding)?)$/;

interface Container {
  readonly args: readonly string[];
  readonly resources: object;
  readonly volumeMounts?: readonly object[];
}

interface PodSpec {
  readonly containers: readonly [Container];
  readonly volumes?: readonly object[];
}

/** The Deployment and what stands around it. */
export function operatorTemplate(props: ChartProps): string {
  const template = new Template(new Map([...COMMON_PLACES, [IMAGE, 'include "reconstruct.image" $']]));
  const without = installManifests(renderProps(props));
  const withPolicy = installManifests({ ...renderProps(props), policy: { text: '', parsed: {} } });
  const documents = without
    .filter(({ kind }) => !ELSEWHERE.test(kind) && kind !== 'Deployment')
    .map((object) => `---\n${template.write(template.filled(object))}`);
  const deployment = withPolicy.find(({ kind }) => kind === 'Deployment');
  return [
    ...documents,
    ...partTemplates(props, template),
    `---\n${template.write(deployment ? deploymentIn(template.filled(deployment), template) : {})}`,
  ].join('');
}

/** What the container needs, as it is rendered: the default of a value. */
export function defaultResources(props: ChartProps): object {
  const deployment = installManifests(renderProps(props)).find(({ kind }) => kind === 'Deployment');
  return deployment ? podOf(deployment).containers[0].resources : {};
}

function podOf({ spec }: AnyObject): PodSpec {
  return (spec as { template: { spec: PodSpec } }).template.spec;
}

function deploymentIn(deployment: AnyObject, template: Template): object {
  const spec = deployment.spec as { readonly template: { readonly metadata: object } };
  const { volumes, containers, ...pod } = podOf(deployment);
  const [{ args: _, resources: __, volumeMounts, ...container }] = containers;
  const whenPolicy = (member: object): Record<string, string> =>
    template.lines(() => `{{- if $.Values.policy }}\n${writeYaml(member)}{{- end }}`);
  const value = (name: string): Record<string, string> =>
    template.lines(
      (indent) =>
        `{{- with $.Values.${name} }}\n${name}:\n  {{- toYaml . | nindent ${indent + 2} }}\n{{- end }}`,
    );
  return {
    ...deployment,
    spec: {
      ...spec,
      replicas: template.text('{{ $.Values.replicas }}'),
      template: {
        ...spec.template,
        spec: {
          ...pod,
          ...['imagePullSecrets', 'nodeSelector', 'tolerations'].reduce(
            (all, name) => ({ ...all, ...value(name) }),
            {},
          ),
          ...template.lines(
            () => '{{- with $.Values.priorityClassName }}\npriorityClassName: {{ quote . }}\n{{- end }}',
          ),
          containers: [
            {
              ...container,
              ...template.lines(
                (indent) => `args:\n  {{- include "reconstruct.arguments" $ | nindent ${indent + 2} }}`,
              ),
              ...template.lines(
                (indent) => `resources:\n  {{- toYaml $.Values.resources | nindent ${indent + 2} }}`,
              ),
              ...whenPolicy({ volumeMounts }),
            },
          ],
          ...whenPolicy({ volumes }),
        },
      },
    },
  };
}

const RBAC = 'rbac.authorization.k8s.io/v1';

/**
 * Everything that gives rights. Which rights depends on the kinds, namespaces and options among the values, so each kind
 * is rendered by itself, in either way, and what is of one name is joined by Helm.
 */
export function accessTemplate(props: ChartProps): string {
  const items = props.kinds.flatMap((kind) => [
    `{{- if ${kindOn(kind, props.kinds)} }}`,
    '{{- if $.Values.watchNamespaces }}',
    ...itemsOf(kind, props, [WATCHED_NAMESPACE]),
    '{{- else }}',
    ...itemsOf(kind, props),
    '{{- end }}',
    '{{- end }}',
  ]);
  return `{{- define "reconstruct.access" -}}\nitems:\n${items.join('\n')}\n{{- end }}\n${JOINED}`;
}

/** What can't be read is `{ Error: ... }`, which would leave the operator without any rights. */
const JOINED = `{{- $access := include "reconstruct.access" $ | fromYaml }}
{{- if not $access.items }}
{{- fail (printf "the rights of the operator can't be told: %s" ($access.Error | default "no kind is on")) }}
{{- end }}
{{- $objects := dict }}
{{- range $access.items }}
{{- $id := printf "%s %s %s" .kind (.metadata.namespace | default "") .metadata.name }}
{{- if and (hasKey $objects $id) .rules }}
{{- $object := get $objects $id }}
{{- $_ := set $object "rules" (concat $object.rules .rules | uniq) }}
{{- else }}
{{- $_ := set $objects $id . }}
{{- end }}
{{- end }}
{{- range $id, $object := $objects }}
---
{{ toYaml $object }}
{{- end }}
`;

function itemsOf(kind: Kind, props: ChartProps, watchNamespaces?: readonly string[]): string[] {
  const options = chartOptions(kind, rightsProps(kind, props));
  const template = new Template(placesOf(options));
  const render = (flags: FlagValues): AnyObject[] =>
    rightsOf({ ...rightsProps(kind, props), flags, ...(watchNamespaces && { watchNamespaces }) }, kind);
  const always = { ...fixedFlags(options, props), ...namingFlags(options) };
  const base = render(always);
  const write = (objects: readonly AnyObject[]): string[] =>
    objects.length > 0 ? [template.write(template.filled(objects)).trimEnd()] : [];
  const placed = (objects: readonly AnyObject[]): string[] => {
    const everywhere = objects.filter(({ metadata }) => metadata.namespace === WATCHED_NAMESPACE);
    const once = objects.filter((object) => !everywhere.includes(object));
    const range = '{{- range $watched := $.Values.watchNamespaces }}';
    return [...write(once), ...(everywhere.length > 0 ? [range, ...write(everywhere), '{{- end }}'] : [])];
  };
  const added = options.flatMap((option) => {
    if (option.use !== 'adds') return [];
    return option.forms.flatMap((form) => {
      const value = form.replace('*', placeOf(option.flag));
      const objects = beyond(base, render({ ...always, [option.flag.name]: value }));
      const isOfForm = `hasPrefix ${prefixOf(form)} (${optionOf(option)} | default "")`;
      return [`{{- if ${isOfForm} }}`, ...placed(objects), '{{- end }}'];
    });
  });
  return [...placed(base), ...added];
}

function rightsProps(kind: Kind, props: ChartProps) {
  const { policy } = props;
  return {
    ...{ namespace: RELEASE_NAMESPACE, image: '', replicas: 1, managedBy: MANAGER },
    ...(policy && hasOwnPolicy(kind, { namespace: '', policy }) && { policy }),
  };
}

/** What gives rights to the operator and to users. */
function rightsOf(props: Omit<Parameters<typeof installManifests>[0], 'kinds'>, kind: Kind): AnyObject[] {
  return installManifests({ ...props, kinds: [kind] }).filter(({ apiVersion }) => apiVersion === RBAC);
}

/** What the second has and the first hasn't: of Roles that both have, the rules alone. */
function beyond(before: readonly AnyObject[], after: readonly AnyObject[]): AnyObject[] {
  return after.flatMap((object) => {
    const former = before.find((other) => objectId(other) === objectId(object));
    if (!former) return [object];
    const known = new Set(rulesOf(former).map((rule) => JSON.stringify(rule)));
    const rules = rulesOf(object).filter((rule) => !known.has(JSON.stringify(rule)));
    return rules.length > 0 ? [{ ...object, rules }] : [];
  });
}

function rulesOf({ rules = [] }: AnyObject): readonly PolicyRule[] {
  return rules as readonly PolicyRule[];
}

function placesOf(options: readonly ChartOption[]): Map<string, string> {
  const ofOptions = options.flatMap((option): (readonly [string, string])[] => {
    const place = placeOf(option.flag);
    if (option.use === 'names')
      return [[place, `${optionOf(option)} | default ${JSON.stringify(option.byDefault)}`]];
    return option.use === 'adds' ? [[place, `${optionOf(option)} | splitList "/" | last`]] : [];
  });
  return new Map([...COMMON_PLACES, [WATCHED_NAMESPACE, '$watched'], ...ofOptions]);
}

function namingFlags(options: readonly ChartOption[]): FlagValues {
  const naming = options.filter(({ use }) => use === 'names');
  return Object.fromEntries(naming.map(({ flag }) => [flag.name, placeOf(flag)]));
}

function fixedFlags(options: readonly ChartOption[], { flags = {} }: ChartProps): FlagValues {
  const fixed = options.filter(({ use, flag }) => use === 'fixed' && flag.name in flags);
  return Object.fromEntries(fixed.map(({ flag }) => [flag.name, flags[flag.name] ?? '']));
}

function optionOf({ flag }: ChartOption): string {
  return `$.Values.options.${optionName(flag)}`;
}

function prefixOf(form: string): string {
  return JSON.stringify(form.slice(0, form.indexOf('*')));
}
