import type {
  V1DeploymentStatus,
  V1EnvVar,
  V1ResourceRequirements,
  V1ServicePort,
} from '@kubernetes/client-node';
import type { Condition } from '../../contract/conditions.js';
import type { NamedKind } from '../../contract/names.js';
import type { Wire } from './wire.js';

/** The kind as crds/appservices.kosmos.io.yaml defines it. */
export const APP_SERVICE: NamedKind = { apiVersion: 'kosmos.io/v1', kind: 'AppService' };

/** What is to run. */
export interface AppServiceSpec {
  /** Replicas; 0 stops the application and keeps its Service. */
  readonly size: number;
  /** The container image, by tag or by digest. */
  readonly image: string;
  /** Keyed by `port` and `protocol`. @default - no ports, and no Service */
  readonly ports?: readonly Wire<V1ServicePort>[];
  /** Of each replica. Quantities may be numbers on the wire. @default - neither limits nor requests */
  readonly resources?: Wire<V1ResourceRequirements>;
  /** The variables of the container, in an order that counts; keyed by `name`. @default - none */
  readonly envs?: readonly Wire<V1EnvVar>[];
}

/** The counters of a Deployment, with its meanings. */
export type ReplicaCounts = Wire<
  Pick<
    V1DeploymentStatus,
    | 'replicas'
    | 'updatedReplicas'
    | 'readyReplicas'
    | 'availableReplicas'
    | 'unavailableReplicas'
    | 'terminatingReplicas'
    | 'collisionCount'
  >
>;

/** The fields of a Deployment's status, but with the generation and the conditions of the custom resource. */
export interface AppServiceStatus extends ReplicaCounts {
  /** The generation of the custom resource that the status speaks of; -1 before it was seen. */
  readonly observedGeneration?: number;
  readonly conditions?: readonly Condition[];
}
