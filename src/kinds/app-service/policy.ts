import type { StructuralSchema } from '../../contract/crd.js';
import type { ServiceType } from './service.js';
import type { AppServiceSpec, SecurityProfile } from './spec.js';

/** The fields that an admin may close: all that the tutorial's AppService doesn't have. */
export type Feature = Exclude<keyof AppServiceSpec, 'size' | 'image' | 'ports' | 'resources' | 'envs'>;

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
