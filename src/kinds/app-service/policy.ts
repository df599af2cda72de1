import type { StructuralSchema } from '../../contract/crd.js';
import { OperatorError } from '../../contract/error.js';
import type { CustomResourceProps } from '../../contract/kind.js';
import { serviceType } from './spec.js';
import type { AppServiceSpec, SecurityProfile, ServiceOptions } from './spec.js';

/** The fields of the tutorial's AppService, which no admin can close. */
const BASIC: ReadonlySet<string> = new Set(['size', 'image', 'ports', 'resources', 'envs']);

/** Rules of an admin, as `policySchema` describes them. */
export interface AppServicePolicy {
  readonly securityProfile?: SecurityProfile;
  readonly serviceTypes?: readonly ServiceOptions['type'][];
  readonly imageRegistries?: readonly string[];
  readonly gateways?: readonly string[];
  readonly hostnames?: readonly string[];
  readonly maxSize?: number;
  readonly features?: readonly string[];
}

function listOf(description: string, items: StructuralSchema): StructuralSchema {
  return { type: 'array', description, 'x-kubernetes-list-type': 'set', items };
}

function textsOf(description: string, pattern: string): StructuralSchema {
  return listOf(description, { type: 'string', minLength: 1, maxLength: 512, pattern });
}

/**
 * Returns the schema of `AppServicePolicy`.
 * @param fields of the spec
 */
export function policySchema(fields: readonly string[]): StructuralSchema {
  return {
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
      imageRegistries: textsOf(
        'Where images may come from: a registry, or a folder in one, e.g. docker.io/library.',
        // A host has a dot or a port, or is localhost: anything else would be a folder of Docker Hub.
        '^(localhost|[^/\\s]*[.:][^/\\s]*)(/[^/\\s]+)*/?$',
      ),
      gateways: textsOf(
        'The Gateways that routes may use, each as namespace/name; * stands for any namespace, or any name.',
        '^(\\*|[a-z0-9.-]+)/(\\*|[a-z0-9.-]+)$',
      ),
      hostnames: textsOf(
        'The hostnames that routes may have; *.example.com stands for all below example.com, and * for any.',
        '^(\\*|(\\*\\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?)$',
      ),
      maxSize: {
        ...{ type: 'integer', format: 'int32', minimum: 0 },
        description: 'The most that size and autoscaling.maxReplicas may be.',
      },
      features: listOf(
        "The fields that may be used, of those beyond the tutorial's; an empty list closes them all.",
        { type: 'string', enum: fields.filter((field) => !BASIC.has(field)) },
      ),
    },
  };
}

type Props = CustomResourceProps<AppServiceSpec>;

interface Violation {
  readonly path: readonly (string | number)[];
  /** What is wrong, with the value. */
  readonly message: string;
  readonly remedy: string;
}

/**
 * Holds an AppService against the admin's policy, and names everything that it forbids at once.
 * @throws OperatorError `PolicyDenied`, with the path of the first
 */
export function checkPolicy(props: Props): void {
  const policy = props.policy as AppServicePolicy | undefined;
  const violations = policy ? RULES.flatMap((rule) => rule(policy, props)) : [];
  const [first] = violations;
  if (!first) return;
  throw new OperatorError({
    reason: 'PolicyDenied',
    path: first.path,
    message: violations.map(({ path, message, remedy }) => `${join(path)}: ${message}; ${remedy}`).join('. '),
  });
}

const STRENGTH: Readonly<Record<SecurityProfile, number>> = { Baseline: 1, Restricted: 2 };

const RULES: readonly ((policy: AppServicePolicy, props: Props) => readonly Violation[])[] = [
  ({ securityProfile: least }, { spec: { securityProfile: own } }) => {
    if (!least || (own && STRENGTH[own] >= STRENGTH[least])) return [];
    const message = `${own ? `"${own}" is` : 'is not set, which is'} less than the policy's securityProfile, ${least}`;
    return [{ path: ['spec', 'securityProfile'], message, remedy: `set it to ${least}` }];
  },

  ({ serviceTypes }, { spec }) => {
    const type = serviceType(spec);
    if (!serviceTypes || !type || serviceTypes.includes(type)) return [];
    const message = `"${type}"${spec.service?.type ? '' : ', the default,'} is not in the policy's serviceTypes`;
    return [{ path: ['spec', 'service', 'type'], message, remedy: giveOneOf(serviceTypes) }];
  },

  ({ imageRegistries }, { spec: { image } }) => {
    if (!imageRegistries) return [];
    const name = fullImageName(image);
    if (name !== undefined && imageRegistries.some((registry) => isWithin(name, registry))) return [];
    const what = name === undefined ? 'is not the name of an image, and' : `comes from ${name}, which`;
    return [
      {
        path: ['spec', 'image'],
        message: `"${image}" ${what} is not in the policy's imageRegistries`,
        remedy:
          imageRegistries.length > 0 ? `take one from ${imageRegistries.join(', ')}` : 'none is allowed',
      },
    ];
  },

  // The operator may write HTTPRoutes where the user may not.
  ({ gateways, hostnames }, { spec: { route } }) => {
    const missing = [...(gateways ? [] : ['gateways']), ...(hostnames ? [] : ['hostnames'])];
    if (!route || missing.length === 0) return [];
    const message = `is used, and the policy has no ${missing.join(' and no ')} for routes`;
    const remedy = `remove it, or ask an admin to list them in the operator's policy (--policy), below appservice`;
    return [{ path: ['spec', 'route'], message, remedy }];
  },

  ({ gateways }, { spec: { route }, metadata }) => {
    const parents = gateways ? (route?.parentRefs ?? []) : [];
    return parents.flatMap(({ name, namespace = metadata.namespace ?? '' }, index) => {
      // A namespace that isn't known, as in a file that names none, is only met by a `*`.
      const isMet = (pattern: string): boolean =>
        pattern.split('/').every((part, at) => part === '*' || part === [namespace, name][at]);
      if (gateways?.some(isMet)) return [];
      const what = namespace ? `"${namespace}/${name}"` : `"${name}" in an unknown namespace`;
      const message = `${what} is not in the policy's gateways`;
      return [{ path: ['spec', 'route', 'parentRefs', index], message, remedy: giveOneOf(gateways ?? []) }];
    });
  },

  ({ hostnames }, { spec: { route } }) => {
    if (!hostnames || !route || hostnames.includes('*')) return [];
    const remedy = giveOneOf(hostnames);
    const path = ['spec', 'route', 'hostnames'];
    const { hostnames: asked = [] } = route;
    const every = "is not set, which is every hostname, and the policy's hostnames don't have them all";
    if (asked.length === 0) return [{ path, message: every, remedy }];
    const allows = (pattern: string, hostname: string): boolean =>
      hostname === pattern || (pattern.startsWith('*.') && hostname.endsWith(pattern.slice(1)));
    return asked.flatMap((hostname, index) =>
      hostnames.some((pattern) => allows(pattern, hostname))
        ? []
        : [{ path: [...path, index], message: `"${hostname}" is not in the policy's hostnames`, remedy }],
    );
  },

  ({ maxSize = Infinity }, { spec: { size, autoscaling } }) => {
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

  ({ features, securityProfile }, { spec }) =>
    Object.entries(spec)
      // What one rule asks for, another can't close.
      .filter(([field]) => !BASIC.has(field) && !(securityProfile && field === 'securityProfile'))
      .filter(([field, value]) => features && value !== undefined && !features.includes(field))
      .map(([field, value]) => ({
        path: ['spec', field],
        // Of lists and maps, the path says enough, and what is in them may be confidential.
        message: `${typeof value === 'object' ? '' : `${JSON.stringify(value)} `}is used, and is not in the policy's features`,
        remedy: 'remove it, or ask an admin to allow it',
      })),
];

function giveOneOf(allowed: readonly unknown[]): string {
  return allowed.length > 0 ? `give one of ${allowed.join(', ')}` : 'none is allowed';
}

function join(path: Violation['path']): string {
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`));
  return steps.join('').slice(1);
}

/** Docker Hub, where images without a host come from, and its folder for those without any folder. */
const DEFAULT_HOST = 'docker.io';
const DEFAULT_FOLDER = 'library';

/** A part of a path, as the grammar of image references has it; anything else, such as `..`, may mean anything. */
const PART = /^[a-z0-9]+(?:[._-]+[a-z0-9]+)*$/;

/**
 * Returns the full name of an image, without tag and digest: `docker.io/library/nginx` for `nginx:1.27`; undefined for
 * what isn't an image reference.
 * @see https://github.com/distribution/reference/blob/main/normalize.go
 */
export function fullImageName(image: string): string | undefined {
  const [reference = ''] = image.split('@', 1);
  const name = reference.replace(/:[^:/]*$/, '');
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

/** Reports whether an image lies in a registry, or in a folder of one: whole parts of the path count. */
export function isWithin(fullName: string, registry: string): boolean {
  const [host = '', ...folders] = registry.replace(/\/$/, '').split('/');
  const folder = [host.toLowerCase(), ...folders].join('/');
  return fullName === folder || fullName.startsWith(`${folder}/`);
}
