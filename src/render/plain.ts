import { OperatorError } from '../contract/error.js';
import { isMap } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';

/**
 * A Secret with its `stringData` encoded into `data`, where the API server would put it. Applied as it is, it would be
 * owned for ever and empty: what is dropped from it would stay in `data`, and each comparison would find it missing.
 * Anything else is returned as it is.
 * @see https://github.com/kubernetes/kubernetes/issues/108008
 */
export function withEncodedSecret(object: AnyObject): AnyObject {
  if (object.apiVersion !== 'v1' || object.kind !== 'Secret' || !isMap(object.stringData)) return object;
  const { stringData, data, ...rest } = object;
  const encoded = Object.entries(stringData).map(([key, value]): [string, unknown] => [
    key,
    // Anything but text is left for the API server to refuse.
    typeof value === 'string' ? Buffer.from(value).toString('base64') : value,
  ]);
  const merged = [...Object.entries(isMap(data) ? data : {}), ...encoded];
  // Last wins, as in the API server.
  const sorted = [...new Map(merged)].sort(([a], [b]) => (a < b ? -1 : 1));
  return { ...rest, data: Object.fromEntries(sorted) };
}

/** Spelled so that it has the same place among sorted keys, and nothing else has the name. */
const SPELLED = 'constructor\0reconstruct';

/**
 * A map with the key `constructor`, as cdk8s takes it, which distinguishes maps from classes by that member. `copyPlain`
 * brings the key back.
 * @returns nothing where there is no such key
 */
export function spelledForCdk8s(map: unknown): object | undefined {
  if (typeof map !== 'object' || map === null || !Object.hasOwn(map, 'constructor')) return undefined;
  const { constructor, ...others } = map as { readonly constructor: unknown };
  return { ...others, [SPELLED]: constructor };
}

/**
 * Copies plain JSON, with the keys of all maps sorted. What is undefined in a map is left out.
 *
 * Copied by hand because this is on the way of every reconcile, where `structuredClone` takes longer than all of
 * the rendering.
 * @throws Error, naming the path, for anything that JSON can't say; OperatorError `Invalid` for a key named `__proto__`,
 *   which would be lost on the way through cdk8s, and for an integer that was rounded when it was read
 */
export function copyPlain(value: unknown, path = ''): unknown {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown, index) => copyPlain(item, `${path}[${index}]`));
  if (typeof value === 'object') return copyMap(value, path);
  if (typeof value === 'number' && Number.isFinite(value)) {
    if (!Number.isInteger(value) || Number.isSafeInteger(value)) return value;
    const rounded = `${path || 'the value'} is ${value}: JavaScript rounds integers beyond 2^53 - 1; give a smaller one, or text`;
    throw invalid(rounded);
  }
  const shown =
    typeof value === 'number' ? value : typeof value === 'undefined' ? 'undefined' : `a ${typeof value}`;
  throw new Error(`${path || 'the value'} is ${shown}, which JSON can't say`);
}

function copyMap(map: object, path: string): Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(map);
  if (prototype !== Object.prototype && prototype !== null) {
    throw new Error(`${path || 'the value'} is a ${map.constructor.name}, only plain maps can be rendered`);
  }
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(map).sort()) {
    // A mistake in what was given, not in the construct: such a map can't be distinguished from one with another prototype.
    if (key === '__proto__')
      throw invalid(
        `${path || 'the value'} has a key named __proto__, which can't be rendered: give it another name`,
      );
    const member = (map as Record<string, unknown>)[key];
    const name = key === SPELLED ? 'constructor' : key;
    if (member !== undefined) copy[name] = copyPlain(member, path ? `${path}.${name}` : name);
  }
  return copy;
}

function invalid(message: string): OperatorError {
  return new OperatorError({ reason: 'Invalid', message });
}
