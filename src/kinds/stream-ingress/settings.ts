import { OperatorError } from '../../contract/error.js';
import type { FlagValues, KindFlag, KindContext } from '../../contract/kind.js';
import { NGINX_RESERVED_PORTS } from './targets.js';
import type {
  ControllerRef,
  GatewayTarget,
  Limits,
  NginxTarget,
  PortRange,
  StreamIngressPolicy,
  Target,
  TargetProps,
  Targets,
} from './targets.js';

const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
const WORKLOAD = /^(Deployment|DaemonSet)\/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

const nameSchema = { type: 'string', maxLength: 253, pattern: NAME.source } as const;

const isName = (value: string): boolean => NAME.test(value) && value.length <= 253;

const name = (value: string): string | undefined =>
  isName(value) ? undefined : `"${value}" is not the name of an object; give a name alone`;

/** The options that describe the target `default`. */
export const flags: readonly KindFlag[] = [
  {
    ...{ name: '--ingress-namespace', value: 'namespace', check: name, schema: nameSchema },
    description: 'where ingress-nginx is, whose ports StreamIngresses open (default: ingress-nginx)',
  },
  {
    ...{ name: '--ingress-service', value: 'name', check: name, schema: nameSchema },
    description: 'its Service (default: ingress-nginx-controller)',
  },
  {
    ...{ name: '--tcp-services-configmap', value: 'name', check: name, schema: nameSchema },
    description: 'its ConfigMap with the TCP ports (default: tcp-services)',
  },
  {
    ...{ name: '--udp-services-configmap', value: 'name', check: name, schema: nameSchema },
    description: 'its ConfigMap with the UDP ports (default: udp-services)',
  },
  {
    ...{ name: '--ingress-controller', value: 'kind/name' },
    schema: { type: 'string', pattern: WORKLOAD.source },
    forms: ['Deployment/*', 'DaemonSet/*'],
    description: 'its Deployment or DaemonSet, to check that it reads these ConfigMaps (default: no check)',
    check: (value) =>
      WORKLOAD.test(value)
        ? undefined
        : `"${value}" is not a workload; give Deployment/name or DaemonSet/name`,
  },
];

/** The name of the target that the flags describe. */
export const DEFAULT_TARGET = 'default';

const DEFAULTS = {
  ingressNamespace: 'ingress-nginx',
  ingressService: 'ingress-nginx-controller',
  tcpServicesConfigMap: 'tcp-services',
  udpServicesConfigMap: 'udp-services',
};

function withDefaults(props: TargetProps): TargetProps & typeof DEFAULTS {
  return { ...DEFAULTS, ...props };
}

/** The fields of the target `default`, each with the flag that gives it. */
const FLAGS = {
  ingressNamespace: '--ingress-namespace',
  ingressService: '--ingress-service',
  tcpServicesConfigMap: '--tcp-services-configmap',
  udpServicesConfigMap: '--udp-services-configmap',
  ingressController: '--ingress-controller',
} as const satisfies Partial<Record<keyof TargetProps, string>>;

/**
 * The targets that flags and policy describe. The flags' is there where a flag is given, and where the policy lists
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
  const flags = fieldsIn(values);
  const flagsGiven = Object.keys(flags).length > 0;
  const props = flagsGiven || listed.length === 0 ? [{ name: DEFAULT_TARGET, ...flags }, ...listed] : listed;
  const problems = targetProblems(props, defaultClass);
  if (problems.length > 0) throw new OperatorError({ reason: 'InvalidInput', message: problems.join('. ') });
  const all = props.map(targetOf);
  // Who describes a target by flags means it to be the default.
  const defaultName = defaultClass ?? (flagsGiven || all.length === 1 ? all[0]?.name : undefined);
  return { all, crossNamespace, routeVersion, ...(defaultName !== undefined && { defaultName }) };
}

function fieldsIn(values: FlagValues): Partial<Record<keyof typeof FLAGS, string>> {
  const given = Object.entries(FLAGS).flatMap(([field, flag]) => {
    const value = values[flag];
    return value === undefined ? [] : [[field, String(value)] as const];
  });
  return Object.fromEntries(given);
}

function targetOf(props: TargetProps): Target {
  return props.kind === 'Gateway' ? gatewayTarget(props) : nginxTarget(props);
}

function nginxTarget(props: TargetProps): NginxTarget {
  const { ingressNamespace, ingressService, tcpServicesConfigMap, udpServicesConfigMap } =
    withDefaults(props);
  return {
    kind: 'IngressNginx',
    name: props.name,
    namespace: ingressNamespace,
    service: ingressService,
    tcpConfigMap: tcpServicesConfigMap,
    udpConfigMap: udpServicesConfigMap,
    ...(props.ingressController !== undefined && { controller: controllerRef(props.ingressController) }),
    ...limits(props, NGINX_RESERVED_PORTS),
  };
}

function gatewayTarget(props: TargetProps): GatewayTarget {
  const [namespace = '', name = ''] = (props.gateway ?? '').split('/');
  return {
    kind: 'Gateway',
    name: props.name,
    gateway: { namespace, name },
    ...limits(props, []),
  };
}

function limits(props: TargetProps, reserved: readonly number[]): Limits {
  const { portRanges, namespaces, maxListeners } = props;
  return {
    reservedPorts: props.reservedPorts ?? reserved,
    ...(portRanges && { portRanges: portRanges.map(portRange) }),
    ...(namespaces && { namespaces }),
    ...(maxListeners !== undefined && { maxListeners }),
  };
}

function controllerRef(text: string): ControllerRef {
  const [kind, name = ''] = text.split('/');
  return { kind: kind === 'DaemonSet' ? kind : 'Deployment', name };
}

/** `9000` or `9000-9099`. */
function portRange(text: string): PortRange {
  const [from = 0, to = from] = text.split('-').map(Number);
  return { from, to };
}

const NGINX_ONLY = [
  'ingressNamespace',
  'ingressService',
  'tcpServicesConfigMap',
  'udpServicesConfigMap',
  'ingressController',
] as const;
const GATEWAY_ONLY = ['gateway'] as const;

/** Everything that is wrong with targets which are right by the schema, a sentence for each. */
function targetProblems(targets: readonly TargetProps[], defaultClass?: string): string[] {
  return [
    ...targets.flatMap((target) => problemsOf(target).map((problem) => `target ${target.name}: ${problem}`)),
    ...twice(targets),
    ...unknownDefault(targets, defaultClass),
  ];
}

function problemsOf(target: TargetProps): string[] {
  const kind = target.kind ?? 'IngressNginx';
  const foreign = (kind === 'Gateway' ? NGINX_ONLY : GATEWAY_ONLY).filter(
    (field) => target[field] !== undefined,
  );
  return [
    ...foreign.map(
      (field) => `${field} says nothing about a target of the kind ${kind}; remove it, or change kind`,
    ),
    ...(kind === 'Gateway' && target.gateway === undefined
      ? ['gateway is missing; give the Gateway as namespace/name']
      : []),
    ...names(target),
    ...oneConfigMap(target),
    ...(target.portRanges ?? []).flatMap(rangeProblem),
  ];
}

/** Flags come without a schema. */
function names(target: TargetProps): string[] {
  const wrong = NGINX_ONLY.slice(0, 4).filter((field) => {
    const name = target[field];
    return name !== undefined && !isName(name);
  });
  const controller = target.ingressController;
  return [
    ...wrong.map(
      (field) => `${field}: "${target[field] ?? ''}" names no object; give a name alone, without namespace`,
    ),
    ...(controller !== undefined && !WORKLOAD.test(controller)
      ? [`ingressController: "${controller}" names no workload; give Deployment/name or DaemonSet/name`]
      : []),
  ];
}

function oneConfigMap(target: TargetProps): string[] {
  const { tcpServicesConfigMap: tcp, udpServicesConfigMap: udp } = withDefaults(target);
  if (target.kind === 'Gateway' || tcp !== udp) return [];
  return [`${tcp} is the ConfigMap of both TCP and UDP; give each its own, since ingress-nginx reads two`];
}

function rangeProblem(text: string): string[] {
  const { from, to } = portRange(text);
  const valid = from >= 1 && from <= to && to <= 65535;
  return valid
    ? []
    : [`portRanges: "${text}" is no range; give a port from 1 to 65535, or two, the lower first`];
}

/** Two targets with one field manager would take each other's ports off an object that they share. */
function twice(targets: readonly TargetProps[]): string[] {
  const seen = new Map<string, string>();
  return targets.flatMap((target) =>
    sharedNames(target).flatMap((name) => {
      const other = seen.get(name);
      seen.set(name, target.name);
      return other === undefined
        ? []
        : [`${name} is there twice, in ${other} and ${target.name}; give it to one alone`];
    }),
  );
}

function sharedNames(target: TargetProps): string[] {
  if (target.kind === 'Gateway') return [`target ${target.name}`];
  const { ingressNamespace, ingressService, tcpServicesConfigMap, udpServicesConfigMap } =
    withDefaults(target);
  return [
    `target ${target.name}`,
    `Service ${ingressNamespace}/${ingressService}`,
    ...new Set(
      [tcpServicesConfigMap, udpServicesConfigMap].map((map) => `ConfigMap ${ingressNamespace}/${map}`),
    ),
  ];
}

function unknownDefault(targets: readonly TargetProps[], defaultClass: string | undefined): string[] {
  if (defaultClass === undefined || targets.some(({ name }) => name === defaultClass)) return [];
  const known = targets.map(({ name }) => name).join(', ');
  return [`defaultClass: there is no target ${defaultClass}; the targets are ${known}`];
}
