import type { CustomResourceProps } from '../../contract/kind.js';
import { childLabels, selectorLabels } from '../../contract/names.js';
import type { NamedKind } from '../../contract/names.js';

/** What the objects of one AppService are named and labelled after. */
export interface Identity {
  readonly name: string;
  readonly namespace?: string;
  readonly kind: NamedKind;
}

/** The identity that a custom resource gives to its objects; without an API version, that of `kosmos.io/v1`. */
export function identityOf({
  metadata,
  apiVersion = 'kosmos.io/v1',
}: CustomResourceProps<unknown>): Identity {
  const { name, namespace } = metadata;
  return { name, ...(namespace && { namespace }), kind: { apiVersion, kind: 'AppService' } };
}

/** Made here from the name alone: labels and annotations of the custom resource belong to whoever set them there. */
export function childMetadata({ name, namespace, kind }: Identity) {
  return { name, ...(namespace && { namespace }), labels: childLabels(kind, name) };
}

/** Selects the pods, by the one label that never changes: a Deployment's selector is immutable. */
export function podSelector({ name, kind }: Identity) {
  return { matchLabels: selectorLabels(kind, name) };
}
