import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseDocument } from 'yaml';
import { storedVersion } from '../contract/crd.js';
import type { StructuralSchema } from '../contract/crd.js';
import { ADMIN_FILES } from '../contract/kind.js';
import type { AdminFile, Kind } from '../contract/kind.js';
import { definitionType } from '../contract/resource.js';
import { readYaml, writeYaml } from '../values/yaml.js';
import { DEFAULT_NAMESPACE, kindName } from './names.js';
import { MONITORING_PARTS, RUNBOOKS } from './props.js';
import type { InstallProps } from './props.js';
import { operatorRules } from './rules.js';

/** Texts of the files of charts/reconstruct, by path. A bundle has them inlined. */
const files = chartIn(new URL('../../charts/reconstruct/', import.meta.url));

/** Reads a chart, but for its CRDs, which are links to those of the kinds. */
export function chartIn(folder: URL): Readonly<Record<string, string>> {
  const path = fileURLToPath(folder);
  const names = readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(path.length));
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(path, name), 'utf8')]));
}

function textOf(name: string): string {
  const text = files[name];
  if (text === undefined) throw new Error(`charts/reconstruct has no file ${name}`);
  return text;
}

/** Group of alerts, as in a file of rules that Prometheus reads. */
export interface AlertGroup {
  readonly name: string;
  readonly rules: readonly {
    readonly alert: string;
    /** PromQL, for the metrics of one operator. */
    readonly expr: string;
    readonly for?: string;
    readonly labels: { readonly severity: 'critical' | 'warning' | 'info' };
    readonly annotations: Readonly<Record<'summary' | 'description' | 'runbook_url', string>>;
  }[];
}

/** Returns the alerts of the operator in a namespace. */
export function alertGroups(namespace: string, runbooks = RUNBOOKS): readonly AlertGroup[] {
  const { groups } = readYaml(
    textOf('files/alerts.yaml').replaceAll(DEFAULT_NAMESPACE, namespace).replaceAll(RUNBOOKS, runbooks),
  ) as { groups: readonly AlertGroup[] };
  return groups;
}

/** Returns the dashboard as Grafana imports it; one of any number of installations is chosen in it. */
export function dashboardText(): string {
  return textOf('files/dashboard.json');
}

interface ChartFile {
  readonly name: string;
  readonly text: string;
}

/** Input of a chart: the kinds that it knows, and the values that it has by default. */
interface ChartProps extends Omit<InstallProps, 'namespace'> {
  readonly on: readonly Kind[];
}

/**
 * Returns charts/reconstruct with these defaults, and with the CRDs and rights of these kinds in place of the built-in ones.
 *
 * **Caveats.** The namespace itself is Helm's to make (`--create-namespace`).
 *
 * @throws OperatorError `InvalidInput` where a flag's value or the policy can't be worked with
 */
export function helmChart(props: ChartProps): ChartFile[] {
  const { kinds } = props;
  const ofKinds = kinds.flatMap((kind) => {
    const name = `files/kinds/${kindName(kind)}.yaml`;
    return [
      { name, text: files[name] ?? writeYaml(rightsOf(kind, props)) },
      { name: `files/crds/${kind.crd.metadata.name}.yaml`, text: writeYaml(kind.crd) },
    ];
  });
  const common = Object.entries(files)
    .filter(([name]) => !name.startsWith('files/kinds/'))
    .map(([name, text]) => ({ name, text }));
  return [...common, ...ofKinds].map(({ name, text }) => {
    if (name === 'values.yaml') return { name, text: withValues(text, props) };
    if (name === 'values.schema.json') return { name, text: withKinds(text, kinds) };
    return { name, text };
  });
}

/** Returns what the templates need to know of a kind. The file is a template itself: the namespace is that of the release. */
function rightsOf(kind: Kind, { policy }: ChartProps): object {
  const home = '{{ .Release.Namespace }}';
  const rules = operatorRules([kind], { namespace: home, ...(policy && { policy }) });
  const definitions = rules.filter(({ resources }) => resources.includes(definitionType.plural));
  const others = rules.filter((rule) => !definitions.includes(rule));
  const names = [...new Set(others.flatMap(({ namespaces = [] }) => namespaces))];
  return {
    crd: kind.crd.metadata.name,
    scale: storedVersion(kind.crd).subresources?.scale !== undefined,
    ...(kind.writers && { writers: kind.writers }),
    rules: others.filter(({ namespaces }) => !namespaces),
    definitions: definitions.flatMap(({ resourceNames = [] }) => resourceNames),
    namespaced: names.map((namespace) => ({
      namespace,
      rules: others.flatMap(({ namespaces, ...rule }) => (namespaces?.includes(namespace) ? [rule] : [])),
    })),
  };
}

/** Returns the name of a kind among the values: the short one, unless another kind has it too. */
function keyOf(kind: Kind, kinds: readonly Kind[]): string {
  return kinds.some((other) => other !== kind && other.name === kind.name) ? kindName(kind) : kind.name;
}

function withValues(text: string, { kinds, on, flags = {}, ...props }: ChartProps): string {
  const values = parseDocument(text);
  const [name = '', digest = ''] = props.image.split('@');
  const [, repository, tag = ''] = /^(.*?)(?::([^:/]+))?$/.exec(name) ?? [];
  const { parts = [], labels = {}, runbooks = '' } = props.monitoring ?? {};
  const options = kinds
    .flatMap((kind) => kind.flags ?? [])
    .filter((flag) => flags[flag.name] !== undefined)
    .map(({ name: flag, list, schema }) => {
      const value = flags[flag];
      return [
        camelCase(flag.slice(2)),
        list ? [value].flat() : schema?.type === 'integer' ? Number(value) : value,
      ];
    });
  const files = ADMIN_FILES.map((name) => {
    const sections = Object.entries(props[name]?.parsed ?? {});
    const known = sections.filter(([of]) => kinds.some((kind) => kind.name === of));
    return [name, Object.fromEntries(known)] as const;
  });
  const changed = {
    image: { repository, tag, digest },
    replicas: props.replicas,
    onUpgrade: props.onUpgrade ?? '',
    omitUserIds: props.omitUserIds ?? false,
    kinds: Object.fromEntries(kinds.map((kind) => [keyOf(kind, kinds), on.includes(kind)])),
    watchNamespaces: props.watchNamespaces ?? [],
    options: Object.fromEntries(options) as object,
    ...(Object.fromEntries(files) as object),
    metrics: {
      secure: props.secureMetrics !== undefined,
      certificateSecret: props.secureMetrics?.certificateSecret ?? '',
    },
    monitoring: {
      ...Object.fromEntries(MONITORING_PARTS.map((part) => [camelCase(part), parts.includes(part)])),
      ...{ labels, runbooks },
    },
  };
  for (const [key, value] of Object.entries(changed)) values.set(key, values.createNode(value));
  return values.toString({ lineWidth: 0 });
}

/** `--ingress-namespace` is `ingressNamespace` among the values. */
function camelCase(name: string): string {
  return name.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

type Schema = Record<string, unknown>;

/** Has the schema accept these kinds, and the sections that they know of the admin's files. */
function withKinds(text: string, kinds: readonly Kind[]): string {
  const schema = JSON.parse(text) as { properties: Record<'kinds' | AdminFile, Schema> };
  const keys = kinds.map((kind) => keyOf(kind, kinds));
  for (const name of ADMIN_FILES) {
    const schemas = kinds.flatMap((kind) => {
      const section = kind[`${name}Schema` as const];
      return section ? [[kind.name, closed(section)] as const] : [];
    });
    Object.assign(schema.properties[name], { properties: Object.fromEntries(schemas) });
  }
  Object.assign(schema.properties.kinds, {
    properties: Object.fromEntries(keys.map((key) => [key, { type: 'boolean' }])),
    anyOf: keys.map((key) => ({ required: [key], properties: { [key]: { const: true } } })),
  });
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}

/** Returns a schema of Kubernetes as a JSON schema that refuses unknown fields. */
function closed({ properties, items, additionalProperties, ...rest }: StructuralSchema): Schema {
  const known = Object.entries(rest).filter(([keyword]) => !keyword.startsWith('x-') && keyword !== 'format');
  return {
    ...Object.fromEntries(known),
    ...(items && { items: closed(items) }),
    ...(typeof additionalProperties === 'object' && { additionalProperties: closed(additionalProperties) }),
    ...(properties && {
      additionalProperties: false,
      properties: Object.fromEntries(Object.entries(properties).map(([name, of]) => [name, closed(of)])),
    }),
  };
}
