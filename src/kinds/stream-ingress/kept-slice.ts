import type { AnyObject } from '../../contract/object.js';

/** What is kept of an EndpointSlice: nothing changes in it while one of several pods comes or goes. */
export interface KeptSlice {
  /** `namespace/name` of its Service. */
  readonly service: string;
  /** The ports at which at least one endpoint is ready, each by `portId`. */
  readonly readyPorts: readonly string[];
}

/** Nothing is kept of a slice that belongs to no Service. */
export function keepSlice(object: AnyObject): KeptSlice | undefined {
  const { namespace = '', labels } = object.metadata;
  const service = labels?.['kubernetes.io/service-name'];
  if (!service) return undefined;
  const { endpoints, ports } = object as {
    readonly endpoints?: readonly { readonly conditions?: { readonly ready?: boolean } }[] | null;
    readonly ports?: readonly { readonly name?: string; readonly protocol?: string }[] | null;
  };
  // One that says nothing is ready. https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/#ready
  const ready = (endpoints ?? []).some(({ conditions }) => conditions?.ready !== false);
  return {
    service: `${namespace}/${service}`,
    readyPorts: ready ? (ports ?? []).map(portId) : [],
  };
}

/** Tells a port of a Service in its EndpointSlices: they have its name, but not its number. */
export function portId({
  name = '',
  protocol = 'TCP',
}: {
  readonly name?: string;
  readonly protocol?: string;
}): string {
  return `${name}/${protocol}`;
}
