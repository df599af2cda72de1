import type { AnyObject } from '../../contract/object.js';
import { GROUP, KIND } from './spec.js';
import type { StreamIngress } from './spec.js';
import type { KeptService } from './kept-service.js';
import type { Upstream } from './upstream.js';

/**
 * On a Service: the namespaces whose StreamIngresses may lead to it, separated by commas, or `*`; read only in clusters
 * that have no ReferenceGrant, as the admin says.
 */
export const ALLOW_FROM_ANNOTATION = `${GROUP}/allow-from`;

/** A ReferenceGrant, as far as it is read. @see https://gateway-api.sigs.k8s.io/api-types/referencegrant/ */
export interface Grant {
  readonly namespace: string;
  /** The namespaces whose StreamIngresses it speaks of. */
  readonly from: readonly string[];
  /** The Services that they may refer to; `*` is every one of the namespace. */
  readonly to: readonly string[];
}

/** What of a ReferenceGrant is kept; nothing of one that doesn't speak of StreamIngresses and Services. */
export function grantOf(object: AnyObject): Grant | undefined {
  const { from = [], to = [] } = (object.spec ?? {}) as {
    readonly from?: readonly { group?: string; kind?: string; namespace?: string }[];
    readonly to?: readonly { group?: string; kind?: string; name?: string }[];
  };
  const ours = from.filter(({ group, kind }) => group === GROUP && kind === KIND);
  const services = to.filter(({ group, kind }) => (group ?? '') === '' && kind === 'Service');
  if (ours.length === 0 || services.length === 0) return undefined;
  return {
    namespace: object.metadata.namespace ?? '',
    from: ours.map(({ namespace = '' }) => namespace),
    to: services.map(({ name = '' }) => name || '*'),
  };
}

/**
 * Whether a custom resource may lead to a Service: within its own namespace always, to another one where that permits
 * it.
 * @param grants undefined where annotations count instead
 */
export function isPermitted(
  { metadata }: StreamIngress,
  upstream: Upstream,
  grants: readonly Grant[] | undefined,
  service: KeptService | undefined,
): boolean {
  const own = metadata.namespace ?? '';
  if (upstream.namespace === own) return true;
  if (!grants) return service?.allowFrom?.some((name) => name === own || name === '*') ?? false;
  return grants.some(
    ({ namespace, from, to }) =>
      namespace === upstream.namespace &&
      from.includes(own) &&
      (to.includes('*') || to.includes(upstream.service)),
  );
}
