import { groupKind } from '../../contract/resource.js';
import type { AnyObject, ObjectRef } from '../../contract/object.js';
import type { FieldChange } from './fields.js';

/** Kinds whose pods are replaced when their template changes. */
const ROLLED: ReadonlySet<string> = new Set(['Deployment.apps', 'StatefulSet.apps', 'DaemonSet.apps']);

/**
 * Reports whether Kubernetes replaces pods when a field changes, as of a Deployment when its pod template does.
 * @param path as in `FieldChange`
 */
export function rollsPods(type: Pick<ObjectRef, 'apiVersion' | 'kind'>, path: string): boolean {
  return ROLLED.has(groupKind(type)) && /^\.spec\.template\b/.test(path);
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
