import { OperatorError } from '../../contract/error.js';
import type { CustomResourceProps } from '../../contract/kind.js';
import { fullImageName, isWithin } from './image-name.js';
import { features } from './policy.js';
import type { AppServicePolicy } from './policy.js';
import { serviceType } from './service.js';
import type { AppServiceSpec, RouteParent, SecurityProfile } from './spec.js';

type Props = CustomResourceProps<AppServiceSpec>;

interface Violation {
  readonly path: readonly (string | number)[];
  /** What is wrong, with the value. */
  readonly message: string;
  readonly remedy: string;
}

type Rule = (policy: AppServicePolicy, props: Props) => readonly Violation[];

/**
 * Holds an AppService against the admin's policy, and names everything that it forbids at once.
 * @throws OperatorError `PolicyDenied`, with the path of the first
 */
export function checkPolicy(props: Props): void {
  if (props.policy === undefined) return;
  const violations = RULES.flatMap((rule) => rule(props.policy as AppServicePolicy, props));
  const [first] = violations;
  if (!first) return;
  throw new OperatorError({
    reason: 'PolicyDenied',
    path: first.path,
    message: violations.map(({ path, message, remedy }) => `${join(path)}: ${message}; ${remedy}`).join('. '),
  });
}

const STRENGTH: Readonly<Record<SecurityProfile, number>> = { Baseline: 1, Restricted: 2 };

const RULES: readonly Rule[] = [
  ({ securityProfile: least }, { spec: { securityProfile: own } }) => {
    if (!least || (own && STRENGTH[own] >= STRENGTH[least])) return [];
    return [
      {
        path: ['spec', 'securityProfile'],
        message: `${own ? `"${own}" is` : 'is not set, which is'} less than the policy's securityProfile, ${least}`,
        remedy: `set it to ${least}`,
      },
    ];
  },

  ({ serviceTypes }, { spec }) => {
    const type = serviceType(spec);
    if (!serviceTypes || !type || serviceTypes.includes(type)) return [];
    return [
      {
        path: ['spec', 'service', 'type'],
        message: `"${type}"${spec.service?.type ? '' : ', the default,'} is not in the policy's serviceTypes`,
        remedy: giveOneOf(serviceTypes),
      },
    ];
  },

  ({ imageRegistries }, { spec: { image } }) => {
    if (!imageRegistries) return [];
    const name = fullImageName(image);
    if (name !== undefined && imageRegistries.some((registry) => isWithin(name, registry))) return [];
    const what = name === undefined ? 'is not the name of an image' : `comes from ${name}, which`;
    return [
      {
        path: ['spec', 'image'],
        message: `"${image}" ${what}${name === undefined ? ', and' : ''} is not in the policy's imageRegistries`,
        remedy:
          imageRegistries.length > 0 ? `take one from ${imageRegistries.join(', ')}` : 'none is allowed',
      },
    ];
  },

  // The operator may write HTTPRoutes where the user may not.
  ({ gateways, hostnames }, { spec: { route } }) => {
    const missing = [...(gateways ? [] : ['gateways']), ...(hostnames ? [] : ['hostnames'])];
    if (!route || missing.length === 0) return [];
    return [
      {
        path: ['spec', 'route'],
        message: `is used, and the policy has no ${missing.join(' and no ')} for routes`,
        remedy: `remove it, or ask an admin to list them in the operator's policy (--policy), below appservice`,
      },
    ];
  },

  ({ gateways }, { spec: { route }, metadata: { namespace } }) => {
    if (!gateways) return [];
    return (route?.parentRefs ?? []).flatMap((parent, index) => {
      const gateway = fullGatewayName(parent, namespace);
      if (gateways.some((pattern) => matches(pattern, gateway))) return [];
      const unknown = (parent.namespace ?? namespace) ? '' : ' in an unknown namespace';
      return [
        {
          path: ['spec', 'route', 'parentRefs', index],
          message: `"${unknown ? parent.name : gateway.join('/')}"${unknown} is not in the policy's gateways`,
          remedy: giveOneOf(gateways),
        },
      ];
    });
  },

  ({ hostnames }, { spec: { route } }) => {
    if (!hostnames || !route || hostnames.includes('*')) return [];
    const remedy = giveOneOf(hostnames);
    const path = ['spec', 'route', 'hostnames'];
    const asked = route.hostnames ?? [];
    if (asked.length === 0)
      return [
        {
          path,
          message: "is not set, which is every hostname, and the policy's hostnames don't have them all",
          remedy,
        },
      ];
    return asked.flatMap((hostname, index) =>
      hostnames.some(
        (pattern) =>
          hostname === pattern || (pattern.startsWith('*.') && hostname.endsWith(pattern.slice(1))),
      )
        ? []
        : [{ path: [...path, index], message: `"${hostname}" is not in the policy's hostnames`, remedy }],
    );
  },

  ({ maxSize }, { spec: { size, autoscaling } }) => {
    if (maxSize === undefined) return [];
    const sizes = [
      { path: ['spec', 'size'], value: size },
      { path: ['spec', 'autoscaling', 'maxReplicas'], value: autoscaling?.maxReplicas ?? 0 },
    ];
    return sizes
      .filter(({ value }) => value > maxSize)
      .map(({ path, value }) => ({
        path,
        message: `${value} is more than the policy's maxSize, ${maxSize}`,
        remedy: `give ${maxSize} or less`,
      }));
  },

  ({ features: open, securityProfile }, { spec }) => {
    if (!open) return [];
    // What one rule asks for, another can't close.
    const allowed = securityProfile ? [...open, 'securityProfile'] : open;
    return features
      .filter((feature) => spec[feature] !== undefined && !allowed.includes(feature))
      .map((feature) => ({
        path: ['spec', feature],
        message: `${shown(spec[feature])}is used, and is not in the policy's features`,
        remedy: 'remove it, or ask an admin to allow it',
      }));
  },
];

/** Namespace and name; a namespace that isn't known, as in a file that names none, is only met by a `*`. */
function fullGatewayName({ name, namespace }: RouteParent, own = ''): readonly [string, string] {
  return [namespace ?? own, name];
}

function matches(pattern: string, names: readonly [string, string]): boolean {
  return pattern.split('/').every((part, index) => part === '*' || part === names[index]);
}

/** Of lists and maps, the path says enough, and what is in them may be confidential. */
function shown(value: unknown): string {
  return typeof value === 'object' ? '' : `${JSON.stringify(value)} `;
}

function giveOneOf(allowed: readonly string[]): string {
  return allowed.length > 0 ? `give one of ${allowed.join(', ')}` : 'none is allowed';
}

function join(path: Violation['path']): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
    .join('')
    .slice(1);
}
