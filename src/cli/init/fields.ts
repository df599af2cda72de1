import { has } from './design.js';
import type { Child, Design } from './design.js';
import { code } from './source.js';
import type { Source } from './source.js';

/** A member of the spec. */
export interface Field {
  readonly name: string;
  readonly schema: { readonly [keyword: string]: Source };
  /** In the sample. @default - it is left to its default */
  readonly sample?: unknown;
  readonly isRequired?: boolean;
  /** The name and type of its column. @default - it has none */
  readonly column?: readonly [name: string, type: string];
}

/** An image whose user is not root, and a number. */
export const SAMPLE_IMAGE = 'nginxinc/nginx-unprivileged:1.29-alpine';
/** For the sweep, which edits one custom resource into another. */
export const OTHER_IMAGE = 'nginxinc/nginx-unprivileged:1.28-alpine';

/** What the children need to know of a custom resource, and no more. */
export function fieldsOf(design: Design, names: { readonly file: string }): Field[] {
  return [
    ...(design.workloads.length > 0 ? [IMAGE] : []),
    ...scaling(design),
    ...(has(design, 'Service') ? [PORT] : []),
    ...(has(design, 'Ingress') ? [host(names.file)] : []),
    ...(has(design, 'ConfigMap') ? [CONFIG] : []),
    ...(has(design, 'PersistentVolumeClaim') || design.server === 'StatefulSet' ? [STORAGE] : []),
    ...(has(design, 'Job') ? [command(design, 'Job')] : []),
    ...(has(design, 'CronJob') ? [SCHEDULE, command(design, 'CronJob')] : []),
  ];
}

/** Where the command of a Job or a CronJob stands in the spec. */
export function commandField({ workloads }: Design, child: Child): string {
  if (workloads.length === 1) return 'command';
  return child === 'Job' ? 'setup' : 'task';
}

/** Rules about the spec as a whole. */
export function specRules(design: Design): Source | undefined {
  if (!has(design, 'HorizontalPodAutoscaler')) return undefined;
  return [
    {
      rule: 'self.minReplicas <= self.maxReplicas',
      message: 'there are never more than maxReplicas pods; raise it, or lower minReplicas',
      fieldPath: '.minReplicas',
    },
  ];
}

/** The rule about the name of a custom resource, which its children share. */
export function nameRule(design: Design): Source {
  // A CronJob and a StatefulSet add something to it.
  const limit = has(design, 'CronJob') || design.server === 'StatefulSet' ? 52 : 63;
  return {
    rule: `self.metadata.name.size() <= ${limit} && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')`,
    message:
      `a name has at most ${limit} lower-case letters, digits and "-", with a letter at the start and a letter or ` +
      'digit at the end',
    fieldPath: '.metadata',
  };
}

const IMAGE: Field = {
  name: 'image',
  schema: { type: 'string', minLength: 1, description: 'The container image; its user must not be root.' },
  sample: SAMPLE_IMAGE,
  isRequired: true,
  column: ['Image', 'string'],
};

function scaling(design: Design): Field[] {
  const { server } = design;
  if (server !== 'Deployment' && server !== 'StatefulSet') return [];
  const count = { type: 'integer', format: 'int32' };
  if (has(design, 'HorizontalPodAutoscaler'))
    return [
      {
        name: 'minReplicas',
        schema: { ...count, minimum: 1, default: 1, description: 'How many pods there are at least.' },
      },
      {
        name: 'maxReplicas',
        schema: { ...count, minimum: 1, default: 3, description: 'How many pods there are at most.' },
      },
      {
        name: 'cpu',
        schema: {
          ...{ type: 'string', pattern: '^[1-9][0-9]*m?$', default: '100m' },
          description:
            'The CPU that a pod asks for, in cores or thousandths (m). Pods are added above four fifths of it.',
        },
        sample: '100m',
      },
    ];
  // A volume that is mounted on one node.
  if (has(design, 'PersistentVolumeClaim')) return [];
  return [
    {
      name: 'replicas',
      schema: { ...count, minimum: 0, default: 1, description: 'How many pods run.' },
      sample: 2,
      column: ['Replicas', 'integer'],
    },
  ];
}

const PORT: Field = {
  name: 'port',
  schema: {
    ...{ type: 'integer', format: 'int32', minimum: 1, maximum: 65535, default: 8080 },
    description: 'The port on which the container listens, and the Service too.',
  },
  column: ['Port', 'integer'],
};

function host(name: string): Field {
  return {
    name: 'host',
    schema: {
      ...{ type: 'string', maxLength: 253 },
      pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
      description: 'The name under which it is reached from outside, in lower case.',
    },
    sample: `${name}.example.com`,
    isRequired: true,
    column: ['Host', 'string'],
  };
}

const CONFIG: Field = {
  name: 'config',
  schema: {
    type: 'object',
    maxProperties: 50,
    additionalProperties: { type: 'string', maxLength: 10_000 },
    default: code('{}'),
    'x-kubernetes-validations': [
      {
        rule: "self.all(name, name.matches('^[-._a-zA-Z0-9]{1,253}$') && !name.startsWith('..'))",
        message: 'a file is named with at most 253 letters, digits, "-", "_" and "."',
      },
    ],
    description: 'Files, by their names.',
  },
  sample: { 'settings.ini': 'greeting = hello\n' },
};

const STORAGE: Field = {
  name: 'storage',
  schema: {
    ...{ type: 'string', pattern: '^[1-9][0-9]*(Mi|Gi|Ti)$', default: '1Gi' },
    'x-kubernetes-validations': [
      {
        rule: 'self == oldSelf',
        message: 'what has been claimed keeps its size; create the object under another name',
      },
    ],
    description: "The size of a pod's volume.",
  },
};

const SCHEDULE: Field = {
  name: 'schedule',
  schema: {
    type: 'string',
    pattern: '^(@(yearly|monthly|weekly|daily|hourly)|\\S+( \\S+){4})$',
    description: `When it runs, in cron's notation: 30 2 * * * is half past two every night.`,
  },
  sample: '30 2 * * *',
  isRequired: true,
  column: ['Schedule', 'string'],
};

function command(design: Design, child: 'Job' | 'CronJob'): Field {
  const what = child === 'Job' ? 'What runs once' : 'What runs on the schedule';
  return {
    name: commandField(design, child),
    schema: {
      type: 'array',
      minItems: 1,
      items: { type: 'string' },
      'x-kubernetes-list-type': 'atomic',
      description: `${what}: a program of the image and its arguments. Default: the image's own.`,
    },
    sample: ['date'],
  };
}
