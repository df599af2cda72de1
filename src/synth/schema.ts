import { Ajv } from 'ajv';
import type { ErrorObject, SchemaValidateFunction } from 'ajv';
import type { StructuralSchema } from '../contract/crd.js';
import { FORMATS } from './formats.js';
import { LIST_KEYS, rootJsonSchema } from './json-schema.js';
import { describeErrors } from './messages.js';
import type { Problem } from './problem.js';

/** Names everything that is wrong with a custom resource; it must have its defaults already. */
export type Validate = (value: unknown) => Problem[];

/**
 * A validator that accepts what the API server accepts under `fieldValidation=Strict`, rules in CEL and names
 * aside.
 * @throws Error if the schema itself is wrong, e.g. has a pattern that is no regular expression
 */
export function compileSchema(schema: StructuralSchema): Validate {
  const ajv = new Ajv({
    allErrors: true,
    verbose: true,
    // Schemas of CRDs have keywords of their own, and formats that nobody checks.
    strict: false,
    strictNumbers: true,
    logger: false,
    // A field named `constructor` is not there because every object has one.
    ownProperties: true,
    formats: FORMATS,
    code: { regExp: Object.assign(regExp, { code: 'regExp' }) },
  });
  ajv.addKeyword({
    keyword: LIST_KEYS,
    type: 'array',
    schemaType: 'array',
    errors: true,
    validate: uniqueItems,
  });
  const validate = ajv.compile(rootJsonSchema(schema));
  return (value) => (validate(value) ? [] : describeErrors(validate.errors ?? [], value));
}

/**
 * Patterns are written for Go. What differs: flags in front, and the anchors of the whole text. What the `u` flag
 * refuses, such as needless escapes, is taken without it.
 */
function regExp(pattern: string): RegExp {
  const [, flags = '', rest = ''] = /^(?:\(\?([ims]+)\))?([^]*)$/.exec(pattern) ?? [];
  const source = rest.replace(/\\\\|\\A|\\z/g, (found) =>
    found === '\\A' ? '^' : found === '\\z' ? '$' : found,
  );
  try {
    return new RegExp(source, `${flags}u`);
  } catch {
    return new RegExp(source, flags);
  }
}

/** Refuses items of a list of type `map` with the same keys, and equal items of one of type `set`. */
const uniqueItems: SchemaValidateFunction = (keys: readonly string[], list: readonly unknown[]) => {
  const seen = new Map<string, number>();
  const errors: Partial<ErrorObject>[] = [];
  list.forEach((item, index) => {
    const identity = canonical(keys.length > 0 ? keys.map((key) => memberOf(item, key)) : item);
    const first = seen.get(identity);
    if (first === undefined) seen.set(identity, index);
    else errors.push({ keyword: LIST_KEYS, params: { keys, index, first } });
  });
  uniqueItems.errors = errors;
  return errors.length === 0;
};

function memberOf(item: unknown, key: string): unknown {
  return item !== null && typeof item === 'object' ? ((item as Record<string, unknown>)[key] ?? null) : null;
}

/** JSON with sorted keys, so that equal values give equal texts. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    member !== null && typeof member === 'object' && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}
