import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { storedVersion, type StructuralSchema } from '../../../src/contract/crd.js';
import type { AppServiceProps } from '../../../src/kinds/app-service/construct.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';

/** One field of a schema, a list or map together with what it holds. */
interface Field {
  /** As users write it, e.g. `ports[].name`, or `resources.limits.*` for the entries of a map. */
  readonly path: string;
  readonly schema: StructuralSchema;
  /** Of what a list or map holds. @default - it is neither */
  readonly items?: StructuralSchema;
  readonly required: boolean;
  /** The field above that has the very same fields, which are listed there alone. @default - they are listed here */
  readonly like?: string;
}

/** Every field at and below one, in the order of the schema. What stands in the CRD once is listed once. */
function fieldsOf(name: string, schema: StructuralSchema, required: boolean): Field[] {
  const fields: Field[] = [];
  const listed = new Map<object, string>();
  const visit = (start: string, schema: StructuralSchema, required: boolean): void => {
    const { additionalProperties: values } = schema;
    const items = schema.items ?? (typeof values === 'object' ? values : undefined);
    const path = `${start}${schema.items ? '[]' : items ? '.*' : ''}`;
    const { properties, required: needed } = items ?? schema;
    const like = properties && listed.get(properties);
    fields.push({ path, schema, required, ...(items && { items }), ...(like !== undefined && { like }) });
    if (!properties || like !== undefined) return;
    listed.set(properties, path);
    for (const [key, inner] of Object.entries(properties))
      visit(`${path}.${key}`, inner, needed?.includes(key) ?? false);
  };
  visit(name, schema, required);
  return fields;
}

/** The fields, by their path, that a value sets. */
function fieldsIn(value: unknown, fields: readonly Field[]): Set<string> {
  const known = new Map(fields.map((field) => [field.path, field]));
  const used = new Set<string>();
  const visit = (value: unknown, path: string): void => {
    const entries = Object.entries(typeof value === 'object' && value !== null ? value : {});
    const isMap = known.has(`${path}.*`);
    if (Array.isArray(value) || isMap) {
      for (const [, inner] of entries) visit(inner, `${path}${isMap ? '.*' : '[]'}`);
      return;
    }
    if (known.has(path)) used.add(path);
    for (const [key, inner] of entries) visit(inner, `${known.get(path)?.like ?? path}.${key}`);
  };
  visit(value, fields[0]!.path.replace(/\[\]$|\.\*$/, ''));
  return used;
}

const folder = new URL('../../../examples/appservice/', import.meta.url);

/** The custom resources to copy from, with the names of their files. */
export const examples = readdirSync(folder)
  .sort()
  .map((file) => {
    const text = readFileSync(new URL(file, folder), 'utf8');
    return { file, resource: parse(text, { version: '1.1' }) as AppServiceProps };
  });

/** The examples that set each of a top field's fields, by its path; those that say most about the top field first. */
export function examplesOf(name: string, fields: readonly Field[]) {
  // The fewer fields an example has, the more it is about each.
  const sizeOf = ({ resource }: (typeof examples)[number]): number => Object.keys(resource.spec).length;
  const uses = examples
    .filter(({ resource }) => name in resource.spec)
    .map((example) => ({
      example,
      used: fieldsIn(example.resource.spec[name as keyof AppServiceSpec], fields),
    }))
    .sort((a, b) => b.used.size - a.used.size || sizeOf(a.example) - sizeOf(b.example));
  return new Map(
    fields.map(({ path }) => [path, uses.filter(({ used }) => used.has(path)).map(({ example }) => example)]),
  );
}

const INTRO = `<!-- Generated from crds/appservices.kosmos.io.yaml by "npm run reference"; edit that file instead. -->

# The fields of AppService

INTRO_DESCRIPTION [AppService](appservice.md) describes what the fields lead to. "Owned as a whole" means
for server-side apply that the last writer owns every item. A rule is a [CEL](https://kubernetes.io/docs/reference/using-api/cel/)
expression that has to hold; its text is what the API server answers where it doesn't.
`;

/** Fields that no example can show, since they refer to what only an admission webhook can add to the pod. */
export const WITHOUT_EXAMPLE: Readonly<Record<string, string>> = {
  'resources.claims[]': 'the pod would need a claim of that name, which an AppService does not declare',
  'envs[].valueFrom.fileKeyRef': 'the pod would need a volume of that name, which an AppService cannot name',
};

const root = storedVersion(appService.crd).schema.openAPIV3Schema;
const spec = root.properties!.spec!;

/** The fields at and below one of the spec. */
export function specFields(name: string): Field[] {
  return fieldsOf(name, spec.properties![name]!, spec.required!.includes(name));
}

export const specNames: readonly string[] = Object.keys(spec.properties!);

/** Returns the page in Markdown: single values, a section for each other field of the spec, with all fields below it, and the status. */
export function page(): string {
  const isSingle = (name: string): boolean => partsOf(specFields(name)).length === 0;
  return [
    INTRO.replace('INTRO_DESCRIPTION', inMarkdown(root.description!)),
    '## Single values\n',
    ...specNames
      .filter(isSingle)
      .map((name) => `- \`spec.${name}\`: ${about(specFields(name), examplesOfTop(name))}`),
    '',
    ...specNames
      .filter((name) => !isSingle(name))
      .map((name) => section(`spec.${name}`, specFields(name), examplesOfTop(name))),
    section('status', fieldsOf('status', root.properties!.status!, false), []),
    `## Rules on the whole\n\n${[...rulesOf(root), ...rulesOf(spec)].join('\n')}\n`,
  ].join('\n');
}

/** Returns links to the examples of a top field. */
function examplesOfTop(name: string): string[] {
  const fields = specFields(name);
  const shown = examplesOf(name, fields).get(fields[0]!.path)!.slice(0, 2);
  return shown.map(({ file }) => `[${file}](../../examples/appservice/${file})`);
}

function section(title: string, fields: readonly Field[], examples: readonly string[]): string {
  return `## ${title}\n\n${about(fields, examples)}\n\n${partsOf(fields).join('\n')}\n`;
}

function about([top]: readonly Field[], examples: readonly string[]): string {
  const shown = examples.length > 0 ? ` Examples: ${examples.join(', ')}.` : '';
  return `${shape(top!)}. ${meaning(top!)}${shown}`;
}

/** Returns lines for the fields below the top one, and for the rules of all. */
function partsOf(fields: readonly Field[]): string[] {
  const rules = fields.flatMap(({ schema, items, path }) => [
    ...rulesOf(schema, path),
    ...(items ? rulesOf(items, path) : []),
  ]);
  return [...fields.slice(1).map(line), ...rules];
}

function line(field: Field): string {
  const { path, like } = field;
  const alike = like === undefined ? '' : ` Its fields are those of \`${like}\`.`;
  const why = WITHOUT_EXAMPLE[path] === undefined ? '' : ` No example: ${WITHOUT_EXAMPLE[path]}.`;
  return `- \`${path}\` (${shape(field)}): ${meaning(field)}${alike}${why}`;
}

/** Type, bounds and default of a field, in one line. */
function shape({ schema, items, required }: Field): string {
  const parts = [
    items ? `${container(schema)} of ${noun(items)}` : noun(schema),
    ...bounds(schema),
    ...(items ? bounds(items).map((bound) => `each ${bound}`) : []),
    ...(schema['x-kubernetes-map-type'] === 'atomic' ? ['owned as a whole'] : []),
    required ? 'required' : 'optional',
    ...(schema.default === undefined ? [] : [`default ${code(schema.default)}`]),
  ];
  return parts.join(' · ');
}

/** Meaning of a field as the CRD says it; of what it holds only where that says more than its name. */
function meaning({ schema, items }: Field): string {
  const item = items?.description ?? '';
  const isName = item === '' || /^One [\w ]+\.$/.test(item);
  const said = isName ? [] : [`Each: ${item[0]!.toLowerCase()}${item.slice(1)}`];
  return inMarkdown([schema.description ?? '', ...said].join(' '));
}

/** Rules in CEL, an item of a list for each: what is refused, and the expression that has to hold. */
function rulesOf(schema: StructuralSchema, at?: string): string[] {
  const rules = (schema['x-kubernetes-validations'] ?? []) as readonly { rule: string; message: string }[];
  const place = at === undefined ? '' : ` of \`${at}\``;
  return rules.map(({ rule, message }) => `- Rule${place}: ${inMarkdown(message)}. \`${rule}\``);
}

/** Text of the CRD, which knows no markup. */
function inMarkdown(text: string): string {
  return text.replaceAll(/[*_<>[\]|]/g, '\\$&');
}

function container(schema: StructuralSchema): string {
  if (!schema.items) return 'map';
  const keys = schema['x-kubernetes-list-map-keys'];
  if (keys) return `list, keyed by ${keys.map(code).join(' and ')},`;
  return schema['x-kubernetes-list-type'] === 'set' ? 'set' : 'list, owned as a whole,';
}

function noun(schema: StructuralSchema): string {
  if (schema['x-kubernetes-int-or-string']) return 'integer or string';
  return schema.format ?? schema.type ?? 'any';
}

function bounds(schema: StructuralSchema): string[] {
  const { enum: values, pattern } = schema;
  const [number, string] = schema['x-kubernetes-int-or-string'] ? ['integer: ', 'string: '] : ['', ''];
  const texts = [
    ...range(schema, 'minLength', 'maxLength', ' characters'),
    ...(pattern === undefined ? [] : [`pattern ${code(pattern)}`]),
  ];
  return [
    ...(values ? [values.map(code).join(', ')] : []),
    ...range(schema, 'minimum', 'maximum', '').map((text) => number + text),
    ...texts.map((text) => string + text),
    ...range(schema, 'minItems', 'maxItems', ' items'),
    ...range(schema, 'minProperties', 'maxProperties', ' entries'),
  ];
}

function range(schema: StructuralSchema, least: string, most: string, unit: string): string[] {
  const [low, high] = [schema[least], schema[most]] as [number | undefined, number | undefined];
  if (low === undefined && high === undefined) return [];
  if (low === undefined) return [`at most ${high}${unit}`];
  return [high === undefined ? `at least ${low}${unit}` : `${low} to ${high}${unit}`];
}

function code(value: unknown): string {
  return `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
}
