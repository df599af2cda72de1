import type {
  V1ConfigMap,
  V1Container,
  V1Deployment,
  V1EndpointSlice,
  V1Service,
  V1ServicePort,
} from '@kubernetes/client-node';
import type { Reader, TypeRef, Watch } from '../../contract/controller.js';
import type { Wire } from '../../author/kubernetes-types.js';
import { keepWithoutManagedFields } from '../../author/owned-children.js';
import { childrenFieldManager } from '../../contract/names.js';
import { objectKey, splitKey, type AnyObject } from '../../contract/object.js';
import {
  isAppliedBy,
  keepIdentity,
  keepStatus,
  managedFieldsOf,
  wasAppliedBy,
} from '../../values/projections.js';
import { resourceType, type ResourceType } from '../../contract/resource.js';
import { given } from '../common.js';
import { GROUP, KIND, portKey, type Protocol, type StreamIngress } from './spec.js';
import { configMapKey, isNginx, serviceKey, targetName } from './targets.js';
import type { NginxTarget, RouteVersion, Target, Targets } from './targets.js';
import { isMap, valueAt } from '../../values/json.js';

/** Applies the keys and ports of shared objects, and the children of a Gateway's. */
export const FIELD_MANAGER = childrenFieldManager(KIND);

export const GATEWAY_GROUP = 'gateway.networking.k8s.io';
export const LISTENER_SET = 'ListenerSet';

const services = resourceType({ apiVersion: 'v1', kind: 'Service' });
const configMaps = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });
const slices = resourceType({ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice' });
/** In the version that every Gateway API since 0.6 serves. */
const grants = resourceType({ apiVersion: `${GATEWAY_GROUP}/v1beta1`, kind: 'ReferenceGrant' });

/** ListenerSet, TCPRoute and UDPRoute, as they are written. */
export function gatewayTypes(routeVersion: RouteVersion): ResourceType[] {
  return [
    resourceType({ apiVersion: `${GATEWAY_GROUP}/v1`, kind: LISTENER_SET }),
    ...['TCPRoute', 'UDPRoute'].map((kind) =>
      resourceType({ apiVersion: `${GATEWAY_GROUP}/${routeVersion}`, kind }),
    ),
  ];
}

export type Watches = ReturnType<typeof watchesFor>;

/** Returns the watches; the keys are names of targets. Watches of two controllers share what they keep. */
export function watchesFor(type: ResourceType, targets: Targets) {
  const { all, crossNamespace, routeVersion } = targets;
  const nginx = all.filter(isNginx);
  const everyTarget = all.map(({ name }) => name);
  const mapsTo = (): readonly string[] => everyTarget;
  const controllers = nginx.flatMap(({ ingressNamespace, ingressController }) =>
    ingressController === undefined ? [] : objectKey(ingressNamespace, ingressController),
  );
  const grantWatch: Watch = { type: grants, readOnly: true, optional: true, keep: keepGrant, mapsTo };
  const keep = keepUpstream(crossNamespace === 'Annotation');
  return {
    crs: {
      ...{ type, keep: keepWithoutManagedFields },
      mapsTo: (cr) => [targetName(targets, (cr as unknown as StreamIngress).spec.className)],
    } satisfies Watch,
    upstreams: { type: services, readOnly: true, keep, mapsTo } satisfies Watch,
    /** None where annotations count instead. */
    grants: crossNamespace === 'ReferenceGrant' ? [grantWatch] : [],
    /** Services that open the ports of an ingress-nginx, each by its name. One may be an upstream too, of any target. */
    targetServices: nginx.map(({ ingressNamespace, ingressService }): Watch => ({
      ...{ type: services, keep: keepTarget, mapsTo },
      ...{ namespaces: [ingressNamespace], name: ingressService },
    })),
    slices: { type: slices, readOnly: true, keep: keepSlice, mapsTo } satisfies Watch,
    /** ConfigMaps that an ingress-nginx reads, each by its name. */
    configMaps: nginx.flatMap((target) =>
      [target.tcpServicesConfigMap, target.udpServicesConfigMap].map((name): Watch => ({
        ...{ type: configMaps, keep: keepConfigMap, mapsTo: () => [target.name] },
        ...{ namespaces: [target.ingressNamespace], name },
      })),
    ),
    /** Workloads whose arguments are checked, each once and by its name. */
    workloads: [...new Set(controllers)].map((key): Watch => {
      const { namespace = '', name: controller } = splitKey(key);
      const { name, ...type } = workload(controller);
      return {
        ...{ type: resourceType(type), readOnly: true, keep: keepArguments, mapsTo },
        ...{ namespaces: [namespace], name },
      };
    }),
    /** None without a Gateway. */
    children: (nginx.length < all.length ? gatewayTypes(routeVersion) : []).map((child): Watch => ({
      ...{ type: child, optional: true, writes: ['create', 'patch', 'delete'], mapsTo },
      keep: child.kind === LISTENER_SET ? keepStatus : keepRoute,
    })),
  };
}

function workload(text = '') {
  const { namespace: kind = '', name } = splitKey(text);
  return { apiVersion: 'apps/v1', kind, name };
}

/** Returns all custom resources of a target, or of a class that is none. */
export function resourcesOf(type: TypeRef, target: string, reader: Reader): readonly StreamIngress[] {
  return reader.mappedTo(type, target) as unknown as readonly StreamIngress[];
}

/** Returns the children of a custom resource of a Gateway: what was applied for it, under its own name. */
export function childrenOf(
  types: readonly ResourceType[],
  { metadata }: StreamIngress,
  reader: Reader,
): AnyObject[] {
  const { name, uid = '' } = metadata;
  const own = types.flatMap((type) => reader.controlledBy(type, uid, FIELD_MANAGER));
  return own.filter((child) => child.metadata.name === name);
}

/** State of the upstreams in the cluster. */
export interface Upstreams {
  service(key: string): KeptService | undefined;
  /** The ports of a Service behind which an endpoint is ready, by `portId`. */
  readyPorts(key: string): ReadonlySet<string>;
  /** Undefined where annotations count instead. */
  readonly permitted: Permitted | undefined;
}

/** Returns the Services of a namespace to which StreamIngresses of another one may lead; `*` is every one. */
export type Permitted = (namespace: string, from: string) => ReadonlySet<string>;

/** Reads each grant once for each namespace that asks, since there may be as many grants as custom resources. */
export function permittedBy(grants: readonly Grant[]): Permitted {
  const byNamespace = Map.groupBy(grants, ({ namespace }) => namespace);
  const known = new Map<string, ReadonlySet<string>>();
  return (namespace, own) => {
    const key = `${own}/${namespace}`;
    const found =
      known.get(key) ??
      new Set(byNamespace.get(namespace)?.flatMap(({ from, to }) => (from.includes(own) ? to : [])));
    known.set(key, found);
    return found;
  };
}

const NO_PORTS: ReadonlySet<string> = new Set();

/** @param withEndpoints false where it doesn't matter whether anything is ready */
export function upstreamsIn(
  { crossNamespace }: Targets,
  { name }: Target,
  reader: Reader,
  withEndpoints: boolean,
): Upstreams {
  const keptFor = (type: TypeRef): readonly unknown[] => reader.mappedTo(type, name);
  const ready = new Map<string, Set<string>>();
  for (const { service, readyPorts } of withEndpoints ? (keptFor(slices) as readonly KeptSlice[]) : []) {
    const known = ready.get(service) ?? new Set();
    ready.set(service, known);
    for (const port of readyPorts) known.add(port);
  }
  return {
    service: (key) => reader.get(services, key) as KeptService | undefined,
    readyPorts: (key) => ready.get(key) ?? NO_PORTS,
    permitted:
      crossNamespace === 'ReferenceGrant' ? permittedBy(keptFor(grants) as readonly Grant[]) : undefined,
  };
}

/** Projections of the shared objects of an ingress-nginx. */
export interface SharedState {
  readonly configMaps: Readonly<Record<Protocol, KeptConfigMap | undefined>>;
  readonly service: KeptTargetService | undefined;
}

export function sharedStateIn(target: NginxTarget, reader: Reader): SharedState {
  const map = (protocol: Protocol) =>
    reader.get(configMaps, configMapKey(target, protocol)) as KeptConfigMap | undefined;
  return {
    configMaps: { TCP: map('TCP'), UDP: map('UDP') },
    service: reader.get(services, serviceKey(target)) as KeptTargetService | undefined,
  };
}

/** Returns what the controller of a target reads: null where it isn't there, undefined where that isn't checked. */
export function argumentsIn(target: NginxTarget, reader: Reader): KeptArguments | null | undefined {
  if (!target.ingressController) return undefined;
  const { name, ...type } = workload(target.ingressController);
  const kept = reader.get(type, objectKey(target.ingressNamespace, name));
  return (kept as KeptArguments | undefined) ?? null;
}

/** Keeps what one function takes from an object beside what another leaves of it; nothing where the first takes nothing. */
function keeping(take: (object: never) => object | undefined, beside: (object: AnyObject) => AnyObject) {
  return (object: AnyObject): AnyObject | undefined => {
    const kept = take(object as never);
    return kept && { ...kept, ...beside(object) };
  };
}

type Live<T> = AnyObject & Wire<Pick<T, Exclude<keyof T, 'metadata' | 'apiVersion' | 'kind'>>>;

/** Projection of every Service, since any may be an upstream. */
export interface KeptService {
  readonly ports: readonly KeptPort[];
  /** Set where the Service stands for a host name, and has no endpoints of its own. */
  readonly external?: true;
  /** The namespaces of its annotation, each between commas: as one text, since any Service may name thousands. */
  readonly allowFrom?: string;
}

type KeptPort = Pick<Wire<V1ServicePort>, 'name' | 'port'> & { readonly protocol: string };

/**
 * On a Service: the namespaces whose StreamIngresses may lead to it, separated by commas, or `*`; read only in clusters
 * that have no ReferenceGrant, as the admin says.
 */
const ALLOW_FROM_ANNOTATION = `${GROUP}/allow-from`;

/** Maximum length of the annotation; beyond it, the annotation permits no namespace. */
const MAX_ALLOW_FROM = 20_000;

const keepUpstream = (readsAnnotation: boolean) =>
  keeping((service: Live<V1Service>) => serviceOf(service, readsAnnotation), keepIdentity);

function serviceOf(
  { metadata, spec: { type, ports = [] } = {} }: Live<V1Service>,
  readsAnnotation = true,
): KeptService {
  const allowed = readsAnnotation ? metadata.annotations?.[ALLOW_FROM_ANNOTATION] : undefined;
  const names = (text: string): string[] => text.split(',').map((name) => name.trim());
  return {
    ports: ports.map(({ protocol = 'TCP', ...port }) => ({ ...given(port, 'name', 'port'), protocol })),
    ...(type === 'ExternalName' && { external: true }),
    ...(allowed && allowed.length <= MAX_ALLOW_FROM && { allowFrom: `,${names(allowed).join()},` }),
  };
}

/** Projection of the Service that opens a target's ports. */
export interface KeptTargetService extends KeptService {
  /** Open ports by `portKey`. */
  readonly open: Readonly<Record<string, OpenPort>>;
  /** Whether something in it is ours. */
  readonly managed: boolean;
  /** Each an IP address or a host name, with what the load balancer says of single ports. */
  readonly addresses: readonly {
    readonly address: string;
    readonly errors: readonly { readonly port: number; readonly protocol: string; readonly error?: string }[];
  }[];
  /** The message of the condition `LoadBalancerPortsError`, where it holds. */
  readonly portsError?: string;
}

export type OpenPort = KeptPort & Pick<Wire<V1ServicePort>, 'targetPort'> & Holding;

const keepTarget = keeping(targetServiceOf, (object) => {
  const { status, ...rest } = keepStatus(object);
  return rest;
});

/** Fields of a port that matter to us; the node port, for one, is left to others. */
const PORT_FIELDS = ['.', 'f:name', 'f:port', 'f:protocol', 'f:targetPort'];

function targetServiceOf(object: Live<V1Service>): KeptTargetService {
  const { spec: { ports = [] } = {}, status: { loadBalancer = {}, conditions = [] } = {} } = object;
  const service = serviceOf(object);
  const open = service.ports.map((kept, index) => {
    const { port, protocol } = kept;
    const path = ['f:spec', 'f:ports', `k:${JSON.stringify({ port, protocol })}`];
    const holding = holdingOf(object, path, (fields) => PORT_FIELDS.some((field) => field in fields));
    return [portKey(port, protocol), { ...kept, ...given({ ...ports[index] }, 'targetPort'), ...holding }];
  });
  const failed = conditions.find(
    ({ type, status }) => type === 'LoadBalancerPortsError' && status === 'True',
  );
  return {
    ...service,
    open: Object.fromEntries(open) as KeptTargetService['open'],
    managed: wasAppliedBy(FIELD_MANAGER, object),
    addresses: (loadBalancer.ingress ?? []).map(({ ip, hostname, ports: reported = [] }) => ({
      address: ip ?? hostname ?? '',
      errors: reported.filter(({ error }) => error),
    })),
    ...(failed && { portsError: failed.message }),
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

const keepGrant = keeping(grantOf, keepIdentity);

/** Returns nothing for a ReferenceGrant that doesn't speak of StreamIngresses and Services. */
export function grantOf({ metadata, spec }: AnyObject): Grant | undefined {
  const { from = [], to = [] } = (spec ?? {}) as {
    readonly from?: readonly { group?: string; kind?: string; namespace?: string }[];
    readonly to?: readonly { group?: string; kind?: string; name?: string }[];
  };
  const ours = from.filter(({ group, kind }) => group === GROUP && kind === KIND);
  const permitted = to.filter(({ group, kind }) => (group ?? '') === '' && kind === 'Service');
  if (ours.length === 0 || permitted.length === 0) return undefined;
  return {
    namespace: metadata.namespace ?? '',
    from: ours.map(({ namespace = '' }) => namespace),
    to: permitted.map(({ name }) => name || '*'),
  };
}

/** Projection of a ConfigMap in which a target's ports are listed. */
export interface KeptConfigMap {
  readonly entries: Readonly<Record<string, KeptEntry>>;
  /** Whether something in it is ours. */
  readonly managed: boolean;
}

export interface KeptEntry extends Holding {
  readonly value: string;
}

const keepConfigMap = keeping((object: Live<V1ConfigMap>): KeptConfigMap => {
  const entries = Object.entries(object.data ?? {}).map(([key, value]) => [
    key,
    { value, ...holdingOf(object, ['f:data', `f:${key}`]) },
  ]);
  return {
    entries: Object.fromEntries(entries) as KeptConfigMap['entries'],
    managed: wasAppliedBy(FIELD_MANAGER, object),
  };
}, keepStatus);

/** Projection of an EndpointSlice: it stays the same while one of several pods comes or goes. */
interface KeptSlice {
  /** `namespace/name` of its Service. */
  readonly service: string;
  /** The ports at which at least one endpoint is ready, each by `portId`. */
  readonly readyPorts: readonly string[];
}

/** Keeps nothing of a slice that belongs to no Service. */
const keepSlice = keeping((slice: Live<V1EndpointSlice>): KeptSlice | undefined => {
  const { namespace = '', labels } = slice.metadata;
  const service = labels?.['kubernetes.io/service-name'];
  if (!service) return undefined;
  const { endpoints, ports } = slice as { [Name in 'endpoints' | 'ports']?: (typeof slice)[Name] | null };
  // One that says nothing is ready. https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/#ready
  const ready = (endpoints ?? []).some(({ conditions }) => conditions?.ready !== false);
  return { service: `${namespace}/${service}`, readyPorts: ready ? (ports ?? []).map(portId) : [] };
}, keepIdentity);

/** Identifies a port of a Service in its EndpointSlices: they have its name, but not its number. */
export function portId({ name = '', protocol = 'TCP' }: { name?: string; protocol?: string }): string {
  return `${name}/${protocol}`;
}

/** Backends of a TCPRoute or UDPRoute: a Service as `namespace/service`, anything else with its kind before. */
export type KeptRoute = AnyObject & { readonly backends: readonly string[] };

const keepRoute = keeping(({ metadata, spec }: AnyObject): Pick<KeptRoute, 'backends'> => {
  const { rules = [] } = (spec ?? {}) as {
    readonly rules?: readonly {
      readonly backendRefs?: readonly { group?: string; kind?: string; name: string; namespace?: string }[];
    }[];
  };
  const refs = rules.flatMap(({ backendRefs = [] }) => backendRefs);
  const own = metadata.namespace ?? '';
  const backends = refs.map(({ group = '', kind = 'Service', namespace = own, name }) => {
    const key = `${namespace}/${name}`;
    return group === '' && kind === 'Service' ? key : `${kind}.${group} ${key}`;
  });
  return { backends };
}, keepStatus);

/** The ConfigMaps that an ingress-nginx reads by its arguments, each as `namespace/name`; a missing one it doesn't read. */
export type KeptArguments = Readonly<Partial<Record<Protocol, string>>>;

/** Keeps the arguments of the containers of a Deployment or DaemonSet. */
const keepArguments = keeping(({ metadata, spec }: Live<V1Deployment>): KeptArguments => {
  const containers = spec?.template.spec?.containers ?? [];
  const found = (['TCP', 'UDP'] as const).map((protocol) => {
    const flag = `--${protocol.toLowerCase()}-services-configmap`;
    const values = containers.flatMap((each) => argumentOf(each, flag, metadata.namespace) || []);
    return [protocol, values.at(-1)] as const;
  });
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}, keepIdentity);

function argumentOf(
  { command = [], args = [], env = [] }: Wire<V1Container>,
  flag: string,
  namespace: string | undefined,
): string | undefined {
  const words = [...command, ...args];
  // The last one counts, as for ingress-nginx.
  const at = words.findLastIndex((word) => word === flag || word.startsWith(`${flag}=`));
  const value = words[at] === flag ? words[at + 1] : words[at]?.slice(flag.length + 1);
  // Variables are expanded as Kubernetes does it. The ingress-nginx chart writes `$(POD_NAMESPACE)`.
  return value?.replace(/\$\(([^)]+)\)/g, (whole, name: string) => {
    const variable = env.find((candidate) => candidate.name === name);
    const isNamespace = variable?.valueFrom?.fieldRef?.fieldPath === 'metadata.namespace';
    return (isNamespace ? namespace : variable?.value) ?? whole;
  });
}

/** Ownership of a part of an object. */
export interface Holding {
  readonly ours: boolean;
  /** The field managers of others that hold it or something in it. */
  readonly others: readonly string[];
}

/**
 * Finds the field managers of a part of an object.
 * @param path of `fieldsV1`, such as `f:data`, `f:9000`
 * @param counts whether it matters to us what another has there
 */
function holdingOf(
  object: AnyObject,
  path: readonly string[],
  counts: (fields: object) => boolean = () => true,
): Holding {
  const holders = managedFieldsOf(object).flatMap((entry) => {
    const fields = valueAt(entry.fieldsV1, path);
    return isMap(fields) ? [{ entry, fields }] : [];
  });
  const isOurs = ({ entry }: (typeof holders)[number]): boolean => isAppliedBy(FIELD_MANAGER, entry);
  const others = holders.filter((holder) => !isOurs(holder) && counts(holder.fields));
  return {
    ours: holders.some(isOurs),
    others: [...new Set(others.map(({ entry: { manager = 'unknown' } }) => manager))],
  };
}
