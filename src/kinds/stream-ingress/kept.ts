import { childrenFieldManager } from '../../contract/names.js';
import type { AnyObject } from '../../contract/object.js';
import { GROUP, KIND, portKey } from './spec.js';
import type { Protocol } from './spec.js';

/** Applies the keys and ports of shared objects, and the children of a Gateway's. */
export const FIELD_MANAGER = childrenFieldManager(KIND);

/** Projection of every Service, since any may be an upstream. */
export interface KeptService {
  readonly ports: readonly KeptPort[];
  /** Set where the Service stands for a host name, and has no endpoints of its own. */
  readonly external?: true;
  /** The namespaces of its annotation. */
  readonly allowFrom?: readonly string[];
}

interface KeptPort {
  readonly name?: string;
  readonly port: number;
  readonly protocol: string;
}

/** Projection of the Service that opens a target's ports. */
export interface KeptTargetService extends KeptService {
  /** By `portKey`. */
  readonly open: Readonly<Record<string, OpenPort>>;
  /** Something in it is ours. */
  readonly managed: boolean;
  /** Each an IP address or a host name, with what the load balancer says of single ports. */
  readonly addresses: readonly {
    readonly address: string;
    readonly errors: readonly { readonly port: number; readonly protocol: string; readonly error?: string }[];
  }[];
  /** The message of the condition `LoadBalancerPortsError`, where it holds. */
  readonly portsError?: string;
}

export interface OpenPort extends KeptPort, Holding {
  readonly targetPort?: number | string;
}

/**
 * On a Service: the namespaces whose StreamIngresses may lead to it, separated by commas, or `*`; read only in clusters
 * that have no ReferenceGrant, as the admin says.
 */
const ALLOW_FROM_ANNOTATION = `${GROUP}/allow-from`;

interface ServiceSpec {
  readonly type?: string;
  readonly ports?: readonly (Omit<KeptPort, 'protocol'> & {
    readonly protocol?: string;
    readonly targetPort?: number | string;
  })[];
}

export function keepService({ metadata, spec }: AnyObject): KeptService {
  const { type, ports = [] } = (spec ?? {}) as ServiceSpec;
  const allowed = metadata.annotations?.[ALLOW_FROM_ANNOTATION];
  return {
    ports: ports.map(({ name, port, protocol = 'TCP' }) => ({
      ...(name !== undefined && { name }),
      port,
      protocol,
    })),
    ...(type === 'ExternalName' && { external: true }),
    ...(allowed !== undefined && { allowFrom: allowed.split(',').map((name) => name.trim()) }),
  };
}

export function keepTargetService(object: AnyObject): KeptTargetService {
  const service = keepService(object);
  const { ports = [] } = (object.spec ?? {}) as ServiceSpec;
  // The node port, for one, is a field that we leave to others.
  const fields = ['.', 'f:name', 'f:port', 'f:protocol', 'f:targetPort'];
  const held = holdings(object, ['f:spec', 'f:ports'], (port) => fields.some((field) => field in port));
  const open = service.ports.map((kept, index) => {
    const { port, protocol } = kept;
    const targetPort = ports[index]?.targetPort;
    const holding = held(`k:${JSON.stringify({ port, protocol })}`);
    return [
      portKey(port, protocol),
      { ...kept, ...(targetPort !== undefined && { targetPort }), ...holding },
    ] as const;
  });
  const { loadBalancer = {}, conditions = [] } = (object.status ?? {}) as {
    readonly loadBalancer?: {
      readonly ingress?: readonly {
        readonly ip?: string;
        readonly hostname?: string;
        readonly ports?: KeptTargetService['addresses'][number]['errors'];
      }[];
    };
    readonly conditions?: readonly { type: string; status: string; message?: string }[];
  };
  const failed = conditions.find(
    ({ type, status }) => type === 'LoadBalancerPortsError' && status === 'True',
  );
  return {
    ...service,
    open: Object.fromEntries(open),
    managed: isManaged(object),
    addresses: (loadBalancer.ingress ?? []).map(({ ip, hostname, ports: reported = [] }) => ({
      address: ip ?? hostname ?? '',
      errors: reported.filter(({ error }) => error),
    })),
    ...(failed && { portsError: failed.message ?? '' }),
  };
}

/** The part of a ReferenceGrant that is read. @see https://gateway-api.sigs.k8s.io/api-types/referencegrant/ */
export interface Grant {
  readonly namespace: string;
  /** The namespaces whose StreamIngresses it speaks of. */
  readonly from: readonly string[];
  /** The Services that they may refer to; `*` is every one of the namespace. */
  readonly to: readonly string[];
}

/** Returns nothing for a ReferenceGrant that doesn't speak of StreamIngresses and Services. */
export function grantOf({ metadata, spec }: AnyObject): Grant | undefined {
  const { from = [], to = [] } = (spec ?? {}) as {
    readonly from?: readonly { group?: string; kind?: string; namespace?: string }[];
    readonly to?: readonly { group?: string; kind?: string; name?: string }[];
  };
  const ours = from.filter(({ group, kind }) => group === GROUP && kind === KIND);
  const services = to.filter(({ group, kind }) => (group ?? '') === '' && kind === 'Service');
  if (ours.length === 0 || services.length === 0) return undefined;
  return {
    namespace: metadata.namespace ?? '',
    from: ours.map(({ namespace = '' }) => namespace),
    to: services.map(({ name }) => name || '*'),
  };
}

/** Projection of a ConfigMap in which a target's ports are listed. */
export interface KeptConfigMap {
  readonly entries: Readonly<Record<string, KeptEntry>>;
  /** Something in it is ours. */
  readonly managed: boolean;
}

export interface KeptEntry extends Holding {
  readonly value: string;
}

export function keepConfigMap(object: AnyObject): KeptConfigMap {
  const data = (object.data ?? {}) as Readonly<Record<string, string>>;
  const held = holdings(object, ['f:data']);
  const entries = Object.entries(data).map(([key, value]) => [key, { value, ...held(`f:${key}`) }] as const);
  return { entries: Object.fromEntries(entries), managed: isManaged(object) };
}

/** Projection of an EndpointSlice: it stays the same while one of several pods comes or goes. */
export interface KeptSlice {
  /** `namespace/name` of its Service. */
  readonly service: string;
  /** The ports at which at least one endpoint is ready, each by `portId`. */
  readonly readyPorts: readonly string[];
}

/** Keeps nothing of a slice that belongs to no Service. */
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
  return { service: `${namespace}/${service}`, readyPorts: ready ? (ports ?? []).map(portId) : [] };
}

/** Identifies a port of a Service in its EndpointSlices: they have its name, but not its number. */
export function portId({ name = '', protocol = 'TCP' }: { name?: string; protocol?: string }): string {
  return `${name}/${protocol}`;
}

/** Where a TCPRoute or UDPRoute leads: a Service as `namespace/service`, anything else with its kind before. */
export type KeptRoute = readonly string[];

export function keepRoute({ metadata, spec }: AnyObject): KeptRoute {
  const { rules = [] } = (spec ?? {}) as {
    readonly rules?: readonly {
      readonly backendRefs?: readonly { group?: string; kind?: string; name: string; namespace?: string }[];
    }[];
  };
  const backends = rules.flatMap(({ backendRefs = [] }) => backendRefs);
  return backends.map(({ group = '', kind = 'Service', namespace = metadata.namespace ?? '', name }) => {
    const key = `${namespace}/${name}`;
    return group === '' && kind === 'Service' ? key : `${kind}.${group} ${key}`;
  });
}

/** The ConfigMaps that an ingress-nginx reads by its arguments, each as `namespace/name`; a missing one it doesn't read. */
export type KeptArguments = Readonly<Partial<Record<Protocol, string>>>;

interface Container {
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly fieldRef?: { readonly fieldPath?: string } };
  }[];
}

/** Reads the arguments of the containers of a Deployment or DaemonSet. */
export function keepArguments({ metadata, spec }: AnyObject): KeptArguments {
  const { template } = (spec ?? {}) as {
    readonly template?: { readonly spec?: { readonly containers?: readonly Container[] } };
  };
  const found: Partial<Record<Protocol, string>> = {};
  for (const { command = [], args = [], env = [] } of template?.spec?.containers ?? [])
    for (const protocol of ['TCP', 'UDP'] as const) {
      const flag = `--${protocol.toLowerCase()}-services-configmap`;
      const words = [...command, ...args];
      // The last one counts, as for ingress-nginx.
      const at = words.findLastIndex((word) => word === flag || word.startsWith(`${flag}=`));
      const value = words[at] === flag ? words[at + 1] : words[at]?.slice(flag.length + 1);
      // Variables are expanded as Kubernetes does it. The ingress-nginx chart writes `$(POD_NAMESPACE)`.
      const expanded = value?.replace(/\$\(([^)]+)\)/g, (whole, name: string) => {
        const variable = env.find((candidate) => candidate.name === name);
        const isNamespace = variable?.valueFrom?.fieldRef?.fieldPath === 'metadata.namespace';
        return (isNamespace ? metadata.namespace : variable?.value) ?? whole;
      });
      if (expanded) found[protocol] = expanded;
    }
  return found;
}

/** Ownership of a part of an object. */
export interface Holding {
  readonly ours: boolean;
  /** The field managers of others that hold it or something in it. */
  readonly others: readonly string[];
}

interface ManagedFields {
  readonly manager?: string;
  readonly operation?: string;
  readonly subresource?: string;
  readonly fieldsV1?: object;
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * Finds the field managers of the parts of an object below a path.
 * @param path of `fieldsV1`, such as `f:spec`, `f:ports`
 * @param counts whether it matters to us what another has there
 * @returns for a segment below the path, who holds it
 */
function holdings(
  object: AnyObject,
  path: readonly string[],
  counts: (fields: Fields) => boolean = () => true,
): (segment: string) => Holding {
  const entries = managedFieldsOf(object).map((entry) => {
    const fields = path.reduce<unknown>((at, step) => (at as Fields | undefined)?.[step], entry.fieldsV1);
    return { ...entry, fields: (fields ?? {}) as Readonly<Record<string, Fields>> };
  });
  return (segment) => {
    const holders = entries.filter(({ fields }) => segment in fields);
    const others = holders.filter((entry) => !isOurs(entry) && counts(entry.fields[segment] ?? {}));
    return {
      ours: holders.some(isOurs),
      others: [...new Set(others.map(({ manager = 'unknown' }) => manager))],
    };
  };
}

function isManaged(object: AnyObject): boolean {
  return managedFieldsOf(object).some(isOurs);
}

function managedFieldsOf({ metadata }: AnyObject): readonly ManagedFields[] {
  return (metadata as { readonly managedFields?: readonly ManagedFields[] }).managedFields ?? [];
}

function isOurs({ manager, operation, subresource }: ManagedFields): boolean {
  return manager === FIELD_MANAGER && operation === 'Apply' && !subresource;
}

/** Reports whether we may write a part: it isn't there, or it is ours alone. */
export function isFree(holding: Holding | undefined): boolean {
  return !holding || (holding.ours && holding.others.length === 0);
}

/** Names the holder that is in the way, for people. */
export function holderText({ others }: Holding): string {
  return others.length === 0
    ? 'a writer that the cluster has no record of'
    : `the field manager ${others.join(', ')}`;
}
