import type { StructuralSchema } from '../../contract/crd.js';
import { OperatorError } from '../../contract/error.js';
import type { CustomResourceProps } from '../../contract/kind.js';
import { serviceType } from './service.js';
import type { ServiceType } from './service.js';
import type { AppServiceSpec, RouteParent, SecurityProfile } from './spec.js';

/** The fields that an admin may close: all that the tutorial's AppService doesn't have. */
type Feature = Exclude<keyof AppServiceSpec, 'size' | 'image' | 'ports' | 'resources' | 'envs'>;

/** What an admin allows of an AppService. Each rule that is left out forbids nothing, but a route needs two. */
export interface AppServicePolicy {
  /** At least this; one that is unset is less than `Baseline`. */
  readonly securityProfile?: SecurityProfile;
  readonly serviceTypes?: readonly ServiceType[];
  /** Registries and folders in them, by their full names. */
  readonly imageRegistries?: readonly string[];
  /** Each `namespace/name`, where `*` in place of one of them means any. */
  readonly gateways?: readonly string[];
  /** Hostnames of routes: whole ones, `*.example.com` for all below, or `*` for any. */
  readonly hostnames?: readonly string[];
  /** Of `size` and of `autoscaling.maxReplicas`. */
  readonly maxSize?: number;
  /** Fields outside of this list may not be used. */
  readonly features?: readonly Feature[];
}

/** A record, so that a field which is added to the spec can't be forgotten. */
const FEATURES: Readonly<Record<Feature, true>> = {
  envFrom: true,
  command: true,
  args: true,
  workingDir: true,
  imagePullPolicy: true,
  imagePullSecrets: true,
  serviceAccountName: true,
  automountServiceAccountToken: true,
  probes: true,
  autoscaling: true,
  securityProfile: true,
  route: true,
  disruption: true,
  topologySpread: true,
  files: true,
  service: true,
  strategy: true,
  minReadySeconds: true,
  progressDeadlineSeconds: true,
  terminationGracePeriodSeconds: true,
  preStop: true,
};

export const features = Object.keys(FEATURES) as readonly Feature[];

const text = (pattern: string): StructuralSchema => ({
  type: 'string',
  minLength: 1,
  maxLength: 512,
  pattern,
});

function listOf(description: string, items: StructuralSchema): StructuralSchema {
  return { type: 'array', description, 'x-kubernetes-list-type': 'set', items };
}

/** The schema of `AppServicePolicy`. */
export const policySchema: StructuralSchema = {
  type: 'object',
  description:
    'What is allowed of an AppService. A rule that is left out forbids nothing, but a route needs gateways and hostnames.',
  default: {},
  properties: {
    securityProfile: {
      type: 'string',
      enum: ['Baseline', 'Restricted'],
      description: 'The least that securityProfile has to be.',
    },
    serviceTypes: listOf('The types that a Service may have, those by default included.', {
      type: 'string',
      enum: ['ClusterIP', 'NodePort', 'LoadBalancer'],
    }),
    imageRegistries: listOf(
      'Where images may come from: a registry, or a folder in one, e.g. docker.io/library.',
      // A host has a dot or a port, or is localhost: anything else would be a folder of Docker Hub.
      text('^(localhost|[^/\\s]*[.:][^/\\s]*)(/[^/\\s]+)*/?$'),
    ),
    gateways: listOf(
      'The Gateways that routes may use, each as namespace/name; * stands for any namespace, or any name.',
      text('^(\\*|[a-z0-9.-]+)/(\\*|[a-z0-9.-]+)$'),
    ),
    hostnames: listOf(
      'The hostnames that routes may have; *.example.com stands for all below example.com, and * for any.',
      text('^(\\*|(\\*\\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?)$'),
    ),
    maxSize: {
      type: 'integer',
      format: 'int32',
      minimum: 0,
      description: 'The most that size and autoscaling.maxReplicas may be.',
    },
    features: listOf(
      "The fields that may be used, of those beyond the tutorial's; an empty list closes them all.",
      {
        type: 'string',
        enum: features,
      },
    ),
  },
};

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

/** Docker Hub, where images without a host come from, and its folder for those without any folder. */
const DEFAULT_HOST = 'docker.io';
const DEFAULT_FOLDER = 'library';

/** A part of a path, as the grammar of image references has it; what isn't one, such as `..`, may mean anything. */
const PART = /^[a-z0-9]+(?:[._-]+[a-z0-9]+)*$/;

/**
 * The full name of an image, without tag and digest: `docker.io/library/nginx` for `nginx:1.27`.
 * @returns undefined for what isn't an image reference
 * @see https://github.com/distribution/reference/blob/main/normalize.go
 */
export function fullImageName(image: string): string | undefined {
  const name = image
    .split('@', 1)
    .join('')
    .replace(/:[^:/]*$/, '');
  const slash = name.indexOf('/');
  const first = name.slice(0, Math.max(slash, 0));
  const hasHost = /[.:]/.test(first) || first === 'localhost' || first !== first.toLowerCase();
  const host = hasHost ? first.toLowerCase() : DEFAULT_HOST;
  const path = hasHost ? name.slice(slash + 1) : name;
  const parts = path.split('/');
  if (!parts.every((part) => PART.test(part))) return undefined;
  if (host === 'index.docker.io') return fullImageName(`${DEFAULT_HOST}/${path}`);
  return [host, ...(host === DEFAULT_HOST && parts.length === 1 ? [DEFAULT_FOLDER] : []), ...parts].join('/');
}

/** Whether an image by its full name lies in a registry, or in a folder of one: whole parts of the path count. */
export function isWithin(fullName: string, registry: string): boolean {
  const slash = registry.indexOf('/');
  const host = slash < 0 ? registry : registry.slice(0, slash);
  const folder = (host.toLowerCase() + registry.slice(host.length)).replace(/\/$/, '');
  return fullName === folder || fullName.startsWith(`${folder}/`);
}
