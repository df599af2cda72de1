import { globSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { loadCrd } from '../../src/author/load-crd.js';
import type { StructuralSchema } from '../../src/contract/crd.js';

const crds = new URL('../../crds/', import.meta.url);
const files = globSync('{,optional/}*.yaml', { cwd: fileURLToPath(crds) });

/** Paths of integers that a user may set to a number that is another one once it was read as JSON. */
function inexact(schema: StructuralSchema, path: string): string[] {
  const { type, format, minimum = -Infinity, maximum = Infinity, properties = {}, items } = schema;
  const exact = Number.isSafeInteger(minimum) && Number.isSafeInteger(maximum);
  return [
    ...(type === 'integer' && format !== 'int32' && !exact ? [path] : []),
    ...Object.entries(properties).flatMap(([name, property]) => inexact(property, `${path}.${name}`)),
    ...(items ? inexact(items, `${path}[]`) : []),
  ];
}

test.each(files)('%s takes no integer in a spec that can not be kept exactly', (file) => {
  for (const { name, schema } of loadCrd(new URL(file, crds)).spec.versions)
    expect(inexact(schema.openAPIV3Schema.properties?.spec ?? {}, `${name} spec`)).toEqual([]);
});

/** Paths of maps of which the number of keys, or the length of one, has no bound. */
function openMaps(schema: StructuralSchema, path: string): string[] {
  const { properties = {}, items, additionalProperties: members, maxProperties } = schema;
  const rules = (schema['x-kubernetes-validations'] ?? []) as readonly { readonly rule: string }[];
  const isBound = rules.some(({ rule }) => /^self\.all\((\w+), size\(\1\) <= \d+\)$/.test(rule));
  return [
    ...(members && !(typeof maxProperties === 'number' && isBound) ? [path] : []),
    ...Object.entries(properties).flatMap(([name, property]) => openMaps(property, `${path}.${name}`)),
    ...(items ? openMaps(items, `${path}[]`) : []),
    ...(typeof members === 'object' ? openMaps(members, `${path}.*`) : []),
  ];
}

test.each(files)('%s bounds the keys of every map', (file) => {
  for (const { name, schema } of loadCrd(new URL(file, crds)).spec.versions)
    expect(openMaps(schema.openAPIV3Schema, name)).toEqual([]);
});
