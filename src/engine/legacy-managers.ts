import { APPLIED_HASH_ANNOTATION, holderFor } from '../contract/names.js';
import type { AnyObject } from '../contract/object.js';
import { isAppliedBy, managedFieldsOf, setOf, union, without, withoutSubtree } from './field-set.js';
import type { FieldPath, FieldsV1, ManagedFieldsEntry } from './field-set.js';

/**
 * Managers that write once, on behalf of a person or of a chart, and then own what they wrote for ever:
 *
 * - `kubectl` is `kubectl apply --server-side`; every other command adds its name, as in `kubectl-client-side-apply`,
 *   `kubectl-create` and `kubectl-edit`.
 *   https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/kubectl/pkg/cmd/apply/apply.go
 * - `helm` is that program's name, from which the API server derives the manager; Helm 2 was `Helm`.
 *   https://github.com/helm/helm/blob/main/pkg/kube/client.go
 * - `before-first-apply` owns what was there when nothing was recorded about its owners.
 *   https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apimachinery/pkg/util/managedfields/internal/skipnonapplied.go
 */
export const LEGACY_MANAGERS: readonly string[] = ['kubectl', 'helm', 'Helm', 'before-first-apply'];

/** Every command of kubectl but `apply --server-side` has a manager of its own. */
const KUBECTL_COMMAND = 'kubectl-';

/** Whether what this manager owns is a leftover of somebody's command, as far as it is about the object itself. */
export function isLegacy({ manager = '', subresource }: ManagedFieldsEntry): boolean {
  return !subresource && (LEGACY_MANAGERS.includes(manager) || manager.startsWith(KUBECTL_COMMAND));
}

/** Whether an entry is left over from somebody, as seen by the manager that applies the same fields. */
export type IsLeftOver = (entry: ManagedFieldsEntry, manager: string) => boolean;

/**
 * Whether an entry is left over from an autoscaler: of the manager that held the replicas for it, or of its writes through
 * `/scale`. To be asked only once a manager has taken the field back: until then, the entry keeps the value.
 */
export const isHeld: IsLeftOver = ({ manager, operation, subresource }, own) => {
  const holder = holderFor(own);
  return holder !== undefined && (subresource === 'scale' || (operation === 'Apply' && manager === holder));
};

/**
 * The managers whose applied fields are owned by what is left over too: those fields would stay when they are dropped. Looked
 * for on objects that carry our hash only, so that it costs nothing elsewhere.
 */
export function sharedWith(isLeftOver: IsLeftOver, object: AnyObject): readonly string[] | undefined {
  if (object.metadata.annotations?.[APPLIED_HASH_ANNOTATION] === undefined) return undefined;
  const sharing = managedFieldsOf(object).filter(
    (entry) =>
      entry.operation === 'Apply' &&
      !isLegacy(entry) &&
      !entry.subresource &&
      withoutOwners(isLeftOver, object, entry.manager ?? '') !== undefined,
  );
  return sharing.length === 0 ? undefined : sharing.map(({ manager = '' }) => manager);
}

/** The entries of an object when nothing that is left over owns what this manager has applied; nothing if that is so already. */
export function withoutOwners(
  isLeftOver: IsLeftOver,
  object: AnyObject,
  manager: string,
): ManagedFieldsEntry[] | undefined {
  const entries = managedFieldsOf(object);
  if (!entries.some((entry) => isLeftOver(entry, manager))) return undefined;
  const own = entries.find((entry) => isAppliedBy(manager, entry))?.fieldsV1 ?? {};
  const left = entries.map((entry) => {
    const { fieldsV1 = {} } = entry;
    const rest = isLeftOver(entry, manager) ? without(fieldsV1, own) : fieldsV1;
    return rest === fieldsV1 ? entry : { ...entry, fieldsV1: rest };
  });
  return left.every((entry, n) => entry === entries[n]) ? undefined : dropEmpty(left);
}

/**
 * The entries of an object when this manager alone owns some items of lists, so that its next apply removes those
 * that it doesn't name. Taken from legacy managers and from whoever has written them without applying.
 */
export function withItemsTaken(
  object: AnyObject,
  manager: string,
  items: readonly FieldPath[],
): ManagedFieldsEntry[] {
  const others = managedFieldsOf(object).map((entry) => {
    if (!isLegacy(entry) && (entry.operation !== 'Update' || entry.subresource)) return entry;
    return { ...entry, fieldsV1: items.reduce(withoutSubtree, entry.fieldsV1 ?? {}) };
  });
  const taken = items.reduce<FieldsV1>((set, path) => union(set, setOf(path, { '.': {} })), {});
  const own = others.find((entry) => isAppliedBy(manager, entry)) ?? {
    manager,
    operation: 'Apply',
    apiVersion: object.apiVersion,
    fieldsType: 'FieldsV1',
  };
  const rest = others.filter((entry) => entry !== own);
  return dropEmpty([...rest, { ...own, fieldsV1: union(own.fieldsV1 ?? {}, taken) }]);
}

/** The entries of an object when what this manager applied is recorded in the version that it applies now. */
export function withApiVersion(object: AnyObject, manager: string, apiVersion: string): ManagedFieldsEntry[] {
  return managedFieldsOf(object).map((entry) =>
    isAppliedBy(manager, entry) ? { ...entry, apiVersion } : entry,
  );
}

function dropEmpty(entries: readonly ManagedFieldsEntry[]): ManagedFieldsEntry[] {
  return entries.filter(({ fieldsV1 = {} }) => Object.keys(fieldsV1).length > 0);
}
