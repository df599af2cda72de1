import type { AnyObject } from '../../contract/object.js';
import type { StreamIngress } from './spec.js';
import { upstreamOf } from './upstream.js';

interface BackendRef {
  readonly group?: string;
  readonly kind?: string;
  readonly name: string;
  readonly namespace?: string;
}

interface RouteSpec {
  readonly rules?: readonly { readonly backendRefs?: readonly BackendRef[] }[];
}

/** Whether the route among these children, as it is, leads to the Service of a custom resource, at whatever port. */
export function routeLeadsToUpstream(children: readonly AnyObject[], cr: StreamIngress): boolean {
  const { namespace, service } = upstreamOf(cr);
  const backends = children.filter(({ kind }) => kind !== 'ListenerSet').flatMap(backendsOf);
  return (
    backends.length > 0 &&
    backends.every(
      (backend) => isService(backend) && backend.namespace === namespace && backend.name === service,
    )
  );
}

function backendsOf({ metadata, spec }: AnyObject): BackendRef[] {
  const { rules = [] } = (spec ?? {}) as RouteSpec;
  const { namespace = '' } = metadata;
  return rules.flatMap(({ backendRefs = [] }) => backendRefs.map((ref) => ({ namespace, ...ref })));
}

function isService({ group = '', kind = 'Service' }: BackendRef): boolean {
  return group === '' && kind === 'Service';
}
