import { readdirSync, readFileSync } from 'node:fs';
import { isMap, isScalar, parse, parseDocument } from 'yaml';
import type { YAMLMap } from 'yaml';
import type { AppServiceProps } from '../../../../src/kinds/app-service/construct.js';
import type { AppServiceSpec } from '../../../../src/kinds/app-service/spec.js';
import { fieldsIn } from './fields.js';
import type { Field } from './fields.js';

const folder = new URL('../../../../examples/appservice/', import.meta.url);

/** A custom resource to copy from. */
export interface Example {
  /** Its file's name in `examples/appservice/`. */
  readonly file: string;
  readonly text: string;
  readonly resource: AppServiceProps;
}

export const examples: readonly Example[] = readdirSync(folder)
  .sort()
  .map((file) => {
    const text = readFileSync(new URL(file, folder), 'utf8');
    return { file, text, resource: parse(text, { version: '1.1' }) as AppServiceProps };
  });

/** The examples that set each of a top field's fields, by its path; those that say most about the top field first. */
export function examplesOf(name: string, fields: readonly Field[]): Map<string, readonly Example[]> {
  const uses = examples
    .filter(({ resource }) => name in resource.spec)
    .map((example) => ({
      example,
      used: fieldsIn(example.resource.spec[name as keyof AppServiceSpec], fields),
    }))
    .sort((a, b) => b.used.size - a.used.size || sizeOf(a.example) - sizeOf(b.example));
  const setting = (path: string): Example[] =>
    uses.filter(({ used }) => used.has(path)).map(({ example }) => example);
  return new Map(fields.map(({ path }) => [path, setting(path)]));
}

/** How many fields of the spec it has: the fewer, the more it is about each. */
function sizeOf({ resource }: Example): number {
  return Object.keys(resource.spec).length;
}

/** What an example says about a top field of the spec, with its comments, as it stands below `spec`. */
export function excerpt({ text }: Example, name: string): string {
  const spec = parseDocument(text).get('spec') as YAMLMap;
  const pair = spec.items.find(({ key }) => isScalar(key) && key.value === name)!;
  const key = pair.key as { range: [number, number, number] };
  const value = pair.value as { range: [number, number, number] };
  const end = isMap(pair.value) ? value.range[1] : value.range[2];
  const lines = text.slice(key.range[0], end).trimEnd().split('\n');
  return lines.map((line) => line.replace(/^ {2}/, '')).join('\n');
}
