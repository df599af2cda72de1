import type { Watch } from '../contract/controller.js';
import { keepIdentity } from '../contract/projections.js';
import { describeRef, objectKey, refOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { Logger } from '../telemetry/logger.js';
import type { Store } from './store.js';

type Keep = NonNullable<Watch['keep']>;

/**
 * A projection that never throws. Where the kind's own does, or loses the object's identity, the object is kept with
 * nothing but that: it is there, and whose it is; without spec, data and status nobody takes it for more.
 *
 * Left out, it would count as absent: what is absent is applied at every reconcile, and is not pruned. Only where
 * nobody writes may a projection leave an object out.
 */
export function guardedKeep(
  keep: Keep,
  readOnly: boolean,
  report: (object: AnyObject, error: unknown) => void,
): Keep {
  return (object) => {
    try {
      const kept = keep(object);
      if (kept === undefined && readOnly) return undefined;
      if (hasIdentityOf(kept, object)) return kept;
      throw new TypeError('keep has not kept apiVersion, kind and the identity in metadata');
    } catch (error) {
      const identity = readOnly ? undefined : keepIdentity(object);
      report(object, error);
      return identity;
    }
  };
}

/** Says once per version of an object that its kind can't be trusted with it. */
export function reportTo(
  log: Logger,
  readOnly: boolean,
  store: () => Store,
): (object: AnyObject, error: unknown) => void {
  const outcome = readOnly ? 'it is left out' : 'only its identity is kept';
  return (object, error) => {
    const { namespace, name, resourceVersion } = object.metadata;
    const known = store().get(objectKey(namespace, name));
    if (known?.object.metadata.resourceVersion === resourceVersion) return;
    log.error(
      { err: error, resourceVersion },
      `${describeRef(refOf(object))} can't be projected, which is a bug of the kind; ${outcome}`,
    );
  };
}

function hasIdentityOf(kept: AnyObject | undefined, object: AnyObject): kept is AnyObject {
  const [a, b] = [kept?.metadata, object.metadata];
  return (
    kept?.kind === object.kind &&
    kept.apiVersion === object.apiVersion &&
    a?.name === b.name &&
    a.namespace === b.namespace &&
    a.uid === b.uid &&
    a.resourceVersion === b.resourceVersion
  );
}
