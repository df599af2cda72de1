import { OperatorError } from '../contract/error.js';

/** Spelled so that it has the same place among sorted keys, and nothing else has the name. */
const SPELLED = 'constructor\0reconstruct';

/**
 * A map with the key `constructor`, as cdk8s takes it: by that member it tells maps from classes. `copyPlain` brings the key back.
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
 *   which would be lost on the way through cdk8s
 */
export function copyPlain(value: unknown, path = ''): unknown {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown, index) => copyPlain(item, `${path}[${index}]`));
  if (typeof value === 'object') return copyMap(value, path);
  if (typeof value === 'number' && Number.isFinite(value)) return value;
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
    if (key === '__proto__') throw unspeakable(path);
    const member = (map as Record<string, unknown>)[key];
    const name = key === SPELLED ? 'constructor' : key;
    if (member !== undefined) copy[name] = copyPlain(member, path ? `${path}.${name}` : name);
  }
  return copy;
}

/** A mistake in what was given, and not in the construct: such a map can't be told from one with another prototype. */
function unspeakable(path: string): OperatorError {
  const message = `${path || 'the value'} has a key named __proto__, which can't be rendered: give it another name`;
  return new OperatorError({ reason: 'Invalid', message });
}
