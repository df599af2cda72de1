import type { StructuralSchema } from '../../contract/crd.js';
import { OperatorError } from '../../contract/error.js';
import type { CustomResourceProps } from '../../contract/kind.js';
import type { FromSchema } from '../../author/typed-crd.js';
import { oneOf, setOf } from '../common.js';
import { formatPath } from '../../values/path.js';
import { DEFAULT_SERVICE_TYPE, type AppServiceSpec, type SecurityProfile } from './spec.js';

/** The fields of the tutorial's AppService, which no admin can close. */
const BASIC: ReadonlySet<string> = new Set(['size', 'image', 'ports', 'resources', 'envs']);

function textsOf(description: string, pattern: string) {
  return setOf(description, { type: 'string', minLength: 1, maxLength: 512, pattern });
}

/** Rules of an admin. */
export type AppServicePolicy = FromSchema<ReturnType<typeof policySchema>>;

/**
 * Returns the schema of `AppServicePolicy`.
 * @param fields of the spec
 */
export function policySchema(fields: readonly string[]) {
  return {
    type: 'object',
    description:
      'What is allowed of an AppService. A rule that is left out forbids nothing, but a route needs gateways and hostnames.',
    default: {},
    properties: {
      securityProfile: oneOf(
        'The least that securityProfile has to be.',
        ...(['Baseline', 'Restricted'] as const),
      ),
      serviceTypes: setOf('The types that a Service may have, those by default included.', {
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
      features: setOf(
        "The fields that may be used, of those beyond the tutorial's; an empty list closes them all.",
        { type: 'string', enum: fields.filter((field) => !BASIC.has(field)) },
      ),
    },
  } as const satisfies StructuralSchema;
}

type Props = CustomResourceProps<AppServiceSpec>;

type Path = readonly (string | number)[];

/** A place in the custom resource, what is wrong there, with the value, and the remedy. */
type Violation = readonly [path: Path, message: string, remedy: string];

/**
 * Holds an AppService against the admin's policy, and names everything that it forbids at once.
 * @throws OperatorError `PolicyDenied`, with the path of the first
 */
export function checkPolicy(props: Props): void {
  const policy = props.policy as AppServicePolicy | undefined;
  // An operator without a policy has an empty one, which forbids routes alone.
  if (!policy || (!props.spec.route && Object.keys(policy).length === 0)) return;
  const violations = RULES.flatMap((rule) => rule(policy, props));
  const lines = violations.map(([path, message, remedy]) => `${formatPath(path)}: ${message}; ${remedy}`);
  if (violations[0])
    throw new OperatorError({
      reason: 'PolicyDenied',
      path: violations[0][0],
      message: lines.join('. '),
    });
}

const STRENGTH: Readonly<Record<SecurityProfile, number>> = { Baseline: 1, Restricted: 2 };

const RULES: readonly ((policy: AppServicePolicy, props: Props) => readonly Violation[])[] = [
  ({ securityProfile: least }, { spec: { securityProfile: own } }) => {
    if (!least || (own && STRENGTH[own] >= STRENGTH[least])) return [];
    const message = `${own ? `"${own}" is` : 'is not set, which is'} less than the policy's securityProfile, ${least}`;
    return [[['spec', 'securityProfile'], message, `set it to ${least}`]];
  },

  ({ serviceTypes }, { spec }) => {
    const type = spec.service?.type ?? DEFAULT_SERVICE_TYPE;
    if (!serviceTypes || !spec.ports?.length || serviceTypes.includes(type)) return [];
    const message = `"${type}"${spec.service?.type ? '' : ', the default,'} is not in the policy's serviceTypes`;
    return [[['spec', 'service', 'type'], message, oneOfThese(serviceTypes)]];
  },

  ({ imageRegistries }, { spec: { image } }) => {
    if (!imageRegistries) return [];
    const name = fullImageName(image);
    if (name !== undefined && imageRegistries.some((registry) => isWithin(name, registry))) return [];
    const what = name === undefined ? 'is not the name of an image, and' : `comes from ${name}, which`;
    const message = `"${image}" ${what} is not in the policy's imageRegistries`;
    return [[['spec', 'image'], message, oneOfThese(imageRegistries, 'take one from')]];
  },

  // The operator may write HTTPRoutes where the user may not.
  ({ gateways, hostnames }, { spec: { route } }) => {
    const missing = [...(gateways ? [] : ['gateways']), ...(hostnames ? [] : ['hostnames'])];
    if (!route || missing.length === 0) return [];
    const message = `is used, and the policy has no ${missing.join(' and no ')} for routes`;
    const remedy = `remove it, or ask an admin to list them in the operator's policy (--policy), below appservice`;
    return [[['spec', 'route'], message, remedy]];
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
      return [[['spec', 'route', 'parentRefs', index], message, oneOfThese(gateways ?? [])]];
    });
  },

  ({ hostnames }, { spec: { route } }) => {
    if (!hostnames || !route || hostnames.includes('*')) return [];
    const remedy = oneOfThese(hostnames);
    const path = ['spec', 'route', 'hostnames'];
    const { hostnames: asked = [] } = route;
    const every = "is not set, which is every hostname, and the policy's hostnames don't have them all";
    if (asked.length === 0) return [[path, every, remedy]];
    const allows = (pattern: string, hostname: string): boolean =>
      hostname === pattern || (pattern.startsWith('*.') && hostname.endsWith(pattern.slice(1)));
    return asked.flatMap((hostname, index): Violation[] =>
      hostnames.some((pattern) => allows(pattern, hostname))
        ? []
        : [[[...path, index], `"${hostname}" is not in the policy's hostnames`, remedy]],
    );
  },

  ({ maxSize = Infinity }, { spec: { size, autoscaling } }) => {
    const sizes: [path: Path, value: number][] = [
      [['spec', 'size'], size],
      [['spec', 'autoscaling', 'maxReplicas'], autoscaling?.maxReplicas ?? 0],
    ];
    return sizes.flatMap(([path, value]): Violation[] => {
      const message = `${value} is more than the policy's maxSize, ${maxSize}`;
      return value > maxSize ? [[path, message, `give ${maxSize} or less`]] : [];
    });
  },

  ({ features, securityProfile }, { spec }) =>
    Object.entries(spec)
      // What one rule asks for, another can't close.
      .filter(([field]) => !BASIC.has(field) && !(securityProfile && field === 'securityProfile'))
      .filter(([field, value]) => features && value !== undefined && !features.includes(field))
      .map(([field, value]): Violation => {
        // Of lists and maps, the path says enough, and what is in them may be confidential.
        const shown = typeof value === 'object' ? '' : `${JSON.stringify(value)} `;
        const message = `${shown}is used, and is not in the policy's features`;
        return [['spec', field], message, 'remove it, or ask an admin to allow it'];
      }),
];

function oneOfThese(allowed: readonly string[], verb = 'give one of'): string {
  return allowed.length > 0 ? `${verb} ${allowed.join(', ')}` : 'none is allowed';
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
