import type {
  V1Container,
  V1DeploymentSpec,
  V1DeploymentStatus,
  V1EmptyDirVolumeSource,
  V1EnvFromSource,
  V1EnvVar,
  V1HTTPGetAction,
  V1KeyToPath,
  V1LocalObjectReference,
  V1PodSpec,
  V1Probe,
  V1ResourceRequirements,
  V1ServicePort,
  V1ServiceSpec,
  V1TopologySpreadConstraint,
  V2HorizontalPodAutoscalerBehavior,
  V2MetricSpec,
} from '@kubernetes/client-node';
import type { Condition } from '../../contract/conditions.js';
import type { CustomResourceProps } from '../../contract/kind.js';
import { childLabels, selectorLabels } from '../../contract/names.js';
import type { NamedKind } from '../../contract/names.js';

/**
 * What is to run. Each optional field that is left out renders nothing, so Kubernetes decides as for any Deployment.
 */
export interface AppServiceSpec {
  /** Replicas; 0 stops the application and keeps its Service. While `autoscaling` is set, where it starts. */
  readonly size: number;
  /** The container image, by tag or by digest. */
  readonly image: string;
  /** Keyed by `port` and `protocol`. @default - no ports, and no Service */
  readonly ports?: readonly Wire<V1ServicePort>[];
  /** Of each replica. Quantities may be numbers on the wire. @default - neither limits nor requests */
  readonly resources?: Wire<V1ResourceRequirements>;
  /** The variables of the container, in an order that counts; keyed by `name`. @default - none */
  readonly envs?: readonly Wire<V1EnvVar>[];
  /** ConfigMaps and Secrets of which every key becomes a variable. @default - none */
  readonly envFrom?: readonly Wire<V1EnvFromSource>[];
  /** @default - that of the image */
  readonly command?: readonly string[];
  /** @default - those of the image */
  readonly args?: readonly string[];
  /** @default - that of the image */
  readonly workingDir?: string;
  /** @default IfNotPresent */
  readonly imagePullPolicy?: V1Container['imagePullPolicy'];
  /** Secrets in the same namespace. @default - none */
  readonly imagePullSecrets?: readonly Wire<V1LocalObjectReference>[];
  /** @default - the namespace's default account */
  readonly serviceAccountName?: string;
  /** @default - as Kubernetes has it; false where `securityProfile` is set */
  readonly automountServiceAccountToken?: boolean;
  /** @default - none */
  readonly probes?: Probes;
  /** @default - `size` replicas, always */
  readonly autoscaling?: Autoscaling;
  /** @default - nothing is rendered of it */
  readonly securityProfile?: SecurityProfile;
  /** @default - none */
  readonly route?: Route;
  /** @default - no PodDisruptionBudget */
  readonly disruption?: Disruption;
  /** @default - the scheduler's own spreading */
  readonly topologySpread?: TopologySpread;
  /** Keyed by `path`. @default - none */
  readonly files?: readonly FileMount[];
  /** @default - a NodePort Service */
  readonly service?: ServiceOptions;
  readonly strategy?: Wire<V1DeploymentSpec['strategy']>;
  readonly minReadySeconds?: number;
  readonly progressDeadlineSeconds?: number;
  readonly terminationGracePeriodSeconds?: V1PodSpec['terminationGracePeriodSeconds'];
  /** What happens before a container is told to end. @default - nothing */
  readonly preStop?: { readonly sleep: { readonly seconds: number } };
}

/** A Probe, but for the host: it is always the pod. */
type ContainerProbe = Omit<Wire<V1Probe>, 'httpGet' | 'tcpSocket'> & {
  readonly httpGet?: Omit<Wire<V1HTTPGetAction>, 'host'>;
  readonly tcpSocket?: { readonly port: number | string };
};

export interface Probes {
  readonly readiness?: ContainerProbe;
  readonly liveness?: ContainerProbe;
  readonly startup?: ContainerProbe;
}

export interface Autoscaling {
  /** @default 1 */
  readonly minReplicas?: number;
  readonly maxReplicas: number;
  /** Average use, in percent of the request. */
  readonly cpu?: number;
  /** Average use, in percent of the request. */
  readonly memory?: number;
  readonly metrics?: readonly Wire<V2MetricSpec>[];
  readonly behavior?: Wire<V2HorizontalPodAutoscalerBehavior>;
}

/**
 * As the Pod Security Standards name them. @see https://kubernetes.io/docs/concepts/security/pod-security-standards/
 */
export type SecurityProfile = 'Baseline' | 'Restricted';

/** An HTTPRoute of the Gateway API. */
export interface Route {
  /** @default - every host that the Gateway listens for */
  readonly hostnames?: readonly string[];
  readonly parentRefs: readonly RouteParent[];
  /** A prefix. @default / */
  readonly path?: string;
  /** One of `ports`, by number. @default - the first of protocol TCP */
  readonly port?: number;
}

/** A Gateway, by default in the same namespace. */
export interface RouteParent {
  readonly name: string;
  readonly namespace?: string;
  readonly sectionName?: string;
}

/** A PodDisruptionBudget. */
interface Disruption {
  /** A number, or a percentage as a string. @default 1 */
  readonly maxUnavailable?: number | string;
}

export interface TopologySpread {
  /** @default - over zones and hosts, as far as possible */
  readonly constraints?: readonly Wire<V1TopologySpreadConstraint>[];
}

/** What is mounted at a path; exactly one source. */
export interface FileMount {
  /** An absolute path in the container. */
  readonly path: string;
  readonly configMap?: ObjectFiles;
  readonly secret?: ObjectFiles;
  readonly emptyDir?: Wire<V1EmptyDirVolumeSource>;
  readonly persistentVolumeClaim?: { readonly claimName: string };
  readonly token?: { readonly audience?: string; readonly expirationSeconds?: number };
  /** @default - true; false for an emptyDir, which would stay empty */
  readonly readOnly?: boolean;
}

/** The keys of a ConfigMap or a Secret, as files. */
export interface ObjectFiles {
  readonly name: string;
  /** @default - every key, under its own name */
  readonly items?: readonly Wire<V1KeyToPath>[];
  readonly defaultMode?: number;
  readonly optional?: boolean;
}

export interface ServiceOptions {
  /** @default NodePort */
  readonly type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer';
  readonly sessionAffinity?: V1ServiceSpec['sessionAffinity'];
  readonly externalTrafficPolicy?: V1ServiceSpec['externalTrafficPolicy'];
  readonly trafficDistribution?: string;
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
  /** The selector of the pods, as text: what autoscalers read through `/scale`. */
  readonly selector?: string;
  /** The ports of the Service, with the node ports that the cluster has given them. */
  readonly ports?: readonly Pick<Wire<V1ServicePort>, 'name' | 'port' | 'nodePort' | 'protocol'>[];
  /** The same in one line, e.g. `80:30002/TCP,53:31000/UDP`: what a column of a table shows. */
  readonly portSummary?: string;
  /** Where the route leads in, e.g. `http://shop.example.com/`. */
  readonly url?: string;
  /** The image that the Deployment runs. */
  readonly image?: string;
  readonly conditions?: readonly Condition[];
}

/**
 * A type of client-node as its values travel on the wire: plain, read-only JSON instead of instances of its
 * classes, with times as strings.
 */
export type Wire<T> = T extends Date
  ? string
  : T extends object
    ? { readonly [Key in keyof T]: Wire<T[Key]> }
    : T;

type Said<T> = { [Key in keyof T]: Exclude<T[Key], undefined> };

/** The named fields of an object as far as they say something: an empty list says as little as none. */
export function given<T extends object, Key extends keyof T>(
  from: T,
  ...keys: readonly Key[]
): Said<Pick<T, Key>> {
  const said = keys.filter((key) => {
    const value: unknown = from[key];
    return value !== undefined && !(Array.isArray(value) && value.length === 0);
  });
  return Object.fromEntries(said.map((key) => [key, from[key]])) as Said<Pick<T, Key>>;
}

/** What the objects of one AppService are named and labelled after. */
export interface Identity {
  readonly name: string;
  readonly namespace?: string;
  readonly kind: NamedKind;
}

/** The identity that a custom resource gives to its objects; without an API version, that of `kosmos.io/v1`. */
export function identityOf({
  metadata,
  apiVersion = 'kosmos.io/v1',
}: CustomResourceProps<unknown>): Identity {
  const { name, namespace } = metadata;
  return { name, ...(namespace && { namespace }), kind: { apiVersion, kind: 'AppService' } };
}

/** Made here from the name alone: labels and annotations of the custom resource belong to whoever set them there. */
export function childMetadata({ name, namespace, kind }: Identity) {
  return { name, ...(namespace && { namespace }), labels: childLabels(kind, name) };
}

/** Selects the pods, by the one label that never changes: a Deployment's selector is immutable. */
export function podSelector({ name, kind }: Identity) {
  return { matchLabels: selectorLabels(kind, name) };
}
