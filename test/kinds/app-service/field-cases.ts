import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';

/** One optional field with a value that says much, and where in the output it may be seen. */
export interface FieldCase {
  readonly field: keyof AppServiceSpec;
  readonly value: unknown;
  /** `Kind`, or `Kind.path`; indexes count as steps. */
  readonly touches: readonly string[];
}

const POD = 'Deployment.spec.template.spec';
const CONTAINER = `${POD}.containers.0`;

/** What every case is added to. */
export const BASE: AppServiceSpec = {
  size: 3,
  image: 'nginx:1.27',
  ports: [
    { name: 'dns', port: 53, protocol: 'UDP' },
    { name: 'http', port: 80, targetPort: 8080 },
    { name: 'metrics', port: 9090 },
  ],
  resources: { requests: { cpu: '100m', memory: '64Mi' } },
};

/** Each field beyond the tutorial's. */
export const fieldCases: readonly FieldCase[] = [
  {
    field: 'envFrom',
    value: [
      { configMapRef: { name: 'settings' } },
      { prefix: 'DB_', secretRef: { name: 'db', optional: true } },
    ],
    touches: [`${CONTAINER}.envFrom`],
  },
  { field: 'command', value: ['/bin/web'], touches: [`${CONTAINER}.command`] },
  { field: 'args', value: ['--port', '8080'], touches: [`${CONTAINER}.args`] },
  { field: 'workingDir', value: '/srv', touches: [`${CONTAINER}.workingDir`] },
  { field: 'imagePullPolicy', value: 'Always', touches: [`${CONTAINER}.imagePullPolicy`] },
  { field: 'imagePullSecrets', value: [{ name: 'registry' }], touches: [`${POD}.imagePullSecrets`] },
  {
    field: 'serviceAccountName',
    value: 'shop',
    touches: [`${POD}.serviceAccountName`, `${POD}.serviceAccount`],
  },
  {
    field: 'automountServiceAccountToken',
    value: true,
    touches: [`${POD}.automountServiceAccountToken`],
  },
  {
    field: 'probes',
    value: {
      readiness: { httpGet: { path: '/ready', port: 8080 }, periodSeconds: 5 },
      liveness: { tcpSocket: { port: 8080 } },
      startup: { exec: { command: ['/bin/true'] }, failureThreshold: 30 },
    },
    touches: ['readinessProbe', 'livenessProbe', 'startupProbe'].map((probe) => `${CONTAINER}.${probe}`),
  },
  {
    field: 'autoscaling',
    value: {
      ...{ minReplicas: 2, maxReplicas: 10, cpu: 80, memory: 70 },
      metrics: [
        {
          type: 'Pods',
          pods: { metric: { name: 'requests' }, target: { type: 'AverageValue', averageValue: '100' } },
        },
      ],
      behavior: { scaleDown: { stabilizationWindowSeconds: 60 } },
    },
    // Whether a budget makes sense depends on how many replicas there can be.
    touches: ['HorizontalPodAutoscaler', 'Deployment.spec.replicas', 'PodDisruptionBudget'],
  },
  {
    field: 'securityProfile',
    value: 'Restricted',
    touches: [
      ...['securityContext', 'automountServiceAccountToken', 'enableServiceLinks'].map(
        (key) => `${POD}.${key}`,
      ),
      `${CONTAINER}.securityContext`,
    ],
  },
  {
    field: 'route',
    value: {
      hostnames: ['shop.example.com'],
      parentRefs: [{ name: 'public', namespace: 'gateways', sectionName: 'https' }],
      path: '/api',
      port: 9090,
    },
    touches: ['HTTPRoute'],
  },
  { field: 'disruption', value: { maxUnavailable: '25%' }, touches: ['PodDisruptionBudget'] },
  { field: 'topologySpread', value: {}, touches: [`${POD}.topologySpreadConstraints`] },
  {
    field: 'files',
    value: [
      { path: '/etc/web', configMap: { name: 'web', items: [{ key: 'a', path: 'b' }], defaultMode: 256 } },
      { path: '/etc/secret', secret: { name: 'web', optional: true } },
      { path: '/cache', emptyDir: { sizeLimit: '1Gi' } },
      { path: '/data', persistentVolumeClaim: { claimName: 'data' }, readOnly: false },
      { path: '/var/run/token', token: { audience: 'vault', expirationSeconds: 600 } },
    ],
    touches: [`${POD}.volumes`, `${CONTAINER}.volumeMounts`],
  },
  {
    field: 'service',
    value: {
      type: 'LoadBalancer',
      sessionAffinity: 'ClientIP',
      externalTrafficPolicy: 'Local',
      trafficDistribution: 'PreferClose',
    },
    touches: ['type', 'sessionAffinity', 'externalTrafficPolicy', 'trafficDistribution'].map(
      (key) => `Service.spec.${key}`,
    ),
  },
  {
    field: 'strategy',
    value: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    touches: ['Deployment.spec.strategy'],
  },
  { field: 'minReadySeconds', value: 5, touches: ['Deployment.spec.minReadySeconds'] },
  { field: 'progressDeadlineSeconds', value: 120, touches: ['Deployment.spec.progressDeadlineSeconds'] },
  {
    field: 'terminationGracePeriodSeconds',
    value: 0,
    touches: [`${POD}.terminationGracePeriodSeconds`],
  },
  { field: 'preStop', value: { sleep: { seconds: 5 } }, touches: [`${CONTAINER}.lifecycle`] },
];
