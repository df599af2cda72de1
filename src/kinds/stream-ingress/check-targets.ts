import type { TargetProps } from './policy.js';

const NGINX_ONLY = [
  'ingressNamespace',
  'ingressService',
  'tcpServicesConfigMap',
  'udpServicesConfigMap',
  'ingressController',
] as const;
const GATEWAY_ONLY = ['gateway'] as const;

const DNS_NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

/** Everything that is wrong with targets which are right by the schema, a sentence for each. */
export function targetProblems(targets: readonly TargetProps[], defaultClass?: string): string[] {
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
    return name !== undefined && (name.length > 253 || !DNS_NAME.test(name));
  });
  const controller = target.ingressController;
  return [
    ...wrong.map(
      (field) => `${field}: "${target[field] ?? ''}" names no object; give a name alone, without namespace`,
    ),
    ...(controller !== undefined &&
    !/^(Deployment|DaemonSet)\/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(controller)
      ? [`ingressController: "${controller}" names no workload; give Deployment/name or DaemonSet/name`]
      : []),
  ];
}

function oneConfigMap({ kind, tcpServicesConfigMap: tcp, udpServicesConfigMap: udp }: TargetProps): string[] {
  if (kind === 'Gateway' || (tcp ?? 'tcp-services') !== (udp ?? 'udp-services')) return [];
  return [
    `${tcp ?? udp ?? ''} is the ConfigMap of both TCP and UDP; give each its own, since ingress-nginx reads two`,
  ];
}

function rangeProblem(text: string): string[] {
  const [from = 0, to = from] = text.split('-').map(Number);
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
  const namespace = target.ingressNamespace ?? 'ingress-nginx';
  const configMaps = [
    target.tcpServicesConfigMap ?? 'tcp-services',
    target.udpServicesConfigMap ?? 'udp-services',
  ];
  return [
    `target ${target.name}`,
    `Service ${namespace}/${target.ingressService ?? 'ingress-nginx-controller'}`,
    ...new Set(configMaps.map((name) => `ConfigMap ${namespace}/${name}`)),
  ];
}

function unknownDefault(targets: readonly TargetProps[], defaultClass: string | undefined): string[] {
  if (defaultClass === undefined || targets.some(({ name }) => name === defaultClass)) return [];
  const known = targets.map(({ name }) => name).join(', ');
  return [`defaultClass: there is no target ${defaultClass}; the targets are ${known}`];
}
