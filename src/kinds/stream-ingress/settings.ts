import { OperatorError } from '../../contract/error.js';
import { targetProblems } from './check-targets.js';
import type { StreamIngressPolicy, TargetProps } from './policy.js';
import { NGINX_RESERVED_PORTS } from './targets.js';
import type {
  ControllerRef,
  GatewayTarget,
  Limits,
  NginxTarget,
  PortRange,
  Target,
  Targets,
} from './targets.js';

/** The flags of the command; they describe the target `default`. */
export interface TargetFlags {
  /** @default ingress-nginx */
  readonly ingressNamespace?: string;
  /** @default ingress-nginx-controller */
  readonly ingressService?: string;
  /** @default tcp-services */
  readonly tcpServicesConfigmap?: string;
  /** @default udp-services */
  readonly udpServicesConfigmap?: string;
  /** `Deployment/name` or `DaemonSet/name`. @default - its arguments aren't looked at */
  readonly ingressController?: string;
}

/** The name of the target that the flags describe. */
export const DEFAULT_TARGET = 'default';

const DEFAULTS = {
  ingressNamespace: 'ingress-nginx',
  ingressService: 'ingress-nginx-controller',
  tcpServicesConfigMap: 'tcp-services',
  udpServicesConfigMap: 'udp-services',
};

/**
 * The targets that flags and policy describe. The flags' is there where a flag is given, and where the policy lists
 * none.
 * @throws OperatorError `InvalidInput`, with everything that is wrong
 */
export function targetsOf(flags: TargetFlags, policy: StreamIngressPolicy = {}): Targets {
  const listed = policy.targets ?? [];
  const props = isGiven(flags) || listed.length === 0 ? [fromFlags(flags), ...listed] : listed;
  const problems = targetProblems(props, policy.defaultClass);
  if (problems.length > 0) throw new OperatorError({ reason: 'InvalidInput', message: problems.join('. ') });
  const all = props.map(targetOf);
  const defaultName = policy.defaultClass ?? onlyName(all, isGiven(flags));
  const { crossNamespace = 'ReferenceGrant', routeVersion = 'v1' } = policy;
  return { all, crossNamespace, routeVersion, ...(defaultName !== undefined && { defaultName }) };
}

function isGiven(flags: TargetFlags): boolean {
  return Object.values(flags).some((value) => value !== undefined);
}

/** Who describes a target by flags means it to be the default. */
function onlyName(all: readonly Target[], flagsGiven: boolean): string | undefined {
  return flagsGiven || all.length === 1 ? all[0]?.name : undefined;
}

function fromFlags(flags: TargetFlags): TargetProps {
  const { ingressNamespace, ingressService, tcpServicesConfigmap, udpServicesConfigmap, ingressController } =
    flags;
  return {
    name: DEFAULT_TARGET,
    ...(ingressNamespace !== undefined && { ingressNamespace }),
    ...(ingressService !== undefined && { ingressService }),
    ...(tcpServicesConfigmap !== undefined && { tcpServicesConfigMap: tcpServicesConfigmap }),
    ...(udpServicesConfigmap !== undefined && { udpServicesConfigMap: udpServicesConfigmap }),
    ...(ingressController !== undefined && { ingressController }),
  };
}

function targetOf(props: TargetProps): Target {
  return props.kind === 'Gateway' ? gatewayTarget(props) : nginxTarget(props);
}

function nginxTarget(props: TargetProps): NginxTarget {
  const { ingressNamespace, ingressService, tcpServicesConfigMap, udpServicesConfigMap } = {
    ...DEFAULTS,
    ...props,
  };
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
export function portRange(text: string): PortRange {
  const [from = 0, to = from] = text.split('-').map(Number);
  return { from, to };
}
