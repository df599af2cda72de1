import type { Watch } from '../contract/controller.js';
import type { ContributedType, RenderedType } from '../contract/kind.js';
import { NAMESPACE } from '../contract/names.js';
import { groupOf } from '../contract/object.js';
import { groupKind, resourceType } from '../contract/resource.js';
import type { ResourceType, ResourceTypeProps } from '../contract/resource.js';
import { isSelector } from '../values/label-selector.js';
import { parseFieldPath, showValue } from '../values/path.js';
import { checkNames, refuse } from './definition.js';
import type { KeepFunction } from './kubernetes-types.js';
import { keepsTroubles } from './pods.js';
import type { RelatedTypeProps } from './status.js';

/** A type that a construct may make. */
export interface ChildTypeProps
  extends ResourceTypeProps, Omit<RenderedType, keyof ResourceType>, Pick<Watch, 'claims'> {
  /**
   * Whether the kind works where this type isn't installed. A custom resource that needs it is stalled with the reason
   * `KindNotInstalled` until it is.
   * @default false - the controller starts once the type is served
   */
  readonly optional?: boolean;
  /**
   * Returns what `status` and `handOver` read of a child as the API server sent it, beside its identity and status: kept in
   * memory, so little is best. TypeScript knows its fields by `ObjectOf`. A `status` among it stands for the object's own, as with a condition `Ready` for what has none.
   * Kinds that share the function share the memory.
   * @default - nothing
   */
  readonly keep?: KeepFunction<Readonly<Record<string, unknown>>>;
}

/** A type of objects of others, of which a construct may set fields. */
export interface ContributedTypeProps extends ResourceTypeProps, Omit<ContributedType, keyof ResourceType> {}

/** Options that say of a type how it is served. */
export const OF_A_TYPE = ['apiVersion', 'kind', 'plural', 'namespaced'];

const EXAMPLE = "{ apiVersion: 'apps/v1', kind: 'Deployment' }";

/**
 * Completes the types that a definition lists.
 * @param where the definition stands, for messages
 * @param options of the types of each list, beside those of every type
 * @throws OperatorError `InvalidDefinition` where one can't be what was meant, or is there twice
 */
export function typesIn<Lists extends Readonly<Record<string, readonly ResourceTypeProps[]>>>(
  where: string,
  owner: ResourceType,
  lists: Lists,
  options: Readonly<Record<keyof Lists, readonly string[]>>,
): { readonly [List in keyof Lists]: readonly (Lists[List][number] & ResourceType)[] } {
  const complete = Object.entries(lists).map(([list, types]) => {
    const names = options[list] ?? [];
    const all = types.map((given, index): Listed => {
      const place = `${where}: ${list}[${index}]`;
      checkNames(place, given, [...OF_A_TYPE, ...names], `write ${EXAMPLE}`);
      const type: Listed = { ...given, ...resourceType(given) };
      checkGroup(place, type);
      checkScope(place, type, owner);
      checkOptions(place, type, names);
      return type;
    });
    return [list, all] as const;
  });
  const types = complete.flatMap(([, all]) => all).map(groupKind);
  const twice = types.find((type, index) => types.indexOf(type) !== index);
  const isPods = complete.some(([, all]) => {
    const same = all.filter((type) => groupKind(type) === twice);
    return same.length > 1 && same.some(({ keep }) => keep && keepsTroubles.has(keep));
  });
  const once = `list it once, in ${Object.keys(lists).join(' or ')}`;
  const remedy = isPods ? 'give podsOf(crd, { keep }) in place of both' : once;
  refuse(`Kind ${owner.kind}`, twice && `type ${twice} is listed twice; ${remedy}`);
  return Object.fromEntries(complete) as never;
}

/** A type with any options of the lists. */
type Listed = ResourceType &
  Partial<Pick<ChildTypeProps, 'namespaces' | 'recreate' | 'createOnly'>> &
  Partial<Pick<ContributedTypeProps, 'takes'> & Pick<RelatedTypeProps, 'selector' | 'keep'>>;

/** The types of Kubernetes itself that have no namespace and that a construct may make. */
export const CLUSTER_SCOPED: ReadonlySet<string> = new Set([
  ...['Namespace', 'Node', 'PersistentVolume', 'APIService.apiregistration.k8s.io'],
  ...['ClusterRole.rbac.authorization.k8s.io', 'ClusterRoleBinding.rbac.authorization.k8s.io'],
  'CustomResourceDefinition.apiextensions.k8s.io',
  ...['IngressClass.networking.k8s.io', 'GatewayClass.gateway.networking.k8s.io'],
  ...['StorageClass.storage.k8s.io', 'CSIDriver.storage.k8s.io', 'PriorityClass.scheduling.k8s.io'],
  ...['RuntimeClass.node.k8s.io', 'ValidatingWebhookConfiguration.admissionregistration.k8s.io'],
  'MutatingWebhookConfiguration.admissionregistration.k8s.io',
  'ValidatingAdmissionPolicy.admissionregistration.k8s.io',
  'ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io',
]);

/** Refuses what a type says wrongly of where its objects live. */
function checkScope(where: string, type: Listed, owner: ResourceType): void {
  const name = groupKind(type);
  const { apiVersion, kind, namespaced, namespaces } = type;
  const names = namespaces === '*' ? [] : (namespaces ?? []);
  const wrong = names.find((one) => !NAMESPACE.test(one));
  refuse(
    where,
    namespaced &&
      CLUSTER_SCOPED.has(name) &&
      `${name} has no namespace; write { apiVersion: '${apiVersion}', kind: '${kind}', namespaced: false }`,
    namespaces && !namespaced && `leave namespaces out: ${name} has no namespace`,
    namespaces &&
      !owner.namespaced &&
      `leave namespaces out: ${owner.kind} is cluster-scoped, and may have its children anywhere`,
    (wrong !== undefined || namespaces?.length === 0) &&
      `namespaces: give names, as in ['istio-gateways'], or '*' for all${wrong === undefined ? '' : `; ${showValue(wrong)} is none`}`,
  );
}

/** Options that name fields of which an annotation records values. */
const FIELDS = [
  ['createOnly', '.spec.volumeClaimTemplates', ', and see generated for values that are made once'],
  ['takes', '.spec.replicas', ''],
] as const;

/** Refuses what can't be said of how objects of a type are treated. */
function checkOptions(where: string, type: Listed, names: readonly string[]): void {
  const { recreate = false, selector = '' } = type as {
    readonly recreate?: unknown;
    readonly selector?: string;
  };
  refuse(
    where,
    typeof recreate !== 'boolean' &&
      recreate !== 'orphan' &&
      `recreate: ${showValue(recreate)} is none; write true, or 'orphan'`,
    names.includes('selector') &&
      !isSelector(selector) &&
      "give a label selector such as selector: 'demo.io/widget', or all objects of the type are read",
  );
  for (const [option, example, more] of FIELDS) {
    const paths = type[option];
    if (paths === undefined) continue;
    refuse(
      where,
      groupKind(type) === 'Secret' &&
        `${option} would record values of a Secret in an annotation; leave it out${more}`,
    );
    checkPaths(where, paths, option, example);
  }
}

function checkPaths(where: string, given: readonly string[], option: string, example: string): void {
  const paths: readonly unknown[] = Array.isArray(given) ? given : [];
  const isIn = (path: string, other: unknown): boolean =>
    path === other || path.startsWith(`${String(other)}.`) || path.startsWith(`${String(other)}[`);
  const wrong = paths.find((path, index) => {
    const [first = ''] = (typeof path === 'string' && parseFieldPath(path)) || [];
    const isTaken = paths.some((other, at) => at !== index && isIn(String(path), other));
    return ['', 'apiVersion', 'kind', 'metadata', 'status'].includes(first) || isTaken;
  });
  refuse(
    where,
    (paths.length === 0 || wrong !== undefined) &&
      `${option}: give paths of fields through maps, none within another and not of metadata or status, as in ['${example}']${wrong === undefined ? '' : `; ${showValue(wrong)} is none`}`,
  );
}

/** Kinds of Kubernetes' own groups that are often written with another one. */
const KINDS: Readonly<Record<string, string>> = {
  v1: 'ConfigMap Namespace PersistentVolumeClaim Pod Secret Service ServiceAccount',
  'apps/v1': 'DaemonSet Deployment ReplicaSet StatefulSet',
  'autoscaling/v2': 'HorizontalPodAutoscaler',
  'batch/v1': 'CronJob Job',
  'policy/v1': 'PodDisruptionBudget',
  'networking.k8s.io/v1': 'Ingress NetworkPolicy',
  'rbac.authorization.k8s.io/v1': 'ClusterRole ClusterRoleBinding Role RoleBinding',
};

/** Refuses a kind of Kubernetes in a group of Kubernetes that lacks it: the controller would wait until it is served. */
function checkGroup(where: string, { apiVersion, kind }: ResourceTypeProps): void {
  const groups = Object.keys(KINDS);
  const right = groups.find((one) => KINDS[one]?.split(' ').includes(kind));
  const isOfKubernetes = groups.some((one) => groupOf(one) === groupOf(apiVersion));
  refuse(
    where,
    right &&
      isOfKubernetes &&
      groupOf(right) !== groupOf(apiVersion) &&
      `${apiVersion} has no ${kind}; write { apiVersion: '${right}', kind: '${kind}' }`,
  );
}
