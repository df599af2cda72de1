import { childrenFieldManager } from '../../contract/names.js';
import type { AnyObject } from '../../contract/object.js';
import { GROUP, KIND, portKey } from './spec.js';
import type { Protocol } from './spec.js';

/** What is kept of every Service, since any may be an upstream. */
export interface KeptService {
  readonly ports: readonly KeptPort[];
  /** Set where the Service stands for a host name, and has no endpoints of its own. */
  readonly external?: true;
  /** The namespaces of its annotation. */
  readonly allowFrom?: readonly string[];
}

export interface KeptPort {
  readonly name?: string;
  readonly port: number;
  readonly protocol: string;
}

/** What is kept of the Service that opens a target's ports. */
export interface KeptTargetService extends KeptService {
  /** By `portKey`. */
  readonly open: Readonly<Record<string, OpenPort>>;
  /** Whether anything in it is ours. */
  readonly managed: boolean;
  readonly addresses: readonly KeptAddress[];
  /** The message of the condition `LoadBalancerPortsError`, where it holds. */
  readonly portsError?: string;
}

export interface OpenPort extends KeptPort, Holding {
  readonly targetPort?: number | string;
}

export interface KeptAddress {
  /** An IP address or a host name. */
  readonly address: string;
  /** What the load balancer says of single ports. */
  readonly errors: readonly { readonly port: number; readonly protocol: string; readonly error: string }[];
}

interface ServicePort {
  readonly name?: string;
  readonly port: number;
  readonly protocol?: string;
  readonly targetPort?: number | string;
}

export function keepService(object: AnyObject): KeptService {
  const { type } = (object.spec ?? {}) as { readonly type?: string };
  const allowed = object.metadata.annotations?.[ALLOW_FROM_ANNOTATION];
  return {
    ports: portsOf(object).map(keptPort),
    ...(type === 'ExternalName' && { external: true }),
    ...(allowed !== undefined && { allowFrom: allowed.split(',').map((name) => name.trim()) }),
  };
}

export function keepTargetService(object: AnyObject): KeptTargetService {
  const held = holdings(object, ['f:spec', 'f:ports'], isPort);
  const open = portsOf(object).map((port) => {
    const kept = keptPort(port);
    const segment = `k:${JSON.stringify({ port: kept.port, protocol: kept.protocol })}`;
    const { targetPort } = port;
    const openPort = { ...kept, ...(targetPort !== undefined && { targetPort }), ...held(segment) };
    return [portKey(kept.port, kept.protocol), openPort] as const;
  });
  return {
    ...keepService(object),
    open: Object.fromEntries(open),
    managed: isManaged(object),
    ...keepLoadBalancer(object),
  };
}

/** Whether it is more than a field that we leave to others, such as the node port. */
function isPort(fields: object): boolean {
  return ['.', 'f:name', 'f:port', 'f:protocol', 'f:targetPort'].some((field) => field in fields);
}

function keepLoadBalancer(object: AnyObject): Pick<KeptTargetService, 'addresses' | 'portsError'> {
  const { loadBalancer = {}, conditions = [] } = (object.status ?? {}) as {
    readonly loadBalancer?: { readonly ingress?: readonly Ingress[] };
    readonly conditions?: readonly { type: string; status: string; message?: string }[];
  };
  const failed = conditions.find(
    ({ type, status }) => type === 'LoadBalancerPortsError' && status === 'True',
  );
  return {
    addresses: (loadBalancer.ingress ?? []).map(({ ip, hostname, ports = [] }) => ({
      address: ip ?? hostname ?? '',
      errors: ports.flatMap(({ port, protocol, error }) => (error ? [{ port, protocol, error }] : [])),
    })),
    ...(failed && { portsError: failed.message ?? '' }),
  };
}

interface Ingress {
  readonly ip?: string;
  readonly hostname?: string;
  readonly ports?: readonly { port: number; protocol: string; error?: string }[];
}

function portsOf(object: AnyObject): readonly ServicePort[] {
  return ((object.spec ?? {}) as { readonly ports?: readonly ServicePort[] }).ports ?? [];
}

function keptPort({ name, port, protocol = 'TCP' }: ServicePort): KeptPort {
  return { ...(name !== undefined && { name }), port, protocol };
}

/**
 * On a Service: the namespaces whose StreamIngresses may lead to it, separated by commas, or `*`; read only in clusters
 * that have no ReferenceGrant, as the admin says.
 */
const ALLOW_FROM_ANNOTATION = `${GROUP}/allow-from`;

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

/** What is kept of a ConfigMap in which a target's ports are listed. */
export interface KeptConfigMap {
  readonly entries: Readonly<Record<string, KeptEntry>>;
  /** Whether anything in it is ours. */
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

/** The ConfigMaps that an ingress-nginx was told to read, each as `namespace/name`; a missing one it doesn't read. */
export type KeptArguments = Readonly<Partial<Record<Protocol, string>>>;

const FLAGS: Readonly<Record<Protocol, string>> = {
  TCP: '--tcp-services-configmap',
  UDP: '--udp-services-configmap',
};

interface Container {
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly Variable[];
}

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly fieldRef?: { readonly fieldPath?: string } };
}

/** What the containers of a Deployment or DaemonSet are started with. */
export function keepArguments(object: AnyObject): KeptArguments {
  const { template } = (object.spec ?? {}) as {
    readonly template?: { readonly spec?: { readonly containers?: readonly Container[] } };
  };
  const found = (template?.spec?.containers ?? []).map((container) => argumentsOf(container, object));
  return Object.assign({}, ...found) as KeptArguments;
}

function argumentsOf({ command = [], args = [], env = [] }: Container, object: AnyObject): KeptArguments {
  const words = [...command, ...args];
  const value = (flag: string): string | undefined => {
    // The last one counts, as for ingress-nginx.
    const at = words.findLastIndex((word) => word === flag || word.startsWith(`${flag}=`));
    const word = words[at];
    return word === flag ? words[at + 1] : word?.slice(flag.length + 1);
  };
  const named = (['TCP', 'UDP'] as const).flatMap((protocol) => {
    const given = value(FLAGS[protocol]);
    return given ? [[protocol, expand(given, env, object)] as const] : [];
  });
  return Object.fromEntries(named);
}

/** As Kubernetes does it. The ingress-nginx chart writes `$(POD_NAMESPACE)`. */
function expand(text: string, env: readonly Variable[], { metadata }: AnyObject): string {
  return text.replace(/\$\(([^)]+)\)/g, (whole, name: string) => {
    const variable = env.find((candidate) => candidate.name === name);
    if (variable?.valueFrom?.fieldRef?.fieldPath === 'metadata.namespace') return metadata.namespace ?? '';
    return variable?.value ?? whole;
  });
}

/** Applies the keys and ports of shared objects, and the children of a Gateway's. */
export const FIELD_MANAGER = childrenFieldManager(KIND);

/** Whose a part of an object is. */
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
 * Finds who holds the parts of an object below a path, by `metadata.managedFields`.
 * @param path of `fieldsV1`, such as `f:spec`, `f:ports`
 * @param counts whether it matters to us what another has there
 * @returns for a segment below the path, who holds it
 */
function holdings(
  object: AnyObject,
  path: readonly string[],
  counts: (fields: Fields) => boolean = () => true,
): (segment: string) => Holding {
  const entries = managedFieldsOf(object).flatMap((entry) => {
    const fields = path.reduce<unknown>((at, step) => (at as Fields | undefined)?.[step], entry.fieldsV1);
    return fields === undefined ? [] : [{ ...entry, fields: fields as Fields }];
  });
  return (segment) => {
    const holders = entries.filter(({ fields }) => segment in fields);
    const others = holders.filter((entry) => !isOurs(entry) && counts(entry.fields[segment] as Fields));
    return {
      ours: holders.some(isOurs),
      others: [...new Set(others.map(({ manager = 'unknown' }) => manager))],
    };
  };
}

/** Whether we have applied anything to an object. */
function isManaged(object: AnyObject): boolean {
  return managedFieldsOf(object).some(isOurs);
}

function managedFieldsOf({ metadata }: AnyObject): readonly ManagedFields[] {
  return (metadata as { readonly managedFields?: readonly ManagedFields[] }).managedFields ?? [];
}

function isOurs({ manager, operation, subresource }: ManagedFields): boolean {
  return manager === FIELD_MANAGER && operation === 'Apply' && !subresource;
}

/** Whether we may write it: it isn't there, or it is ours alone. */
export function isFree(holding: Holding | undefined): boolean {
  return !holding || (holding.ours && holding.others.length === 0);
}

/** Who is in the way, for people. */
export function holderText({ others }: Holding): string {
  return others.length === 0
    ? 'somebody whom the cluster has no record of'
    : `the field manager ${others.join(', ')}`;
}
