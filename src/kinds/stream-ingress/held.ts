import type { AnyObject } from '../../contract/object.js';
import { childrenFieldManager } from '../../contract/names.js';
import { KIND } from './spec.js';

/** Applies the keys and ports of shared objects, and the children of a Gateway's. */
export const FIELD_MANAGER = childrenFieldManager(KIND);

/** Whose a part of an object is. */
export interface Holding {
  readonly ours: boolean;
  /** The field managers of others that hold it or something in it. */
  readonly others: readonly string[];
}

interface ManagedFields {
  readonly manager?: string;
  readonly operation?: string;
  readonly subresource?: string;
  readonly fieldsV1?: object;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Finds who holds the parts of an object below a path, by `metadata.managedFields`.
 * @param path of `fieldsV1`, such as `f:spec`, `f:ports`
 * @param counts whether it matters to us what another has there
 * @returns for a segment below the path, who holds it
 */
export function holdings(
  object: AnyObject,
  path: readonly string[],
  counts: (fields: Fields) => boolean = () => true,
): (segment: string) => Holding {
  const entries = managedFieldsOf(object).flatMap((entry) => {
    const fields = path.reduce<unknown>((at, step) => (at as Fields | undefined)?.[step], entry.fieldsV1);
    return fields === undefined ? [] : [{ ...entry, fields: fields as Fields }];
  });
  return (segment) => {
    const holders = entries.filter(({ fields }) => segment in fields);
    const others = holders.filter((entry) => !isOurs(entry) && counts(entry.fields[segment] as Fields));
    return {
      ours: holders.some(isOurs),
      others: [...new Set(others.map(({ manager = 'unknown' }) => manager))],
    };
  };
}

/** Whether we have applied anything to an object. */
export function isManaged(object: AnyObject): boolean {
  return managedFieldsOf(object).some(isOurs);
}

function managedFieldsOf({ metadata }: AnyObject): readonly ManagedFields[] {
  return (metadata as { readonly managedFields?: readonly ManagedFields[] }).managedFields ?? [];
}

function isOurs({ manager, operation, subresource }: ManagedFields): boolean {
  return manager === FIELD_MANAGER && operation === 'Apply' && !subresource;
}

/** Whether we may write it: it isn't there, or it is ours alone. */
export function isFree(holding: Holding | undefined): boolean {
  return !holding || (holding.ours && holding.others.length === 0);
}

/** Who is in the way, for people. */
export function holderText({ others }: Holding): string {
  return others.length === 0
    ? 'somebody whom the cluster has no record of'
    : `the field manager ${others.join(', ')}`;
}
