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

/** What an author writes to name a kind; see `resourceType` for what is filled in. */
export interface ResourceTypeProps {
  readonly apiVersion: string;
  readonly kind: string;
  /** @default - the kind in lower case and in the plural, as `kubectl` guesses it */
  readonly plural?: string;
  /** @default true */
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

/** Group and kind, which name a type whatever version it is served in: `Deployment.apps`, `Service`. */
export function groupKind(type: { readonly apiVersion: string; readonly kind: string }): string {
  const group = groupOf(type.apiVersion);
  return group ? `${type.kind}.${group}` : type.kind;
}

/**
 * The guess of `UnsafeGuessKindToResource`, which holds for every kind of Kubernetes itself.
 * @see https://github.com/kubernetes/apimachinery/blob/master/pkg/api/meta/restmapper.go
 */
function guessPlural(kind: string): string {
  const singular = kind.toLowerCase();
  if (singular === 'endpoints') return singular;
  if (singular.endsWith('s')) return `${singular}es`;
  if (singular.endsWith('y')) return `${singular.slice(0, -1)}ies`;
  return `${singular}s`;
}
