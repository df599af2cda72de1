import { celMap, CelScalar, isCelError, parse, plan } from '@bufbuild/cel';
import type { CelInput, CelValue } from '@bufbuild/cel';
import type { StructuralSchema } from '../../contract/crd.js';
import { isMap } from '../../contract/object.js';
import { parseDuration } from '../times.js';
import { ENVIRONMENT } from './environment.js';
import { typedList } from './lists.js';

const TEXT: StructuralSchema = { type: 'string' };

/** What rules see of the metadata, whatever the schema says. */
const OBJECT_FIELDS: Readonly<Record<string, StructuralSchema>> = {
  apiVersion: TEXT,
  kind: TEXT,
  metadata: { type: 'object', properties: { name: TEXT, generateName: TEXT } },
};

/** The schema of a whole object, as rules see it. */
export function objectSchema(schema: StructuralSchema): StructuralSchema {
  return { ...schema, type: 'object', properties: { ...schema.properties, ...OBJECT_FIELDS } };
}

/**
 * A value as rules see it: integers are `int`, other numbers `double`, text with the format of a time is a time. A
 * field that is null is absent. The value has passed the schema already.
 * @see https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apiserver/pkg/cel/common/valuesunstructured.go
 */
export function toCelValue(value: unknown, schema: StructuralSchema | undefined): CelValue {
  if (value === null || value === undefined) return null;
  if (schema?.['x-kubernetes-int-or-string'] === true) return withoutSchema(value);
  switch (schema?.type) {
    case 'object':
      return isMap(value) ? mapValue(value, schema) : withoutSchema(value);
    case 'array':
      return Array.isArray(value) ? listValue(value, schema) : withoutSchema(value);
    case 'string':
      return typeof value === 'string' ? textValue(value, schema.format) : withoutSchema(value);
    case 'number':
      return value as number;
    case 'integer':
    case 'boolean':
    case undefined:
      return withoutSchema(value);
  }
}

function mapValue(value: Readonly<Record<string, unknown>>, given: StructuralSchema): CelValue {
  const schema = given['x-kubernetes-embedded-resource'] === true ? objectSchema(given) : given;
  const { properties, additionalProperties } = schema;
  const entries = new Map<string, CelInput>();
  for (const [key, member] of Object.entries(value)) {
    if (properties === undefined) {
      const items = typeof additionalProperties === 'object' ? additionalProperties : undefined;
      entries.set(key, toCelValue(member, items));
    } else if (member !== null && member !== undefined) {
      const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
      entries.set(escapeField(key) ?? key, toCelValue(member, property));
    }
  }
  return celMap(entries);
}

function listValue(list: readonly unknown[], schema: StructuralSchema): CelValue {
  const items = list.map((item) => toCelValue(item, schema.items));
  switch (schema['x-kubernetes-list-type']) {
    case 'set':
      return typedList(items, 'value');
    case 'map':
      return typedList(
        items,
        (schema['x-kubernetes-list-map-keys'] ?? []).map((key) => escapeField(key) ?? key),
      );
    case 'atomic':
    case undefined:
    default:
      return typedList(items);
  }
}

function textValue(text: string, format: string | undefined): CelValue {
  switch (format) {
    case 'date':
      return converted(timestamp, `${text}T00:00:00Z`);
    case 'date-time':
      return converted(timestamp, /Z$|[+-]\d\d:\d\d$/.test(text) ? text : `${text}Z`);
    case 'duration':
      return converted(duration, `${((parseDuration(text) ?? 0) / 1e9).toFixed(9)}s`);
    case 'byte':
      return /[+/]/.test(text) ? UNREADABLE : Uint8Array.from(Buffer.from(text, 'base64'));
    case undefined:
    default:
      return text;
  }
}

const timestamp = plan(ENVIRONMENT, parse('timestamp(text)'));
const duration = plan(ENVIRONMENT, parse('duration(text)'));

/** Something that no rule can do anything with: it fails, as on the API server, whose messages say why. */
const UNREADABLE: CelValue = CelScalar.DYN;

function converted(conversion: typeof timestamp, text: string): CelValue {
  const value = conversion({ text });
  return isCelError(value) ? UNREADABLE : value;
}

/** What no schema describes: no rule can see into it, it is only ever compared. */
function withoutSchema(value: unknown): CelValue {
  if (Array.isArray(value)) return typedList(value.map(withoutSchema));
  if (isMap(value)) {
    return celMap(
      new Map(Object.entries(value).map(([key, member]) => [key, withoutSchema(member)] as const)),
    );
  }
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value;
  return typeof value === 'string' || typeof value === 'boolean' ? value : null;
}

/** Words that CEL keeps for itself; a field with such a name is written `__namespace__`. */
const RESERVED = new Set(
  (
    'true false null in as break const continue else for function if import let loop package namespace return var ' +
    'void while'
  ).split(' '),
);

const SEQUENCES: Readonly<Record<string, string>> = {
  __: '__underscores__',
  '.': '__dot__',
  '-': '__dash__',
  '/': '__slash__',
};

/**
 * The name of a field in a rule; nothing for a name that no rule can say.
 * @see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#available-validation-libraries
 */
function escapeField(name: string): string | undefined {
  if (RESERVED.has(name)) return `__${name}__`;
  if (!/^[A-Za-z_./-][A-Za-z0-9_./-]*$/.test(name)) return undefined;
  return name.replace(/__|[-./]/g, (found) => SEQUENCES[found] ?? found);
}
