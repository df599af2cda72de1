import { storedVersion } from '../contract/crd.js';
import { ADMIN_FILES } from '../contract/kind.js';
import type { Kind } from '../contract/kind.js';
import { keyOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { alertGroups, dashboardText } from './chart.js';
import { prometheusRuleType, serviceMonitorType } from './objects.js';
import {
  accessName,
  CERTIFICATE_FOLDER,
  DASHBOARD_CONFIG_MAP,
  INSTALL_LABELS,
  INSTALL_NAME,
  INSTALLATION_LABEL,
  METRICS_SERVICE,
  MOUNTED,
  OPTIONS_ANNOTATION,
  podLabels,
} from './names.js';
import { optionsOf } from './props.js';
import type { InstallProps } from './props.js';
import { accessObjects, installedRules } from './rules.js';
import type { PolicyRule } from './rules.js';

/** Order in which objects are applied: each comes after what it needs. */
const ORDER = [
  ...['Namespace', 'CustomResourceDefinition', 'ServiceAccount'],
  ...['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'],
  ...['ConfigMap', 'NetworkPolicy', 'Service', 'PodDisruptionBudget', 'ServiceMonitor', 'PrometheusRule'],
  'Deployment',
];

/** Namespaces of Kubernetes, whose labels aren't ours to set. */
const FOREIGN_NAMESPACE = /^(default|kube-.*)$/;

/** Ports as in the manifests of kubebuilder. */
const METRICS_PORTS = { plain: 8080, secure: 8443 } as const;
const HEALTH_PORT = 8081;

/**
 * Returns the objects of an installation in the order in which they have to be applied. charts/reconstruct has the same as
 * templates; a test compares the two.
 *
 * **Guarantees.** In memory, without I/O; the same input gives the same objects in the same order.
 *
 * @throws OperatorError `InvalidInput` where a flag's value or the policy can't be worked with
 */
export function installManifests(props: InstallProps): AnyObject[] {
  const { namespace, kinds, controllers = [] } = props;
  const pods = podLabels(namespace);
  const metricsPort = metricsPortOf(props);
  const others: AnyObject[] = [
    ...(FOREIGN_NAMESPACE.test(namespace) ? [] : [restrictedNamespace(namespace)]),
    // Has no token of its own: the Pod asks for one.
    made('v1', 'ServiceAccount', namespace, INSTALL_NAME, { automountServiceAccountToken: false }),
    ...(accessObjects(installedRules([...kinds, ...controllers], props), props) as unknown as AnyObject[]),
    ...userRoles(props),
    ...(props.secureMetrics ? [metricsReader(namespace)] : []),
    ...filesIn(props).map(({ configMap, key, text }) =>
      made('v1', 'ConfigMap', namespace, configMap, { data: { [key]: text } }),
    ),
    // Metrics may be collected from anywhere. Address and port of the API server differ from cluster to cluster.
    made('networking.k8s.io/v1', 'NetworkPolicy', namespace, INSTALL_NAME, {
      spec: {
        podSelector: { matchLabels: pods },
        policyTypes: ['Ingress', 'Egress'],
        ingress: [{ from: [{ namespaceSelector: {} }], ports: [{ port: metricsPort, protocol: 'TCP' }] }],
        egress: [{ ports: [{ protocol: 'TCP' }, { protocol: 'UDP', port: 53 }] }],
      },
    }),
    made('v1', 'Service', namespace, METRICS_SERVICE, {
      spec: {
        selector: pods,
        ports: [{ name: 'metrics', port: metricsPort, targetPort: 'metrics' }],
        type: 'ClusterIP',
      },
    }),
    made('policy/v1', 'PodDisruptionBudget', namespace, INSTALL_NAME, {
      spec: { maxUnavailable: 1, selector: { matchLabels: pods } },
    }),
    ...monitoring(props),
    deployment(props),
  ];
  const labels = { ...INSTALL_LABELS, [INSTALLATION_LABEL]: namespace };
  const objects = [
    ...kinds.map(({ crd }) => labelled(crd as unknown as AnyObject, INSTALL_LABELS)),
    ...others.map((object) => labelled(object, labels)),
  ];
  const rank = ({ kind }: AnyObject): number => ORDER.indexOf(kind);
  return objects.sort((a, b) => rank(a) - rank(b) || (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** Returns the files of the admin that are given, with their places. */
function filesIn(props: InstallProps) {
  return ADMIN_FILES.flatMap((name) =>
    props[name] ? [{ name, ...MOUNTED[name], text: props[name].text }] : [],
  );
}

function made(apiVersion: string, kind: string, namespace: string, name: string, rest: object): AnyObject {
  return { apiVersion, kind, metadata: { name, namespace }, ...rest };
}

function labelled(
  { apiVersion, kind, metadata, ...rest }: AnyObject,
  labels: Readonly<Record<string, string>>,
): AnyObject {
  return { apiVersion, kind, metadata: { ...metadata, labels: { ...metadata.labels, ...labels } }, ...rest };
}

function restrictedNamespace(name: string): AnyObject {
  const labels = {
    'pod-security.kubernetes.io/enforce': 'restricted',
    'pod-security.kubernetes.io/warn': 'restricted',
  };
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
}

const READ = ['get', 'list', 'watch'];
const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update'];

/** Kubernetes' user-facing roles; each has the rights of those before it. */
const USER_ROLES = ['view', 'edit', 'admin'] as const;
type UserRole = (typeof USER_ROLES)[number];

/**
 * Returns what users may do with custom resources. ClusterRoles are aggregated into `view`, `edit` and `admin`; in single
 * namespaces there are Roles instead, which have to be bound.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/rbac/#user-facing-roles
 */
function userRoles({ namespace, kinds, watchNamespaces }: InstallProps): AnyObject[] {
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  return USER_ROLES.flatMap((role): AnyObject[] => {
    const name = accessName(namespace, role);
    const rules = userRules(kinds, role, watchNamespaces !== undefined);
    if (rules.length === 0) return [];
    if (watchNamespaces)
      return watchNamespaces.map((watched) => made(apiVersion, 'Role', watched, name, { rules }));
    const labels = { [`rbac.authorization.k8s.io/aggregate-to-${role}`]: 'true' };
    return [{ apiVersion, kind: 'ClusterRole', metadata: { name, labels }, rules }];
  });
}

/** @param whole with the rights of the roles before it: nothing aggregates into a Role */
function userRules(kinds: readonly Kind[], role: UserRole, whole: boolean): PolicyRule[] {
  const level = USER_ROLES.indexOf(role);
  const has = (of: UserRole): boolean =>
    whole ? USER_ROLES.indexOf(of) <= level : USER_ROLES.indexOf(of) === level;
  return kinds.flatMap(({ type: { plural }, crd, writers = 'edit' }) => {
    const scale = storedVersion(crd).subresources?.scale ? [`${plural}/scale`] : [];
    const rule = (resources: readonly string[], verbs: readonly string[]): PolicyRule => ({
      ...{ apiGroups: [crd.spec.group], resources, verbs },
    });
    return [
      ...(has('view') ? [rule([plural], READ), rule([`${plural}/status`, ...scale], ['get'])] : []),
      ...(has(writers) ? [rule([plural], WRITE)] : []),
      ...(has(writers) && scale.length > 0 ? [rule(scale, ['patch', 'update'])] : []),
    ];
  });
}

function metricsPortOf({ secureMetrics }: InstallProps): number {
  return METRICS_PORTS[secureMetrics ? 'secure' : 'plain'];
}

/** Returns the right to read the metrics, which the admin binds to the ServiceAccount of a scraper. */
function metricsReader(namespace: string): AnyObject {
  return {
    ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' },
    metadata: { name: accessName(namespace, 'metrics-reader') },
    rules: [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }],
  };
}

/** Returns how Prometheus reaches the metrics: with the token of its own ServiceAccount, where they are secure. */
function metricsEndpoint({ namespace, secureMetrics }: InstallProps): object {
  // Twice within the shortest time that an alert waits for.
  const endpoint = { port: 'metrics', interval: '30s' };
  if (!secureMetrics) return endpoint;
  const { certificateSecret: name } = secureMetrics;
  return {
    ...endpoint,
    scheme: 'https',
    bearerTokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token',
    tlsConfig:
      name === undefined
        ? { insecureSkipVerify: true }
        : { ca: { secret: { name, key: 'ca.crt' } }, serverName: `${METRICS_SERVICE}.${namespace}.svc` },
  };
}

function monitoring(install: InstallProps): AnyObject[] {
  const { namespace, monitoring: props } = install;
  const { parts = [], labels = {} } = props ?? {};
  const metadata = { name: INSTALL_NAME, namespace, labels };
  const { apiVersion } = serviceMonitorType;
  const objects = {
    'service-monitor': {
      ...{ apiVersion, kind: serviceMonitorType.kind, metadata },
      spec: {
        selector: { matchLabels: podLabels(namespace) },
        namespaceSelector: { matchNames: [namespace] },
        endpoints: [metricsEndpoint(install)],
      },
    },
    rules: {
      ...{ apiVersion, kind: prometheusRuleType.kind, metadata },
      spec: { groups: alertGroups(namespace, props?.runbooks) },
    },
    dashboard: {
      ...{ apiVersion: 'v1', kind: 'ConfigMap' },
      // By this label the sidecar of Grafana's chart finds dashboards.
      metadata: { name: DASHBOARD_CONFIG_MAP, namespace, labels: { grafana_dashboard: '1', ...labels } },
      data: { 'reconstruct.json': dashboardText() },
    },
  };
  return parts.map((part) => objects[part]);
}

/** User ID that is neither root's nor that of a node's user; the image has it, too. */
const USER_ID = 65532;

function deployment(props: InstallProps): AnyObject {
  const { namespace, replicas, image, secureMetrics, omitUserIds } = props;
  const user = {
    runAsNonRoot: true,
    ...(!omitUserIds && { runAsUser: USER_ID, runAsGroup: USER_ID }),
  };
  const labels = podLabels(namespace);
  const mounts = [
    ...filesIn(props).map(({ name, folder, configMap }) => ({
      ...{ name, mountPath: folder, source: { configMap: { name: configMap } } },
    })),
    ...(secureMetrics?.certificateSecret === undefined
      ? []
      : [
          {
            ...{ name: 'metrics-certificate', mountPath: CERTIFICATE_FOLDER },
            source: { secret: { secretName: secureMetrics.certificateSecret } },
          },
        ]),
  ];
  const probe = (path: string): object => ({ httpGet: { path, port: 'health' } });
  const container = {
    ...{ name: INSTALL_NAME, image, imagePullPolicy: 'IfNotPresent', args: runArguments(props) },
    ports: [
      { name: 'metrics', containerPort: metricsPortOf(props) },
      { name: 'health', containerPort: HEALTH_PORT },
    ],
    livenessProbe: { ...probe('/healthz'), timeoutSeconds: 5 },
    readinessProbe: { ...probe('/readyz'), timeoutSeconds: 5 },
    startupProbe: { ...probe('/healthz'), periodSeconds: 1, failureThreshold: 60 },
    resources: {
      requests: { cpu: '50m', memory: '128Mi', 'ephemeral-storage': '16Mi' },
      limits: { cpu: '1', memory: '512Mi', 'ephemeral-storage': '256Mi' },
    },
    securityContext: {
      ...{ ...user, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
      capabilities: { drop: ['ALL'] },
    },
    ...(mounts.length > 0 && {
      volumeMounts: mounts.map(({ name, mountPath }) => ({ name, mountPath, readOnly: true })),
    }),
  };
  const pod = {
    ...{ serviceAccountName: INSTALL_NAME, automountServiceAccountToken: true },
    ...{ enableServiceLinks: false, terminationGracePeriodSeconds: 30 },
    securityContext: {
      ...{ ...user, ...(!omitUserIds && { fsGroup: USER_ID }) },
      seccompProfile: { type: 'RuntimeDefault' },
    },
    topologySpreadConstraints: ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map(
      (topologyKey) => ({
        ...{ maxSkew: 1, topologyKey, whenUnsatisfiable: 'ScheduleAnyway' },
        labelSelector: { matchLabels: labels },
      }),
    ),
    containers: [container],
    ...(mounts.length > 0 && { volumes: mounts.map(({ name, source }) => ({ name, ...source })) }),
  };
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: {
      ...{ name: INSTALL_NAME, namespace },
      annotations: { [OPTIONS_ANNOTATION]: JSON.stringify(optionsOf(props)) },
    },
    spec: {
      ...{ replicas, selector: { matchLabels: labels } },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      template: { metadata: { labels }, spec: pod },
    },
  };
}

/**
 * Returns the arguments of the container. The kinds are always named, so that an image with more of them doesn't ask for
 * what wasn't granted.
 */
function runArguments(props: InstallProps): string[] {
  const { flags = {}, secureMetrics } = props;
  const options = optionsOf(props);
  const given = (names: readonly string[]): string[] =>
    names.flatMap((name) => (options[name] === undefined ? [] : [`${name}=${options[name]}`]));
  return [
    'run',
    ...given(['--kinds', '--watch-namespace']),
    ...filesIn(props).map(({ name, folder, key }) => `--${name}=${folder}/${key}`),
    '--leader-elect',
    ...given(['--on-upgrade']),
    `--metrics-bind-address=:${metricsPortOf(props)}`,
    ...(secureMetrics ? ['--metrics-secure'] : []),
    ...(secureMetrics?.certificateSecret === undefined ? [] : [`--metrics-cert-path=${CERTIFICATE_FOLDER}`]),
    `--health-bind-address=:${HEALTH_PORT}`,
    ...given(Object.keys(flags).sort()),
  ];
}
