import type { Path } from './shape.js';

const NAMES = ['one', 'two', 'three'];
const ARGUMENTS = ['/one', '--two', 'three words', ''];
const PROBED_PORTS = [80, 81, 'web', 'api'];
const PORTS = [80, 81, 82, 443];
const AMOUNTS = ['1', '500m', 2];

/**
 * Values that the API server takes, also in the children, by the end of the path; the longest end counts. Some
 * are written in other ways than they are stored, and some are what is the default anyway.
 */
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  size: [0, 1],
  image: [1, 2, 3].map((tag) => `example.com/web:${tag}`),

  'ports.[].name': ['http', 'web', 'api', 'dns'],
  'ports.[].port': PORTS,
  'ports.[].appProtocol': ['http', 'kubernetes.io/h2c'],
  'ports.[].targetPort': [80, 8080, 8081, 'web', 'api'],
  // Two to be told apart; which numbers they are in the cluster is up to whoever walks.
  'ports.[].nodePort': [30_030, 30_031],

  'limits.cpu': [1, '1500m', '2.5'],
  'limits.memory': ['1Gi', '2048Mi', 3_221_225_472],
  'limits.ephemeral-storage': ['2Gi', '3Gi'],
  'requests.cpu': ['100m', '0.1', 1],
  'requests.memory': ['64Mi', '1Gi', 67_108_864],
  'requests.ephemeral-storage': ['1Gi', '1024Mi'],
  'claims.[].name': ['gpu', 'fpga'],
  'claims.[].request': NAMES,

  'envs.[].name': ['A', 'B', 'C', 'D', 'a.b'],
  'envs.[].value': ['', '1', '$(A) and $(B)', 'two words'],
  'fieldRef.apiVersion': ['v1'],
  'fieldRef.fieldPath': ['metadata.name', 'metadata.uid', 'spec.nodeName', 'status.podIP'],
  'resourceFieldRef.containerName': NAMES,
  'resourceFieldRef.resource': ['limits.cpu', 'requests.cpu', 'limits.memory', 'requests.memory'],
  'resourceFieldRef.divisor': [1, '1', '1m', '1Mi'],
  'fileKeyRef.volumeName': NAMES,
  'fileKeyRef.path': ['a.env', 'b.env'],
  'envFrom.[].prefix': ['A_', 'B_', ''],

  'command.[]': ARGUMENTS,
  'args.[]': ARGUMENTS,
  workingDir: ['/one', '/two'],
  serviceAccountName: NAMES,

  'httpGet.path': ['/', '/one', '/two'],
  'httpGet.port': PROBED_PORTS,
  'httpHeaders.[].name': ['A', 'B-C'],
  'httpHeaders.[].value': ['1', '2', ''],
  'tcpSocket.port': PROBED_PORTS,
  'grpc.port': PORTS,
  'grpc.service': ['', ...NAMES],
  initialDelaySeconds: [0, 1, 2],
  periodSeconds: [3, 10],
  timeoutSeconds: [1, 5],
  'readiness.successThreshold': [1, 2, 3],
  successThreshold: [1],
  failureThreshold: [3, 7],
  terminationGracePeriodSeconds: [30, 40, 50],

  minReplicas: [1, 2],
  maxReplicas: [1, 2, 3],
  'autoscaling.cpu': [60, 70],
  'autoscaling.memory': [60, 70],
  'resource.name': ['cpu', 'memory'],
  'containerResource.name': ['cpu', 'memory'],
  'containerResource.container': NAMES,
  'target.averageUtilization': [50, 60],
  'target.averageValue': AMOUNTS,
  'target.value': AMOUNTS,
  'describedObject.apiVersion': ['v1', 'example.com/v1'],
  'describedObject.kind': ['One', 'Two'],
  'matchExpressions.[].key': ['tier', 'track'],
  stabilizationWindowSeconds: [0, 10, 300],
  tolerance: ['200m', '0.3', 1],
  'policies.[].value': [1, 2],
  'policies.[].periodSeconds': [15, 30],

  'hostnames.[]': ['one.example.com', '*.example.com', 'two.example.com'],
  'parentRefs.[].namespace': NAMES,
  'parentRefs.[].sectionName': NAMES,
  'route.path': ['/', '/one', '/two'],
  'route.port': PORTS,
  'disruption.maxUnavailable': [0, 1, 2, '30%'],

  'constraints.[].maxSkew': [1, 2],
  'constraints.[].topologyKey': ['topology.kubernetes.io/zone', 'kubernetes.io/hostname'],
  'constraints.[].matchLabelKeys.[]': ['pod-template-hash', 'revision', 'colour'],
  'constraints.[].minDomains': [1, 2],

  'files.[].path': ['/one', '/two/three', '/four', '/five'],
  'items.[].key': ['a', 'b'],
  'items.[].path': ['a', 'b/c'],
  'items.[].mode': [256, 420],
  defaultMode: [256, 420],
  'emptyDir.medium': ['', 'Memory', 'HugePages-2Mi'],
  'emptyDir.sizeLimit': ['1Gi', '512Mi', 0],
  'token.audience': NAMES,
  'token.expirationSeconds': [600, 3600],

  'rollingUpdate.maxSurge': [0, 1, '25%', '30%'],
  'rollingUpdate.maxUnavailable': [0, 1, '25%', '30%'],
  minReadySeconds: [0, 1, 2],
  progressDeadlineSeconds: [600, 700],
  'preStop.sleep.seconds': [1, 2],

  name: NAMES,
  namespace: NAMES,
  claimName: NAMES,
  key: ['a', 'b', 'c'],
  'values.[]': ['a', 'b', ''],
  'matchLabels.tier': NAMES,
  'matchLabels.track': NAMES,
};

/** @throws for a field that isn't known here, so that no new one goes unnoticed */
export function valuesFor(path: Path): readonly unknown[] {
  for (let start = 0; start < path.length; start++) {
    const values = VALUES[path.slice(start).join('.')];
    if (values) return values;
  }
  throw new Error(`There are no values for ${path.join('.')}`);
}

/** The keys of a map. */
export function keysFor(path: Path): readonly string[] {
  return path[0] === 'resources' ? ['cpu', 'memory', 'ephemeral-storage'] : ['tier', 'track'];
}
