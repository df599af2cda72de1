import { has } from './design.js';
import type { Child, Design } from './design.js';
import { serverPod, taskPod } from './pod.js';
import type { Members } from './pod.js';
import { code, Noted } from './source.js';
import type { Source } from './source.js';

/** What an object has beside its type and its name. */
export function membersOf(child: Child, design: Design): Members {
  if (child === 'ServiceAccount') return {};
  if (child === 'ConfigMap') return { data: code('spec.config') };
  return { spec: SPECS[child](design) };
}

const SPECS: Readonly<Record<Exclude<Child, 'ServiceAccount' | 'ConfigMap'>, (design: Design) => Members>> = {
  PersistentVolumeClaim: claim,
  Service: (design) => ({
    ...(isHeadless(design) && { clusterIP: new Noted('Each pod has a name of its own.', 'None') }),
    selector: serverLabels(design),
    ports: [{ name: 'http', port: code('spec.port'), targetPort: 'http', protocol: 'TCP' }],
  }),
  Deployment: (design) => ({
    ...(has(design, 'PersistentVolumeClaim')
      ? { replicas: 1, strategy: new Noted('The volume is mounted on one node.', { type: 'Recreate' }) }
      : replicas(design)),
    ...pods(design),
  }),
  StatefulSet: (design) => ({
    ...replicas(design),
    ...(has(design, 'Service') && { serviceName: code('name') }),
    ...pods(design),
    volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claim() }],
  }),
  DaemonSet: pods,
  Job: (design) => ({ template: taskTemplate(design, 'Job') }),
  CronJob: (design) => ({
    schedule: code('spec.schedule'),
    concurrencyPolicy: 'Forbid',
    jobTemplate: { spec: { template: taskTemplate(design, 'CronJob') } },
  }),
  HorizontalPodAutoscaler: ({ server = 'Deployment' }) => ({
    scaleTargetRef: { apiVersion: 'apps/v1', kind: server, name: code('name') },
    minReplicas: code('spec.minReplicas'),
    maxReplicas: code('spec.maxReplicas'),
    metrics: [
      {
        type: 'Resource',
        resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } },
      },
    ],
  }),
  PodDisruptionBudget: (design) => ({
    maxUnavailable: 1,
    selector: { matchLabels: serverLabels(design) },
  }),
  Ingress: () => ({
    rules: [
      {
        host: code('spec.host'),
        http: {
          paths: [
            {
              path: '/',
              pathType: 'Prefix',
              backend: { service: { name: code('name'), port: { name: 'http' } } },
            },
          ],
        },
      },
    ],
  }),
  NetworkPolicy: (design) => ({
    podSelector: { matchLabels: code('labels') },
    policyTypes: ['Ingress'],
    ingress: has(design, 'Service')
      ? [{ ports: [{ port: 'http', protocol: 'TCP' }] }]
      : new Noted('Nothing comes in.', []),
  }),
};

function claim(): Members {
  return {
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: code('spec.storage') } },
  };
}

/** With an autoscaler the number is that one's. */
function replicas(design: Design): Members {
  return has(design, 'HorizontalPodAutoscaler') ? {} : { replicas: code('spec.replicas') };
}

/** An Ingress needs a Service with an address. */
function isHeadless(design: Design): boolean {
  return design.server === 'StatefulSet' && !has(design, 'Ingress');
}

/** The pods of what serves, and not those of tasks. */
function serverLabels({ workloads }: Design): Source {
  return code(workloads.length > 1 ? 'server' : 'labels');
}

function pods(design: Design): Members {
  const labels = serverLabels(design);
  return {
    selector: { matchLabels: labels },
    template: {
      metadata: {
        labels,
        ...(has(design, 'ConfigMap') && {
          annotations: new Noted('Other files are other pods.', { 'config-hash': code('configHash') }),
        }),
      },
      spec: serverPod(design),
    },
  };
}

function taskTemplate(design: Design, child: Child): Members {
  return { metadata: { labels: code('labels') }, spec: taskPod(design, child) };
}
