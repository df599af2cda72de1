import type { TypeRef } from './controller.js';
import type { CustomResourceDefinition } from './crd.js';
import { groupOf } from './object.js';

/** On each applied object: the hash of what was rendered for it, and the UID of the custom resource that it was applied for. */
export const APPLIED_HASH_ANNOTATION = 'reconstruct.kosmos.io/applied-hash';

/** Reports whether an annotation is one of this project's. */
export function isOwnAnnotation(name: string): boolean {
  return name.startsWith('reconstruct.kosmos.io/') || name.startsWith(SHARED_HASH_PREFIX);
}

/** Before the field manager: the same on an object that others share, of which each manager applies a part; before the UID of an owner: what that has set. */
export const SHARED_HASH_PREFIX = 'applied-hash.reconstruct.kosmos.io/';

/** Reports whether an annotation is ours, and says nothing but what was applied. */
export function isHashAnnotation(name: string): boolean {
  return name === APPLIED_HASH_ANNOTATION || name.startsWith(SHARED_HASH_PREFIX);
}

/** On an object of a type with `createOnly`: the values that these fields were created with; JSON, compressed, in base64. */
export const CREATED_ANNOTATION = 'reconstruct.kosmos.io/created';

/** Reports whether an annotation is our record of an apply, and no content of the object. */
export function isRecordAnnotation(name: string): boolean {
  return name === CREATED_ANNOTATION || isHashAnnotation(name);
}

/** Annotation in which `kubectl apply` keeps a copy of the object, the data of a Secret included. */
export const LAST_APPLIED_ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration';

/** On an object that exists already: `<Kind>/<name>` of the custom resource that may take it over. */
export const ADOPT_BY_ANNOTATION = 'reconstruct.kosmos.io/adopt-by';

/** On a custom resource: `"true"` ends all writes for it but those of its status. */
export const PAUSED_ANNOTATION = 'reconstruct.kosmos.io/paused';

/** On a custom resource: what becomes of drift in its objects, in place of the operator's mode. */
export const DRIFT_ANNOTATION = 'reconstruct.kosmos.io/drift';

/** On a custom resource: any text; another one than before has all its generated values replaced, once. */
export const ROTATE_ANNOTATION = 'reconstruct.kosmos.io/rotate';

/** On the Secret with generated values: the text of the rotation that they were made for, empty before the first, and hashes of earlier ones. */
export const GENERATED_ANNOTATION = 'reconstruct.kosmos.io/generated';

/** On the Secret with generated values: what its composed texts were made of, by hashes. */
export const COMPOSED_ANNOTATION = 'reconstruct.kosmos.io/composed';

/** On a custom resource that is being deleted: `"true"` gives up the work that its kind has left to do. */
export const GIVE_UP_ANNOTATION = 'reconstruct.kosmos.io/give-up';

/** On a custom resource: the build of its kind whose update it takes, or `always`. */
export const RELEASE_ANNOTATION = 'reconstruct.kosmos.io/release';

/** On the Lease: the build of a kind whose rollout was stopped, and why; or since when it goes on all the same. */
export function rolloutStopped(kind: string): string {
  return `rollout.reconstruct.kosmos.io/${kind}`;
}

/** Source of names: a custom resource, or anything that looks like one. */
export type NamedKind = TypeRef;

/**
 * The label that ties children to their custom resource and alone makes a selector, e.g. `example.com/widget`.
 * @param kind the kind, a custom resource of it, or its CRD
 * @param name of the custom resource
 */
export function selectorLabels(
  kind: NamedKind | CustomResourceDefinition,
  name: string,
): Record<string, string> {
  const [group, word] =
    kind.kind === 'CustomResourceDefinition' && 'spec' in kind
      ? [kind.spec.group, kind.spec.names.kind]
      : [groupOf(kind.apiVersion) || 'core', kind.kind];
  return { [`${group}/${word.toLowerCase()}`]: name };
}

/** The labels that every child carries; takes what `selectorLabels` takes. */
export function childLabels(
  kind: NamedKind | CustomResourceDefinition,
  name: string,
): Record<string, string> {
  return {
    app: name,
    'app.kubernetes.io/managed-by': 'reconstruct',
    'app.kubernetes.io/name': name,
    ...selectorLabels(kind, name),
  };
}

/** The finalizer of a kind that has work to do on deletion, e.g. `reconstruct.kosmos.io/widget`. */
export function finalizerOf(kind: string): string {
  return `reconstruct.kosmos.io/${kind.toLowerCase()}`;
}

/** The field manager that applies children, e.g. `widget-controller`. */
export function childrenFieldManager(kind: string): string {
  return `${kind.toLowerCase()}-controller`;
}

/**
 * The field manager that applies the children of one custom resource whose owner is only recorded: two owners conflict there, since
 * each records itself.
 */
export function recordedFieldManager(kind: string, uid: string): string {
  return `${childrenFieldManager(kind)}:${uid}`;
}

/** Reports whether two field managers apply children of one kind. */
export function areSiblings(a: string, b: string): boolean {
  return a.split(':')[0] === b.split(':')[0];
}

/** The field manager that holds `spec.replicas` until an autoscaler writes it, e.g. `widget-replicas`. */
export function replicasFieldManager(kind: string): string {
  return `${kind.toLowerCase()}-replicas`;
}

/** The field manager that holds the replicas of what this one applies; none for one that doesn't apply children. */
export function holderFor(manager: string): string | undefined {
  return manager.endsWith('-controller') ? manager.replace(/controller$/, 'replicas') : undefined;
}

/** The field manager that applies the status, e.g. `widget-status`. */
export function statusFieldManager(kind: string): string {
  return `${kind.toLowerCase()}-status`;
}

/** Pattern of the name of a namespace. */
export const NAMESPACE = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** The Lease by which processes agree on which of them works. */
export const LEASE_NAME = 'reconstruct';
