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
import type { Wire } from '../../author/kubernetes-types.js';

/**
 * Fields and defaults as in `crds/appservices.kosmos.io.yaml`. Each optional field that is left out renders nothing,
 * so Kubernetes decides as for any Deployment.
 */
export interface AppServiceSpec {
  /** Replicas; 0 stops the application and keeps its Service. While `autoscaling` is set, where it starts. */
  readonly size: number;
  readonly image: string;
  readonly ports?: readonly Wire<V1ServicePort>[];
  readonly resources?: Wire<V1ResourceRequirements>;
  readonly envs?: readonly Wire<V1EnvVar>[];
  readonly envFrom?: readonly Wire<V1EnvFromSource>[];
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly workingDir?: string;
  readonly imagePullPolicy?: V1Container['imagePullPolicy'];
  readonly imagePullSecrets?: readonly Wire<V1LocalObjectReference>[];
  readonly serviceAccountName?: string;
  /** @default - as Kubernetes has it; false where `securityProfile` is set */
  readonly automountServiceAccountToken?: boolean;
  readonly probes?: {
    readonly readiness?: ContainerProbe;
    readonly liveness?: ContainerProbe;
    readonly startup?: ContainerProbe;
  };
  readonly autoscaling?: Autoscaling;
  readonly securityProfile?: SecurityProfile;
  readonly route?: Route;
  readonly disruption?: { /** @default 1 */ readonly maxUnavailable?: number | string };
  readonly topologySpread?: { readonly constraints?: readonly Wire<V1TopologySpreadConstraint>[] };
  readonly files?: readonly FileMount[];
  readonly service?: ServiceOptions;
  readonly strategy?: Wire<V1DeploymentSpec['strategy']>;
  readonly minReadySeconds?: number;
  readonly progressDeadlineSeconds?: number;
  readonly terminationGracePeriodSeconds?: V1PodSpec['terminationGracePeriodSeconds'];
  readonly preStop?: { readonly sleep: { readonly seconds: number } };
}

/** A Probe, but for the host: it is always the pod. */
type ContainerProbe = Omit<Wire<V1Probe>, 'httpGet' | 'tcpSocket'> & {
  readonly httpGet?: Omit<Wire<V1HTTPGetAction>, 'host'>;
  readonly tcpSocket?: { readonly port: number | string };
};

export interface Autoscaling {
  readonly minReplicas?: number;
  readonly maxReplicas: number;
  /** Average use, in percent of the request; so is `memory`. */
  readonly cpu?: number;
  readonly memory?: number;
  readonly metrics?: readonly Wire<V2MetricSpec>[];
  readonly behavior?: Wire<V2HorizontalPodAutoscalerBehavior>;
}

/** Profile of the Pod Security Standards. @see https://kubernetes.io/docs/concepts/security/pod-security-standards/ */
export type SecurityProfile = 'Baseline' | 'Restricted';

/** An HTTPRoute of the Gateway API. */
export interface Route {
  readonly hostnames?: readonly string[];
  readonly parentRefs: readonly RouteParent[];
  readonly path?: string;
  readonly port?: number;
}

/** A Gateway, by default in the same namespace. */
export interface RouteParent {
  readonly name: string;
  readonly namespace?: string;
  readonly sectionName?: string;
}

/** Files at a path of the container, of exactly one source. */
export interface FileMount {
  readonly path: string;
  readonly configMap?: ObjectFiles;
  readonly secret?: ObjectFiles;
  readonly emptyDir?: Wire<V1EmptyDirVolumeSource>;
  readonly persistentVolumeClaim?: { readonly claimName: string };
  readonly token?: { readonly audience?: string; readonly expirationSeconds?: number };
  /** @default - true; false for an emptyDir, which would stay empty */
  readonly readOnly?: boolean;
}

/** Keys of a ConfigMap or a Secret, as files. */
interface ObjectFiles {
  readonly name: string;
  readonly items?: readonly Wire<V1KeyToPath>[];
  readonly defaultMode?: number;
  readonly optional?: boolean;
}

export interface ServiceOptions {
  readonly type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer';
  readonly sessionAffinity?: V1ServiceSpec['sessionAffinity'];
  readonly externalTrafficPolicy?: V1ServiceSpec['externalTrafficPolicy'];
  readonly trafficDistribution?: string;
}

/** The fields of a Deployment's status, but with the generation and the conditions of the custom resource. */
export interface AppServiceStatus extends Omit<
  Wire<V1DeploymentStatus>,
  'observedGeneration' | 'conditions'
> {
  readonly observedGeneration?: number;
  readonly selector?: string;
  readonly ports?: readonly Pick<Wire<V1ServicePort>, 'name' | 'port' | 'nodePort' | 'protocol'>[];
  readonly portSummary?: string;
  readonly url?: string;
  readonly image?: string;
  readonly conditions?: readonly Condition[];
}

/** The API server's own default, said explicitly: in an apply, `protocol` is part of a port's identity. */
export const DEFAULT_PROTOCOL = 'TCP';

/** The type of the Service, as in the tutorial. */
export const DEFAULT_SERVICE_TYPE = 'NodePort';
