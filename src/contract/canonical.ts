import { hash } from 'node:crypto';

/** Returns JSON with sorted keys, at every depth. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  let json = '';
  if (Array.isArray(value)) {
    for (const item of value) json += `${json && ','}${canonicalJson(item)}`;
    return `[${json}]`;
  }
  const members = value as Readonly<Record<string, unknown>>;
  for (const name of Object.keys(members).sort()) {
    const member = members[name];
    if (member !== undefined) json += `${json && ','}${JSON.stringify(name)}:${canonicalJson(member)}`;
  }
  return `{${json}}`;
}

const hashes = new WeakMap<object, string>();

/** Returns the hash of an object that nothing changes any more; the same for the same content, across releases. */
export function contentHash(object: object): string {
  let known = hashes.get(object);
  if (known === undefined) {
    known = hash('sha256', canonicalJson(object), 'hex').slice(0, 32);
    hashes.set(object, known);
  }
  return known;
}
