import { stringify } from 'yaml';
import type { KubernetesObject } from '../../../src/contract/object.js';

const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g;

/**
 * A live object as YAML, without what is another one each time: times, identities, who manages its fields.
 * @param names what namespaces are called instead
 */
export function asRecorded(
  { metadata, ...object }: KubernetesObject,
  names: Readonly<Record<string, string>>,
): string {
  const { managedFields: _, ...kept } = metadata as typeof metadata & { readonly managedFields?: unknown };
  const fixed = { uid: '5d1c7f0e-0000-4000-8000-000000000001', resourceVersion: '1' };
  const text = stringify(
    { ...object, metadata: { ...kept, ...fixed } },
    { lineWidth: 0, sortMapEntries: true },
  );
  return Object.entries(names)
    .reduce((renamed, [from, to]) => renamed.replaceAll(from, to), text)
    .replaceAll(TIME, '2026-01-01T00:00:00Z');
}
