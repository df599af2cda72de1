import { ApiObject, App, Chart, Duration, JsonPatch, Size } from 'cdk8s';
import {
  ConfigMap,
  Cpu,
  Deployment,
  DeploymentStrategy,
  ImagePullPolicy,
  LabelSelector,
  Namespace,
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
import { storedVersion } from '../contract/crd.js';
import type { Kind } from '../contract/kind.js';
import type { AnyObject } from '../contract/object.js';
import { OperatorAccess } from './access.js';
import {
  HEALTH_PORT,
  METRICS_PORT,
  POLICY_FILE,
  POLICY_FOLDER,
  runArguments,
  MEMORY_LIMIT_MEBIBYTES,
} from './arguments.js';
import { Monitoring } from './monitoring/monitoring.js';
import {
  accessName,
  INSTALL_NAME,
  INSTALLATION_LABEL,
  installLabels,
  METRICS_SERVICE,
  podLabels,
  POLICY_CONFIG_MAP,
} from './names.js';
import type { InstallProps } from './props.js';
import type { PolicyRule } from './rules.js';

/** Namespaces that are somebody else's, whose labels aren't ours to set. */
const FOREIGN_NAMESPACE = /^(default|kube-.*)$/;

/** What nothing works without: it has to be there before the rest, and stays when the operator goes. */
class Definitions extends Chart {
  constructor(scope: Construct, id: string, { kinds, managedBy }: InstallProps) {
    super(scope, id, { labels: installLabels(managedBy), disableResourceNameHashes: true });
    for (const { crd } of kinds) new ApiObject(this, crd.metadata.name, crd);
  }
}

/** The operator itself. */
class Installation extends Chart {
  constructor(scope: Construct, id: string, props: InstallProps) {
    const { namespace, managedBy } = props;
    super(scope, id, {
      labels: { ...installLabels(managedBy), [INSTALLATION_LABEL]: namespace },
      disableResourceNameHashes: true,
    });
    if (!FOREIGN_NAMESPACE.test(namespace))
      new Namespace(this, 'Namespace', { metadata: { name: namespace, labels: POD_SECURITY } });
    new ServiceAccount(this, 'ServiceAccount', {
      ...{ metadata: { name: INSTALL_NAME, namespace }, automountToken: false },
    });
    new OperatorAccess(this, 'Access', props);
    new UserRoles(this, 'UserRoles', props);
    new Operator(this, 'Operator', props);
    if (props.monitoring) new Monitoring(this, 'Monitoring', { ...props.monitoring, namespace });
  }
}

const POD_SECURITY = {
  'pod-security.kubernetes.io/enforce': 'restricted',
  'pod-security.kubernetes.io/warn': 'restricted',
};

/** Whatever else needs something comes after it. */
const ORDER = [
  'Namespace',
  'CustomResourceDefinition',
  'ServiceAccount',
  'ClusterRole',
  'ClusterRoleBinding',
  'Role',
  'RoleBinding',
  'ConfigMap',
  'NetworkPolicy',
  'Service',
  'PodDisruptionBudget',
  'ServiceMonitor',
  'PrometheusRule',
  'Deployment',
];

/**
 * Everything that an installation consists of, in the order in which it has to be applied.
 *
 * **Guarantees.** In memory, without I/O; the same input gives the same objects in the same order.
 *
 * @throws OperatorError `InvalidInput` where a flag's value or the policy can't be worked with
 */
export function installManifests(props: InstallProps): AnyObject[] {
  const app = new App();
  const charts = [new Definitions(app, 'definitions', props), new Installation(app, INSTALL_NAME, props)];
  const objects = charts.flatMap((chart) => chart.toJson() as AnyObject[]).map(inOrder);
  return objects.sort((a, b) => rank(a) - rank(b) || (idOf(a) < idOf(b) ? -1 : 1));
}

function inOrder({ apiVersion, kind, metadata, ...rest }: AnyObject): AnyObject {
  return { apiVersion, kind, metadata, ...rest };
}

function rank({ kind }: AnyObject): number {
  return ORDER.indexOf(kind);
}

function idOf({ metadata: { namespace = '', name } }: AnyObject): string {
  return `${namespace}/${name}`;
}

const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update'];

/** Kubernetes' own user-facing roles; each has the rights of those before it. */
const USER_ROLES = ['view', 'edit', 'admin'] as const;
type UserRole = (typeof USER_ROLES)[number];

/**
 * What users may do with custom resources. In the whole cluster it is added to the roles `view`, `edit` and `admin`,
 * so that whoever has those has it; in single namespaces there are Roles of that use, which have to be bound.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/rbac/#user-facing-roles
 */
class UserRoles extends Construct {
  constructor(scope: Construct, id: string, { namespace, kinds, watchNamespaces }: InstallProps) {
    super(scope, id);
    for (const role of USER_ROLES) {
      const common = { apiVersion: 'rbac.authorization.k8s.io/v1' };
      const name = accessName(namespace, role);
      const rules = userRules(kinds, role, watchNamespaces !== undefined);
      if (rules.length === 0) continue;
      if (!watchNamespaces) {
        const labels = { [`rbac.authorization.k8s.io/aggregate-to-${role}`]: 'true' };
        new ApiObject(this, role, { ...common, kind: 'ClusterRole', metadata: { name, labels }, rules });
      }
      for (const watched of watchNamespaces ?? [])
        new ApiObject(this, `${role}-in-${watched}`, {
          ...{ ...common, kind: 'Role', metadata: { name, namespace: watched }, rules },
        });
    }
  }
}

/** @param whole with the rights of the roles before it: nothing adds them to a Role */
function userRules(kinds: readonly Kind[], role: UserRole, whole: boolean): PolicyRule[] {
  const level = USER_ROLES.indexOf(role);
  const counts = (of: UserRole): boolean =>
    whole ? USER_ROLES.indexOf(of) <= level : USER_ROLES.indexOf(of) === level;
  return kinds.flatMap((kind) => [
    ...(counts('view') ? readRules(kind) : []),
    ...(counts(kind.writers ?? 'edit') ? writeRules(kind) : []),
  ]);
}

function readRules(kind: Kind): PolicyRule[] {
  return [rule(kind, [''], READ), rule(kind, ['/status', ...scaleOf(kind)], ['get'])];
}

function writeRules(kind: Kind): PolicyRule[] {
  const scale = scaleOf(kind);
  return [rule(kind, [''], WRITE), ...(scale.length > 0 ? [rule(kind, scale, ['patch', 'update'])] : [])];
}

function rule({ type, crd }: Kind, subresources: readonly string[], verbs: readonly string[]): PolicyRule {
  const resources = subresources.map((subresource) => type.plural + subresource);
  return { apiGroups: [crd.spec.group], resources, verbs };
}

function scaleOf({ crd }: Kind): string[] {
  return storedVersion(crd).subresources?.scale ? ['/scale'] : [];
}

/** Any number that isn't root's, nor one that a node has given to somebody. */
const USER = 65532;

const POD = '/spec/template/spec';
const CONTAINER = `${POD}/containers/0`;

/** The controller's Deployment, and what stands around it. */
class Operator extends Construct {
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
