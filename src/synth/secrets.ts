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
  const encoded = Object.entries(stringData).map(([key, value]) => [key, encode(value)] as const);
  const merged = [...Object.entries(isMap(data) ? data : {}), ...encoded];
  // Last wins, as in the API server.
  const sorted = [...new Map(merged)].sort(([a], [b]) => (a < b ? -1 : 1));
  return { ...rest, data: Object.fromEntries(sorted) };
}

/** What isn't text is for the API server to refuse. */
function encode(value: unknown): unknown {
  return typeof value === 'string' ? Buffer.from(value, 'utf8').toString('base64') : value;
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
