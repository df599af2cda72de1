import { isDeepStrictEqual } from 'node:util';
import type { CrdVersion, CustomResourceDefinition, StructuralSchema } from '../../src/contract/crd.js';

/** Something of a CRD that a client or an object of the last release may depend on, and that has changed. */
export interface Break {
  /** Version and field, e.g. `v1 spec.ports[].name`. */
  readonly at: string;
  readonly what: string;
}

/**
 * What would break if a CRD took the place of a released one: objects that were valid have to stay so, and clients
 * have to find what they found. After the rules of crdify, by which OLM judges an upgrade.
 * @see https://github.com/kubernetes-sigs/crdify
 */
export function upgradeBreaks(old: CustomResourceDefinition, present: CustomResourceDefinition): Break[] {
  const breaks: Break[] = [];
  const { names, group, scope } = old.spec;
  for (const [what, before, after] of [
    ['group', group, present.spec.group],
    ['scope', scope, present.spec.scope],
    ['kind', names.kind, present.spec.names.kind],
    ['plural', names.plural, present.spec.names.plural],
  ] as const) {
    if (before !== after) breaks.push({ at: 'spec', what: `${what} changed` });
  }
  for (const name of names.shortNames ?? []) {
    if (!present.spec.names.shortNames?.includes(name))
      breaks.push({ at: 'spec', what: 'short name removed' });
  }
  for (const version of old.spec.versions) {
    const next = present.spec.versions.find(({ name }) => name === version.name);
    if (!next) breaks.push({ at: version.name, what: 'version removed' });
    else breaks.push(...versionBreaks(version, next));
  }
  return breaks;
}

function versionBreaks(old: CrdVersion, present: CrdVersion): Break[] {
  const breaks: Break[] = [];
  if (old.served && !present.served) breaks.push({ at: old.name, what: 'version no longer served' });
  for (const name of Object.keys(old.subresources ?? {})) {
    if (!(name in (present.subresources ?? {})))
      breaks.push({ at: old.name, what: `subresource ${name} removed` });
  }
  walk(old.schema.openAPIV3Schema, present.schema.openAPIV3Schema, '', (path, what) => {
    breaks.push({ at: `${old.name} ${path}`.trim(), what });
  });
  return breaks;
}

type Report = (path: string, what: string) => void;

function walk(old: StructuralSchema, present: StructuralSchema, path: string, report: Report): void {
  for (const what of schemaBreaks(old, present)) report(path, what);
  for (const [key, before] of Object.entries(old.properties ?? {})) {
    const inner = path === '' ? key : `${path}.${key}`;
    const after = present.properties?.[key];
    if (after) walk(before, after, inner, report);
    else report(inner, 'field removed');
  }
  if (old.items && present.items) walk(old.items, present.items, `${path}[]`, report);
  const [before, after] = [old.additionalProperties, present.additionalProperties];
  if (typeof before === 'object' && typeof after === 'object') walk(before, after, `${path}.*`, report);
}

/** What has to stay as it is. */
const FIXED = [
  ...['type', 'format', 'pattern', 'default', 'nullable', 'uniqueItems'],
  ...['x-kubernetes-int-or-string', 'x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource'],
  ...['x-kubernetes-list-type', 'x-kubernetes-list-map-keys', 'x-kubernetes-map-type'],
];
const LOWER_BOUNDS = ['minimum', 'minLength', 'minItems', 'minProperties'];
const UPPER_BOUNDS = ['maximum', 'maxLength', 'maxItems', 'maxProperties'];

function* schemaBreaks(old: StructuralSchema, present: StructuralSchema): Generator<string> {
  for (const keyword of FIXED) {
    if (!isDeepStrictEqual(old[keyword], present[keyword])) yield `${keyword} changed`;
  }
  for (const keyword of LOWER_BOUNDS) {
    const bound = (schema: StructuralSchema) => (schema[keyword] as number | undefined) ?? -Infinity;
    if (bound(present) > bound(old)) yield `${keyword} tightened`;
  }
  for (const keyword of UPPER_BOUNDS) {
    const bound = (schema: StructuralSchema) => (schema[keyword] as number | undefined) ?? Infinity;
    if (bound(present) < bound(old)) yield `${keyword} tightened`;
  }
  for (const name of present.required ?? []) {
    if (!old.required?.includes(name)) yield `${name} became required`;
  }
  if (present.enum && !old.enum) yield 'enum added';
  for (const value of old.enum ?? []) {
    if (present.enum && !present.enum.includes(value)) yield `enum value ${String(value)} removed`;
  }
  for (const rule of rulesOf(present)) {
    if (!rulesOf(old).includes(rule)) yield `rule added: ${rule}`;
  }
}

function rulesOf(schema: StructuralSchema): string[] {
  const rules = schema['x-kubernetes-validations'] as readonly { readonly rule: string }[] | undefined;
  return (rules ?? []).map(({ rule }) => rule);
}
