import { defineCrd } from 'cdk8s-reconstruct';

export const crd = defineCrd({
  group: 'gizmos.example.org',
  kind: 'Gizmo',
  description: 'A Gizmo.',
  spec: {
    type: 'object',
    description: 'Desired state of the Gizmo.',
    // if: workload
    required: [
      'image',
      // if: Ingress
      'host',
      // if: CronJob
      'schedule',
    ],
    // if: HorizontalPodAutoscaler
    'x-kubernetes-validations': [
      {
        rule: 'self.minReplicas <= self.maxReplicas',
        message: 'minReplicas must not be above maxReplicas; raise maxReplicas, or lower minReplicas',
        fieldPath: '.minReplicas',
      },
    ],
    properties: {
      // if: workload
      image: { type: 'string', minLength: 1, description: 'The container image; its user must not be root.' },
      // if: replicas
      replicas: {
        type: 'integer',
        format: 'int32',
        minimum: 0,
        // if: PersistentVolumeClaim
        // A volume that is mounted on one node serves one pod.
        maximum: 1,
        default: 1,
        description: 'How many pods run.',
      },
      // if: HorizontalPodAutoscaler
      minReplicas: {
        type: 'integer',
        format: 'int32',
        minimum: 1,
        default: 1,
        description: 'Lower limit of the number of pods.',
      },
      // if: HorizontalPodAutoscaler
      maxReplicas: {
        type: 'integer',
        format: 'int32',
        minimum: 1,
        default: 3,
        description: 'Upper limit of the number of pods.',
      },
      // if: HorizontalPodAutoscaler
      cpu: {
        type: 'string',
        pattern: '^[1-9][0-9]*m?$',
        default: '100m',
        description: 'CPU request of a pod, in cores or thousandths (m). Pods are added above 80 % of it.',
      },
      // if: Service
      port: {
        type: 'integer',
        format: 'int32',
        minimum: 1,
        maximum: 65535,
        default: 8080,
        description: 'The port on which the container and the Service listen.',
      },
      // if: Ingress
      host: {
        type: 'string',
        maxLength: 253,
        pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$',
        description: 'The host name outside the cluster, in lower case.',
      },
      // if: ConfigMap
      config: {
        type: 'object',
        maxProperties: 50,
        additionalProperties: { type: 'string', maxLength: 10000 },
        default: {},
        'x-kubernetes-validations': [
          {
            rule: "self.all(name, name.matches('^[-._a-zA-Z0-9]{1,253}$') && !name.startsWith('..'))",
            message: 'a file name has at most 253 letters, digits, "-", "_" and "."',
          },
        ],
        description: 'Files below /config, by name.',
      },
      // if: PersistentVolumeClaim | StatefulSet
      storage: {
        type: 'string',
        pattern: '^[1-9][0-9]*(Mi|Gi|Ti)$',
        default: '1Gi',
        'x-kubernetes-validations': [
          {
            rule: 'self == oldSelf',
            message: 'the size of a claim is fixed; create a Gizmo of another name',
          },
        ],
        description: "The size of a pod's volume.",
      },
      // if: Job
      jobCommand: {
        type: 'array',
        minItems: 1,
        items: { type: 'string' },
        'x-kubernetes-list-type': 'atomic',
        description: "What runs once: a program of the image and its arguments. Default: the image's own.",
      },
      // if: CronJob
      schedule: {
        type: 'string',
        pattern: '^(@(yearly|monthly|weekly|daily|hourly)|\\S+( \\S+){4})$',
        description: "When it runs, in cron's notation: 30 2 * * * is half past two every night.",
      },
      // if: CronJob
      cronJobCommand: {
        type: 'array',
        minItems: 1,
        items: { type: 'string' },
        'x-kubernetes-list-type': 'atomic',
        description:
          "What runs on schedule: a program of the image and its arguments. Default: the image's own.",
      },
    },
  },
  columns: [
    // if: workload
    { name: 'Image', type: 'string', jsonPath: '.spec.image' },
    // if: replicas
    { name: 'Replicas', type: 'integer', jsonPath: '.spec.replicas' },
    // if: Service
    { name: 'Port', type: 'integer', jsonPath: '.spec.port' },
    // if: Ingress
    { name: 'Host', type: 'string', jsonPath: '.spec.host' },
    // if: CronJob
    { name: 'Schedule', type: 'string', jsonPath: '.spec.schedule' },
  ],
  rules: [
    {
      rule: "self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",
      message:
        'a name has at most 63 lower-case letters, digits and "-", begins with a letter and ends with a letter or digit',
      fieldPath: '.metadata',
    },
    // if: CronJob | StatefulSet
    {
      rule: 'self.metadata.name.size() <= 52',
      message: 'a name has at most 52 characters, since names of pods and Jobs are derived from it',
      fieldPath: '.metadata',
    },
  ],
});
