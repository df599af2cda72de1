import type { StructuralSchema } from '../../contract/crd.js';
import { OperatorError } from '../../contract/error.js';
import type { KindContext, KindFlag } from '../../contract/kind.js';
import type { FromSchema } from '../../author/typed-crd.js';
import { matching, oneOf, setOf, text } from '../common.js';
import type { Protocol, StreamIngress } from './spec.js';

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const OBJECT_NAME = '[a-z0-9]([-a-z0-9.]*[a-z0-9])?';
const WORKLOAD = `(Deployment|DaemonSet)/${OBJECT_NAME}`;

const targetSchema = {
  type: 'object',
  description: 'A proxy that opens ports.',
  required: ['name'],
  properties: {
    name: text('What a StreamIngress gives as its className.', 63, LABEL),
    kind: oneOf(
      'What opens the ports: an ingress-nginx, or a Gateway of the Gateway API.',
      ...(['IngressNginx', 'Gateway'] as const),
    ),
    ingressNamespace: text('The namespace of ingress-nginx, its Service and its ConfigMaps.', 63, LABEL),
    ingressService: text('The Service of ingress-nginx.', 63, LABEL),
    tcpServicesConfigMap: text('The ConfigMap with the TCP ports.', 253, OBJECT_NAME),
    udpServicesConfigMap: text('The ConfigMap with the UDP ports.', 253, OBJECT_NAME),
    ingressController: text(
      'The workload of ingress-nginx, e.g. Deployment/ingress-nginx-controller, if its arguments are to be looked at.',
      264,
      WORKLOAD,
    ),
    gateway: text('The Gateway, as namespace/name.', 317, `${LABEL}/${OBJECT_NAME}`),
    portRanges: setOf(
      'The ports that may be opened, each as a number or a range, e.g. 9000-9099.',
      { type: 'string', maxLength: 11, pattern: '^[0-9]{1,5}(-[0-9]{1,5})?$' },
      { maxItems: 64 },
    ),
    reservedPorts: setOf(
      'The ports that are never opened, in place of those at which ingress-nginx listens by default.',
      { type: 'integer', format: 'int32', minimum: 1, maximum: 65535 },
      { maxItems: 1024 },
    ),
    namespaces: setOf(
      'The namespaces whose StreamIngresses are served. All unless it is given.',
      text('', 63, LABEL),
      { maxItems: 1024 },
    ),
    maxListeners: {
      ...{ type: 'integer', format: 'int32', minimum: 1 },
      description:
        'The most ports that are open at once, as a load balancer may limit them. 1000 unless it is given.',
    },
    maxListenersPerNamespace: {
      ...{ type: 'integer', format: 'int32', minimum: 1 },
      description: 'The same for the StreamIngresses of one namespace. 100 unless it is given.',
    },
  },
} as const satisfies StructuralSchema;

/** Schema of the section `streamingress` of an admin's policy. */
export const policySchema = {
  type: 'object',
  description: 'The proxies that StreamIngresses may use, and what is allowed of each.',
  properties: {
    defaultClass: text(
      'The target of a StreamIngress without className. By default the only one, if there is one alone.',
      63,
      LABEL,
    ),
    targets: {
      type: 'array',
      maxItems: 64,
      description: 'The targets, beside the one that the flags describe.',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: targetSchema,
    },
    crossNamespace: oneOf(
      'How a namespace permits that others lead to its Services: by a ReferenceGrant, or, where the cluster has none, by an annotation on the Service.',
      ...(['ReferenceGrant', 'Annotation'] as const),
    ),
    routeVersion: oneOf(
      'The version in which TCPRoute and UDPRoute are written. v1 unless it is given.',
      ...(['v1', 'v1alpha2'] as const),
    ),
  },
} as const satisfies StructuralSchema;

export type StreamIngressPolicy = FromSchema<typeof policySchema>;

export type RouteVersion = NonNullable<StreamIngressPolicy['routeVersion']>;

/** A target as an admin writes it. */
export type TargetProps = FromSchema<typeof targetSchema>;

/** A target in which these fields are known. */
type Described<Kind, Fields extends keyof TargetProps> = TargetProps &
  Required<Pick<TargetProps, Fields | 'reservedPorts' | keyof typeof BOUNDS>> & { readonly kind: Kind };

/** An ingress-nginx: two ConfigMaps with what it forwards, and the Service with its ports. */
export type NginxTarget = Described<'IngressNginx', keyof typeof DEFAULTS>;

/** A Gateway: every port is a ListenerSet and a route of its own. */
export type GatewayTarget = Described<'Gateway', 'gateway'>;

/**
 * A proxy that opens ports, as the admin describes it. A custom resource chooses one by name and never says what
 * it consists of.
 */
export type Target = NginxTarget | GatewayTarget;

export interface Targets extends Required<Pick<StreamIngressPolicy, 'crossNamespace' | 'routeVersion'>> {
  readonly all: readonly Target[];
  /** The one for custom resources without a class. @default - there is none, they have to name one */
  readonly defaultName?: string;
}

/**
 * Ports at which ingress-nginx listens itself: HTTP, HTTPS, TLS passthrough, health, default server, profiler, status and
 * stream configuration, and its admission webhook at 8443, which it doesn't look for: a second listener there makes
 * every reload fail.
 * @see https://github.com/kubernetes/ingress-nginx/blob/main/internal/ingress/controller/controller.go
 */
export const NGINX_RESERVED_PORTS: readonly number[] = [80, 443, 442, 8181, 8443, 10245, 10246, 10247, 10254];

/** The name of the target that the flags describe. */
export const DEFAULT_TARGET = 'default';

const DEFAULTS = {
  kind: 'IngressNginx',
  ingressNamespace: 'ingress-nginx',
  ingressService: 'ingress-nginx-controller',
  tcpServicesConfigMap: 'tcp-services',
  udpServicesConfigMap: 'udp-services',
  reservedPorts: NGINX_RESERVED_PORTS,
} as const;

/**
 * Bounds of a target. On a Service that has node ports, each port takes one of the 2,768 of the whole cluster, and where there is
 * none left the API server refuses all that is to be opened.
 */
const BOUNDS = { maxListeners: 1000, maxListenersPerNamespace: 100 } as const;

/** In place of a target's name where no class is named and there is no default; no target is called so. */
const NO_TARGET = '-';

/** Returns the name of the target that a class stands for, whether there is one of that name or not. */
export function targetName({ defaultName = NO_TARGET }: Targets, className: string | undefined): string {
  return className ?? defaultName;
}

/**
 * Returns those for which a target has no room, each with the reason. What is open stays open, also where an older one would
 * come in, or a bound was lowered.
 * @param wanted those whose port is to be open, the oldest first; one that only waits takes no place
 * @param isOpen for this custom resource: the port of another one that has gone would be room beyond the bound of a namespace
 */
export function beyondBounds(
  target: Target,
  wanted: readonly StreamIngress[],
  isOpen: (cr: StreamIngress) => boolean,
): ReadonlyMap<StreamIngress, string> {
  const { name, maxListeners, maxListenersPerNamespace } = target;
  const beyond = new Map<StreamIngress, string>();
  const taken = new Map<string, number>();
  let total = 0;
  for (const cr of [...wanted.filter(isOpen), ...wanted.filter((other) => !isOpen(other))]) {
    const { namespace = '' } = cr.metadata;
    const own = taken.get(namespace) ?? 0;
    const [most, field] =
      own >= maxListenersPerNamespace
        ? [`${maxListenersPerNamespace} ports for each namespace`, 'maxListenersPerNamespace']
        : [`${maxListeners} ports`, 'maxListeners'];
    const isFull = own >= maxListenersPerNamespace || total >= maxListeners;
    if (isFull && !isOpen(cr)) {
      const message = `the target ${name} opens ${most}, which are taken; this one is opened once another is closed, or an admin raises ${field}`;
      beyond.set(cr, message);
      continue;
    }
    taken.set(namespace, own + 1);
    // At a Gateway, users can open some themselves: beyond the bound of their namespace these take no room of others.
    if (own < maxListenersPerNamespace || isNginx(target)) total++;
  }
  return beyond;
}

/** `namespace/name` of the ConfigMap for a protocol. */
export function configMapKey(target: NginxTarget, protocol: Protocol): string {
  const { ingressNamespace, tcpServicesConfigMap, udpServicesConfigMap } = target;
  return `${ingressNamespace}/${protocol === 'TCP' ? tcpServicesConfigMap : udpServicesConfigMap}`;
}

/** `namespace/name` of the Service that opens the ports. */
export function serviceKey({ ingressNamespace, ingressService }: NginxTarget): string {
  return `${ingressNamespace}/${ingressService}`;
}

export function isNginx(target: Target): target is NginxTarget {
  return target.kind === 'IngressNginx';
}

/** Reads `9000` or `9000-9099`; both ends are in it. */
export function portRange(range: string): { readonly from: number; readonly to: number } {
  const [from = 0, to = from] = range.split('-').map(Number);
  return { from, to };
}

const objectName = matching(OBJECT_NAME, 253, 'the name of an object; give a name alone');

/** The options that describe the target `default`, each with the field that it gives. */
const FLAGS = {
  ingressNamespace: {
    ...{ ...objectName, name: '--ingress-namespace', value: 'namespace' },
    description: 'where ingress-nginx is, whose ports StreamIngresses open (default: ingress-nginx)',
  },
  ingressService: {
    ...{ ...objectName, name: '--ingress-service', value: 'name' },
    description: 'its Service (default: ingress-nginx-controller)',
  },
  tcpServicesConfigMap: {
    ...{ ...objectName, name: '--tcp-services-configmap', value: 'name' },
    description: 'its ConfigMap with the TCP ports (default: tcp-services)',
  },
  udpServicesConfigMap: {
    ...{ ...objectName, name: '--udp-services-configmap', value: 'name' },
    description: 'its ConfigMap with the UDP ports (default: udp-services)',
  },
  ingressController: {
    ...matching(WORKLOAD, 264, 'a workload; give Deployment/name or DaemonSet/name'),
    ...{ name: '--ingress-controller', value: 'kind/name', forms: ['Deployment/*', 'DaemonSet/*'] },
    description: 'its Deployment or DaemonSet, to check that it reads these ConfigMaps (default: no check)',
  },
} as const satisfies Partial<Record<keyof TargetProps, KindFlag>>;

export const flags: readonly KindFlag[] = Object.values(FLAGS);

/**
 * Reads the targets that flags and policy describe. The flags' is there where a flag is given, and where the policy lists
 * none.
 * @throws OperatorError `InvalidInput`, with everything that is wrong
 */
export function targetsIn({ flags: values = {}, policy }: Pick<KindContext, 'flags' | 'policy'>): Targets {
  const {
    targets: listed = [],
    defaultClass,
    crossNamespace = 'ReferenceGrant',
    routeVersion = 'v1',
  } = (policy ?? {}) as StreamIngressPolicy;
  const fields = Object.entries(FLAGS).flatMap(([field, { name }]) =>
    values[name] === undefined ? [] : [[field, String(values[name])] as const],
  );
  const byFlags = fields.length > 0 || listed.length === 0;
  const props = [...(byFlags ? [{ name: DEFAULT_TARGET, ...Object.fromEntries(fields) }] : []), ...listed];
  const all = props.map((given): Target =>
    given.kind === 'Gateway'
      ? ({ reservedPorts: [], ...BOUNDS, ...given } as unknown as GatewayTarget)
      : ({ ...DEFAULTS, ...BOUNDS, ...given } as NginxTarget),
  );
  const problems = [...props.flatMap(problemsOf), ...duplicates(all)];
  if (defaultClass !== undefined && all.every(({ name }) => name !== defaultClass)) {
    const known = all.map(({ name }) => name).join(', ');
    problems.push(`defaultClass: there is no target ${defaultClass}; the targets are ${known}`);
  }
  if (problems.length > 0) throw new OperatorError({ reason: 'InvalidInput', message: problems.join('. ') });
  // An admin who describes a target by flags means it to be the default.
  const defaultName = defaultClass ?? (fields.length > 0 || all.length === 1 ? all[0]?.name : undefined);
  return { all, crossNamespace, routeVersion, ...(defaultName !== undefined && { defaultName }) };
}

/** Returns what is wrong with a target that is right by the schema, a sentence for each. */
function problemsOf(target: TargetProps): string[] {
  const { name, kind = 'IngressNginx', portRanges = [] } = target;
  const ofOtherKind =
    kind === 'Gateway' ? (Object.keys(FLAGS) as (keyof typeof FLAGS)[]) : (['gateway'] as const);
  const problems = ofOtherKind
    .filter((field) => target[field] !== undefined)
    .map((field) => `${field} says nothing about a target of the kind ${kind}; remove it, or change kind`);
  if (kind === 'Gateway' && target.gateway === undefined)
    problems.push('gateway is missing; give the Gateway as namespace/name');
  const { tcpServicesConfigMap: tcp, udpServicesConfigMap: udp } = { ...DEFAULTS, ...target };
  if (kind === 'IngressNginx' && tcp === udp)
    problems.push(
      `${tcp} is the ConfigMap of both TCP and UDP; give each its own, since ingress-nginx reads two`,
    );
  for (const range of portRanges) {
    const { from, to } = portRange(range);
    if (!(from >= 1 && from <= to && to <= 65535))
      problems.push(
        `portRanges: "${range}" is no range; give a port from 1 to 65535, or two, the lower first`,
      );
  }
  return problems.map((problem) => `target ${name}: ${problem}`);
}

/** Two targets with one field manager would take each other's ports off an object that they share. */
function duplicates(targets: readonly Target[]): string[] {
  const seen = new Map<string, string>();
  return targets.flatMap((target) => {
    const names = new Set([`target ${target.name}`]);
    if (isNginx(target)) {
      names.add(`Service ${serviceKey(target)}`);
      for (const protocol of ['TCP', 'UDP'] as const)
        names.add(`ConfigMap ${configMapKey(target, protocol)}`);
    }
    return [...names].flatMap((name) => {
      const other = seen.get(name);
      seen.set(name, target.name);
      return other === undefined
        ? []
        : [`${name} is there twice, in ${other} and ${target.name}; give it to one alone`];
    });
  });
}
