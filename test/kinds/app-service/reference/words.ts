import type { StructuralSchema } from '../../../../src/contract/crd.js';
import type { Field } from './fields.js';

/** A rule in CEL, as a CRD has it. */
export interface Rule {
  readonly rule: string;
  readonly message: string;
}

/** Type, bounds and default of a field, in one line. */
export function shape({ schema, items, required }: Field): string {
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

/** What a field means, as the CRD says it; of what it holds only where that says more than its name. */
export function meaning({ schema, items }: Pick<Field, 'schema' | 'items'>): string {
  const item = items?.description ?? '';
  const said =
    item === '' || /^One [\w ]+\.$/.test(item) ? [] : [`Each: ${item[0]!.toLowerCase()}${item.slice(1)}`];
  return [schema.description ?? '', ...said].join(' ');
}

export function rulesOf(schema: StructuralSchema | undefined): readonly Rule[] {
  return (schema?.['x-kubernetes-validations'] ?? []) as readonly Rule[];
}

/** One item of a list: what is refused, and the expression that has to hold. */
export function ruleText({ rule, message }: Rule, at?: string): string {
  return `- Rule${at === undefined ? '' : ` of \`${at}\``}: ${inMarkdown(message)}. \`${rule}\``;
}

/** Text of the CRD, which knows no markup. */
export function inMarkdown(text: string): string {
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
  const { enum: values, pattern } = schema as { enum?: readonly unknown[]; pattern?: string };
  const either = schema['x-kubernetes-int-or-string'] === true;
  const numbers = range(schema, 'minimum', 'maximum', '');
  const texts = [
    ...range(schema, 'minLength', 'maxLength', ' characters'),
    ...(pattern === undefined ? [] : [`pattern ${code(pattern)}`]),
  ];
  return [
    ...(values ? [values.map(code).join(', ')] : []),
    ...numbers.map((text) => (either ? `integer: ${text}` : text)),
    ...texts.map((text) => (either ? `string: ${text}` : text)),
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
