import { groupOf } from './object.js';

/** A kind as the API server serves it: enough to build every request path for it. */
export interface ResourceType {
  /** `v1`, or `group/version`. */
  readonly apiVersion: string;
  readonly kind: string;
  /** The plural, lower-case name in request paths, e.g. `deployments`. */
  readonly plural: string;
  readonly namespaced: boolean;
}

/** Name of a kind as an author writes it; see `resourceType` for what is filled in. */
export interface ResourceTypeProps {
  /** `v1`, or `group/version`, e.g. `apps/v1`. */
  readonly apiVersion: string;
  /** In the singular, e.g. `Deployment`. */
  readonly kind: string;
  /** Name in request paths. @default - the kind in lower case and in the plural, e.g. `networkpolicies`, `gateways` */
  readonly plural?: string;
  /** Whether its objects are in namespaces. @default true */
  readonly namespaced?: boolean;
}

/** Completes what an author left out. */
export function resourceType(props: ResourceTypeProps): ResourceType {
  return {
    apiVersion: props.apiVersion,
    kind: props.kind,
    plural: props.plural ?? guessPlural(props.kind),
    namespaced: props.namespaced ?? true,
  };
}

/** `apiextensions.k8s.io/v1`. */
export const definitionType = resourceType({
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
  namespaced: false,
});

/** Groups that are built into the API server, so that their kinds have no CustomResourceDefinition. */
const BUILT_IN =
  /^([^.]*|(admissionregistration|apiextensions|apiregistration|(rbac\.)?authorization|authentication|certificates|coordination|discovery|events|(flowcontrol|internal)\.apiserver|networking|node|resource|scheduling|storage|storagemigration)\.k8s\.io)$/;

export function isBuiltIn({ apiVersion }: Pick<ResourceType, 'apiVersion'>): boolean {
  return BUILT_IN.test(groupOf(apiVersion));
}

/** Name of the CustomResourceDefinition of a type. */
export function definitionName({ apiVersion, plural }: ResourceType): string {
  return `${plural}.${groupOf(apiVersion)}`;
}

/** Group and kind, which name a type whatever version it is served in: `Deployment.apps`, `Service`. */
export function groupKind(type: { readonly apiVersion: string; readonly kind: string }): string {
  const group = groupOf(type.apiVersion);
  return group ? `${type.kind}.${group}` : type.kind;
}

/**
 * The plural of a kind in lower case, as generators of CRDs form it: `gateways` and `meshes`, where
 * `UnsafeGuessKindToResource` has `gatewaies` and `meshs`. It holds for every kind of Kubernetes itself.
 * @see https://github.com/kubernetes/apimachinery/blob/master/pkg/api/meta/restmapper.go
 */
export function guessPlural(kind: string): string {
  const singular = kind.toLowerCase();
  if (singular === 'endpoints') return singular;
  if (/(s|x|ch|sh)$/.test(singular)) return `${singular}es`;
  if (/[^aeiou]y$/.test(singular)) return `${singular.slice(0, -1)}ies`;
  return `${singular}s`;
}
