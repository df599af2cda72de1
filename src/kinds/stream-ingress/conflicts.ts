import type { AnyObject } from '../../contract/object.js';
import type { EntryPort } from './entry.js';

/**
 * The same object without the keys and ports to which the fields of a conflict belong; undefined where there is
 * none of them in it, so that nothing would change.
 * @param fields as the API server names them: `.data.9000`, or `.spec.ports[port=9000,protocol="TCP"].targetPort`
 */
export function withoutConflicts(object: AnyObject, fields: readonly string[]): AnyObject | undefined {
  return object.kind === 'ConfigMap' ? withoutKeys(object, fields) : withoutPorts(object, fields);
}

function withoutKeys({ data, ...rest }: AnyObject, fields: readonly string[]): AnyObject | undefined {
  const entries = Object.entries((data ?? {}) as Readonly<Record<string, string>>);
  const left = entries.filter(([key]) => !fields.includes(`.data.${key}`));
  if (left.length === entries.length) return undefined;
  return left.length === 0 ? rest : { ...rest, data: Object.fromEntries(left) };
}

function withoutPorts({ spec, ...rest }: AnyObject, fields: readonly string[]): AnyObject | undefined {
  const { ports = [] } = (spec ?? {}) as { readonly ports?: readonly EntryPort[] };
  const left = ports.filter(
    ({ port, protocol }) =>
      !fields.some((field) => field.startsWith(`.spec.ports[port=${port},protocol="${protocol}"]`)),
  );
  if (left.length === ports.length) return undefined;
  return left.length === 0 ? rest : { ...rest, spec: { ports: left } };
}
