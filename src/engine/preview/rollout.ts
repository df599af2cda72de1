import { OperatorError } from '../../contract/error.js';
import type { RenderedType } from '../../contract/kind.js';
import { objectId, refOf } from '../../contract/object.js';
import type { AnyObject, ObjectRef } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import { stepsOf, valuesAt, withValue } from '../../values/fields.js';
import { fieldChanges } from './fields.js';
import type { FieldChange } from './fields.js';
import type { ObjectPreview } from './preview.js';

/** Kinds whose pods are replaced when their template changes. */
const ROLLED: ReadonlySet<string> = new Set(['Deployment.apps', 'StatefulSet.apps', 'DaemonSet.apps']);

/**
 * Reports whether Kubernetes replaces pods when a field changes, as of a Deployment when its pod template does.
 * @param path as in `FieldChange`; the default stands for an object that goes
 */
export function rollsPods(type: Pick<ObjectRef, 'apiVersion' | 'kind'>, path = '.metadata.name'): boolean {
  return ROLLED.has(groupKind(type)) && /^\.(?:metadata\.name$|spec\.(?:template|selector)\b)/.test(path);
}

/**
 * Fields that the API server refuses to change, by type; those that depend on the object are in `isFixed`.
 * @see https://github.com/kubernetes/kubernetes/tree/master/pkg/apis (`Validate...Update` in `validation.go` of each group)
 * @see https://github.com/kubernetes/kubernetes/blob/master/pkg/registry/apps/deployment/strategy.go for selectors
 */
const FIXED: Readonly<Record<string, RegExp>> = {
  'Deployment.apps': /^\.spec\.selector\b/,
  'DaemonSet.apps': /^\.spec\.selector\b/,
  'ReplicaSet.apps': /^\.spec\.selector\b/,
  'StatefulSet.apps':
    /^\.spec\.(?!(?:replicas|ordinals|template|updateStrategy|revisionHistoryLimit|persistentVolumeClaimRetentionPolicy|minReadySeconds)\b)/,
  'Job.batch':
    /^\.spec\.(?:selector|template|completions|completionMode|podFailurePolicy|successPolicy|backoffLimitPerIndex|managedBy)\b/,
  PersistentVolumeClaim: /^\.spec\.(?!resources\.requests\b|volumeAttributesClassName\b)/,
  Pod: /^\.spec\.(?!(?:initC|c)ontainers\[[^\]]*\]\.image$|activeDeadlineSeconds$|tolerations\b)/,
  Secret: /^\.type$/,
  'RoleBinding.rbac.authorization.k8s.io': /^\.roleRef\b/,
  'ClusterRoleBinding.rbac.authorization.k8s.io': /^\.roleRef\b/,
  'StorageClass.storage.k8s.io': /^\.(?:parameters|provisioner|reclaimPolicy|volumeBindingMode)\b/,
  'PriorityClass.scheduling.k8s.io': /^\.(?:value|preemptionPolicy)$/,
  'IngressClass.networking.k8s.io': /^\.spec\.controller$/,
};

/**
 * Reports whether a change of a field can't be made in place, as far as that is known without a cluster.
 * @param before the object as it is applied
 */
export function isFixed(before: AnyObject, { path, after }: FieldChange): boolean {
  const type = groupKind(before);
  // The API server keeps the address of a Service that names none.
  if (type === 'Service') return /^\.spec\.clusterIPs?\b/.test(path) && after !== undefined;
  const isSealed = (type === 'ConfigMap' || type === 'Secret') && before.immutable === true;
  if (isSealed && /^\.(?:data|binaryData|stringData|immutable)\b/.test(path)) return true;
  return FIXED[type]?.test(path) ?? false;
}

/** Reports whether a StatefulSet gets another claim: it then fails to update its Pods, which can't get another volume while they run. */
function addsClaim(before: AnyObject, after: AnyObject): boolean {
  const [was, is] = [before, after].map(({ spec = {} }) => {
    const { volumeClaimTemplates = [] } = spec as {
      readonly volumeClaimTemplates?: readonly Partial<AnyObject>[];
    };
    return volumeClaimTemplates.map(({ metadata }) => metadata?.name);
  }) as [string[], string[]];
  return is.some((name) => !was.includes(name));
}

/**
 * Compares what was rendered with what is rendered now, without a cluster: an object is as it was applied, without defaults.
 * @param typeOf returns the type of children that an object is of
 */
export function compareRendered(
  before: readonly AnyObject[],
  after: readonly AnyObject[],
  typeOf: (object: AnyObject) => Pick<RenderedType, 'createOnly' | 'recreate'> | undefined,
): ObjectPreview[] {
  const left = new Map(before.map((object) => [objectId(object), object]));
  const compared = after.map((rendered): ObjectPreview => {
    const was = left.get(objectId(rendered));
    left.delete(objectId(rendered));
    const base = { ref: refOf(rendered), takes: [], leaves: [] };
    if (!was) return { ...base, action: 'created', after: rendered };
    const { createOnly = [], recreate = false } = typeOf(rendered) ?? {};
    const object = createOnly.reduce<unknown>(
      (kept, path) => withValue(kept, stepsOf(path), valuesAt(was, path)),
      rendered,
    ) as AnyObject;
    const changes = fieldChanges(was, object);
    if (changes.length === 0) return { ...base, action: 'unchanged' };
    const fixed = changes.filter((change) => isFixed(was, change)).map(({ path }) => path);
    if (fixed.length === 0) return { ...base, action: 'changed', before: was, after: object };
    const rolling = changes.filter(({ path }) => rollsPods(was, path));
    const isStuck = addsClaim(was, object) && rolling.every(({ path }) => path.startsWith('.spec.template'));
    const keepsPods = recreate === 'orphan' && (rolling.length === 0 || isStuck);
    if (recreate !== false) return { ...base, action: 'recreated', before: was, after: rendered, keepsPods };
    const message = `${fixed.join(', ')} can't be changed in place: give the object another name, or delete it, and it is created again`;
    return { ...base, action: 'failed', error: new OperatorError({ reason: 'ImmutableField', message }) };
  });
  const base = { action: 'deleted', takes: [], leaves: [] } as const;
  return [...compared, ...[...left.values()].map((object) => ({ ...base, ref: refOf(object) }))];
}
