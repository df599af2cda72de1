import type { AnyObject } from '../../contract/object.js';

interface BackendRef {
  readonly group?: string;
  readonly kind?: string;
  readonly name: string;
  readonly namespace?: string;
}

interface RouteSpec {
  readonly rules?: readonly { readonly backendRefs?: readonly BackendRef[] }[];
}

/** Where a TCPRoute or UDPRoute leads: a Service as `namespace/service`, anything else with its kind before. */
export type KeptRoute = readonly string[];

export function keepRoute({ metadata, spec }: AnyObject): KeptRoute {
  const { rules = [] } = (spec ?? {}) as RouteSpec;
  const backends = rules.flatMap(({ backendRefs = [] }) => backendRefs);
  return backends.map(({ group = '', kind = 'Service', namespace = metadata.namespace ?? '', name }) => {
    const key = `${namespace}/${name}`;
    return group === '' && kind === 'Service' ? key : `${kind}.${group} ${key}`;
  });
}
