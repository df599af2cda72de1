import { canonicalJson } from '../../../src/contract/object.js';
import type { FieldsV1 } from '../../../src/engine/managed-fields.js';

/**
 * What an object has at each path of a set, as JSON. An item of a keyed list is found by its keys, wherever it stands;
 * what isn't there is `absent`.
 */
export function valuesAt(object: unknown, fields: FieldsV1, path = ''): Record<string, string> {
  const segments = Object.entries(fields).filter(([segment]) => segment !== '.');
  const here = '.' in fields || segments.length === 0 ? { [path]: told(object, segments.length === 0) } : {};
  const below = segments.map(([segment, child]) =>
    valuesAt(memberOf(object, segment), child, `${path} ${segment}`),
  );
  return Object.assign(here, ...below) as Record<string, string>;
}

function told(value: unknown, isLeaf: boolean): string {
  if (value === undefined) return 'absent';
  return isLeaf ? canonicalJson(value) : 'present';
}

function memberOf(value: unknown, segment: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  const name = segment.slice(2);
  if (segment.startsWith('f:')) return (value as Record<string, unknown>)[name];
  if (!Array.isArray(value)) return undefined;
  const wanted: unknown = JSON.parse(name);
  return value.find((item: unknown) =>
    segment.startsWith('v:')
      ? canonicalJson(item) === canonicalJson(wanted)
      : Object.entries(wanted as object).every(
          ([key, keyValue]) => (item as Record<string, unknown>)[key] === keyValue,
        ),
  );
}
