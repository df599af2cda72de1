import { isDeepStrictEqual } from 'node:util';
import type { FieldsV1 } from '../../engine/field-set.js';

/** A field of an object: names of members, and `{...}` for an item of a list, by its keys. */
export type Steps = readonly (string | Readonly<Record<string, unknown>>)[];

type Json = Readonly<Record<string, unknown>>;

/** The fields at the ends of an entry of `managedFields`; the keys that name an item aren't among them. */
export function leavesOf(fields: FieldsV1, path: Steps = []): Steps[] {
  const at = path.at(-1);
  return Object.entries(fields).flatMap(([segment, child]) => {
    if (segment === '.' || segment.startsWith('v:') || segment.startsWith('i:')) return [];
    const name = segment.slice(2);
    if (segment.startsWith('k:')) return leavesOf(child, [...path, JSON.parse(name) as Json]);
    if (typeof at === 'object' && Object.hasOwn(at, name)) return [];
    const inner = Object.keys(child).filter((key) => key !== '.');
    return inner.length === 0 ? [[...path, name]] : leavesOf(child, [...path, name]);
  });
}

/** `spec.containers[name=web].image`. */
export function describeSteps(steps: Steps): string {
  return steps
    .map((step, index) => {
      if (typeof step === 'string') return index === 0 ? step : `.${step}`;
      return `[${Object.entries(step)
        .map(([key, value]) => `${key}=${String(value)}`)
        .join()}]`;
    })
    .join('');
}

export function valueAt(value: unknown, [step, ...rest]: Steps): unknown {
  if (step === undefined || value === undefined || value === null) return value;
  if (typeof step === 'string') return valueAt((value as Json)[step], rest);
  return valueAt(
    (value as readonly Json[]).find((item) => isItem(item, step)),
    rest,
  );
}

/** The same with another value there; with undefined, without it. */
export function withValueAt(value: unknown, [step, ...rest]: Steps, put: unknown): unknown {
  if (step === undefined) return put;
  if (typeof step === 'object') {
    const list = value as readonly Json[];
    return list.map((item) => (isItem(item, step) ? withValueAt(item, rest, put) : item));
  }
  const { [step]: old, ...others } = value as Json;
  const inner = withValueAt(old, rest, put);
  return inner === undefined ? others : { ...others, [step]: inner };
}

function isItem(item: Json, keys: Json): boolean {
  return Object.entries(keys).every(([key, value]) => isDeepStrictEqual(item[key], value));
}
