import type { KindContext } from '../../contract/kind.js';
import type { FlagValues, KindFlag } from '../../contract/kind-flag.js';
import type { StreamIngressPolicy } from './policy.js';
import { targetsOf } from './settings.js';
import type { TargetFlags } from './settings.js';
import type { Targets } from './targets.js';

const NAME = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
const WORKLOAD = /^(Deployment|DaemonSet)\/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

const nameSchema = { type: 'string', maxLength: 253, pattern: NAME.source } as const;

const name = (value: string): string | undefined =>
  NAME.test(value) && value.length <= 253
    ? undefined
    : `"${value}" is not the name of an object; give a name alone`;

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

/** @throws OperatorError `InvalidInput` where flags and policy describe no targets that could work */
export function targetsIn({ flags: values = {}, policy }: Pick<KindContext, 'flags' | 'policy'>): Targets {
  return targetsOf(flagsIn(values), policy as StreamIngressPolicy | undefined);
}

const MEMBERS: Readonly<Record<keyof TargetFlags, string>> = {
  ingressNamespace: '--ingress-namespace',
  ingressService: '--ingress-service',
  tcpServicesConfigmap: '--tcp-services-configmap',
  udpServicesConfigmap: '--udp-services-configmap',
  ingressController: '--ingress-controller',
};

function flagsIn(values: FlagValues): TargetFlags {
  const given = Object.entries(MEMBERS).flatMap(([member, flag]) => {
    const value = values[flag];
    return value === undefined ? [] : [[member, String(value)] as const];
  });
  return Object.fromEntries(given);
}
