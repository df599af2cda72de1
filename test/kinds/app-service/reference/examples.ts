import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
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
