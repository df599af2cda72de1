import { ApiObject, Duration, JsonPatch, Size } from 'cdk8s';
import {
  ConfigMap,
  Cpu,
  Deployment,
  DeploymentStrategy,
  ImagePullPolicy,
  LabelSelector,
  Namespaces,
  NetworkPolicy,
  NetworkPolicyPort,
  PercentOrAbsolute,
  Pods,
  Probe,
  Service,
  ServiceAccount,
  Volume,
} from 'cdk8s-plus-27';
import { Construct } from 'constructs';
import { HEALTH_PORT, METRICS_PORT, POLICY_FILE, POLICY_FOLDER, runArguments } from './arguments.js';
import { INSTALL_NAME, METRICS_SERVICE, podLabels, POLICY_CONFIG_MAP } from './names.js';
import type { InstallProps } from './props.js';
import { MEMORY_LIMIT_MEBIBYTES } from './resources.js';

/** Any number that isn't root's, nor one that a node has given to somebody. */
const USER = 65532;

const POD = '/spec/template/spec';
const CONTAINER = `${POD}/containers/0`;

/** The controller's Deployment, and what stands around it. */
export class Operator extends Construct {
  constructor(
    scope: Construct,
    id: string,
    private readonly props: InstallProps,
  ) {
    super(scope, id);
    const { namespace } = props;
    const labels = podLabels(namespace);
    this.deployment(labels);
    const pods = Pods.select(this, 'Pods', { labels });
    const metrics = new Service(this, 'Metrics', {
      ...{ metadata: { name: METRICS_SERVICE, namespace }, selector: pods },
      ports: [{ name: 'metrics', port: METRICS_PORT, targetPort: METRICS_PORT }],
    });
    ApiObject.of(metrics).addJsonPatch(JsonPatch.remove('/spec/externalIPs'));
    // Whoever collects metrics may be anywhere; probes come from the node.
    const policy = new NetworkPolicy(this, 'NetworkPolicy', {
      ...{ metadata: { name: INSTALL_NAME, namespace }, selector: pods },
      ingress: {
        rules: [{ peer: Namespaces.all(this, 'Anywhere'), ports: [NetworkPolicyPort.tcp(METRICS_PORT)] }],
      },
    });
    ApiObject.of(policy).addJsonPatch(...leaving());
    new ApiObject(this, 'PodDisruptionBudget', {
      ...{ apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' },
      metadata: { name: INSTALL_NAME, namespace },
      spec: { maxUnavailable: 1, selector: { matchLabels: labels } },
    });
  }

  private deployment(labels: Record<string, string>): void {
    const { namespace, replicas, image, policy } = this.props;
    const deployment = new Deployment(this, 'Deployment', {
      metadata: { name: INSTALL_NAME, namespace },
      replicas,
      select: false,
      podMetadata: { labels },
      serviceAccount: ServiceAccount.fromServiceAccountName(this, 'ServiceAccount', INSTALL_NAME),
      automountServiceAccountToken: true,
      strategy: DeploymentStrategy.rollingUpdate({
        maxSurge: PercentOrAbsolute.absolute(1),
        maxUnavailable: PercentOrAbsolute.absolute(0),
      }),
      securityContext: { ensureNonRoot: true, user: USER, group: USER, fsGroup: USER },
      terminationGracePeriod: Duration.seconds(30),
    });
    deployment.select(LabelSelector.of({ labels }));
    const container = deployment.addContainer({
      ...{ name: INSTALL_NAME, image, imagePullPolicy: ImagePullPolicy.IF_NOT_PRESENT },
      args: runArguments(this.props),
      ports: [
        { name: 'metrics', number: METRICS_PORT },
        { name: 'health', number: HEALTH_PORT },
      ],
      liveness: Probe.fromHttpGet('/healthz', { port: HEALTH_PORT, timeoutSeconds: Duration.seconds(5) }),
      readiness: Probe.fromHttpGet('/readyz', { port: HEALTH_PORT, timeoutSeconds: Duration.seconds(5) }),
      startup: Probe.fromHttpGet('/healthz', {
        ...{ port: HEALTH_PORT, periodSeconds: Duration.seconds(1), failureThreshold: 60 },
      }),
      resources: {
        cpu: { request: Cpu.millis(50), limit: Cpu.units(1) },
        memory: { request: Size.mebibytes(128), limit: Size.mebibytes(MEMORY_LIMIT_MEBIBYTES) },
      },
      securityContext: {
        ...{ ensureNonRoot: true, user: USER, group: USER },
        ...{ readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
      },
    });
    if (policy) {
      new ConfigMap(this, 'Policy', {
        metadata: { name: POLICY_CONFIG_MAP, namespace },
        data: { [POLICY_FILE]: policy.text },
      });
      const map = ConfigMap.fromConfigMapName(this, 'PolicyMap', POLICY_CONFIG_MAP);
      const volume = Volume.fromConfigMap(this, 'PolicyVolume', map, { name: 'policy' });
      container.mount(POLICY_FOLDER, volume, { readOnly: true });
    }
    ApiObject.of(deployment).addJsonPatch(...whatPlusLacks(labels));
  }
}

/**
 * Where the API server is isn't known, but that it speaks TCP, and that its name may have to be looked up. Said aloud, it
 * also holds where the namespace lets nothing out by default.
 */
function leaving(): JsonPatch[] {
  const egress = [{ ports: [{ protocol: 'TCP' }, { protocol: 'UDP', port: 53 }] }];
  return [JsonPatch.add('/spec/egress', egress), JsonPatch.add('/spec/policyTypes', ['Ingress', 'Egress'])];
}

/** cdk8s-plus has no words for these, and for the last a label of its own. */
function whatPlusLacks(labels: Readonly<Record<string, string>>): JsonPatch[] {
  return [
    JsonPatch.add(`${POD}/securityContext/seccompProfile`, { type: 'RuntimeDefault' }),
    JsonPatch.add(`${POD}/enableServiceLinks`, false),
    JsonPatch.add(
      `${POD}/topologySpreadConstraints`,
      ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map((topologyKey) => ({
        ...{ maxSkew: 1, topologyKey, whenUnsatisfiable: 'ScheduleAnyway' },
        labelSelector: { matchLabels: labels },
      })),
    ),
    JsonPatch.add(`${CONTAINER}/securityContext/capabilities`, { drop: ['ALL'] }),
    JsonPatch.add(`${CONTAINER}/resources/requests/ephemeral-storage`, quantity('16Mi')),
    JsonPatch.add(`${CONTAINER}/resources/limits/ephemeral-storage`, quantity('256Mi')),
    JsonPatch.remove('/spec/template/metadata/labels/cdk8s.io~1metadata.addr'),
  ];
}

/** As the classes hold it that these patches are applied to. */
function quantity(value: string): { readonly value: string } {
  return { value };
}
