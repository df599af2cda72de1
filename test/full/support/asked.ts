import type { AnyObject } from '../../../src/contract/object.js';

/** What an object asks for, and whose it is; what its own controller reports may come at any time. */
export function asked({ status, metadata, ...rest }: AnyObject & { readonly status?: unknown }): object {
  const { resourceVersion, managedFields, ...identity } = metadata as AnyObject['metadata'] & {
    readonly managedFields?: unknown;
  };
  return { ...rest, metadata: identity };
}
