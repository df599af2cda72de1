// if: ConfigMap & server
import { hash } from 'node:crypto';
import { ApiObject } from 'cdk8s';
import { Construct } from 'constructs';
// if: workload
import { selectorLabels } from 'cdk8s-reconstruct';
import type {
  KubernetesManifest,
  // if: workload
  PodSpec,
  // if: server
  PodTemplate,
  PropsOf,
} from 'cdk8s-reconstruct';
import { crd } from './crd.ts';

/** The objects of one Gizmo. */
export class Gizmo extends Construct {
  constructor(scope: Construct, id: string, { metadata: { name }, spec }: PropsOf<typeof crd>) {
    super(scope, id);
    // if: workload
    const labels = selectorLabels(crd, name);
    // if: server
    // Pods of Jobs have no component, so that no Service leads to them.
    const serverLabels = { ...labels, 'app.kubernetes.io/component': 'server' };

    // if: workload
    const pod = (container: Partial<PodSpec['containers'][number]>): PodSpec => ({
      // if: ServiceAccount
      serviceAccountName: name,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'main',
          image: spec.image,
          // The default depends on the tag of the first image.
          imagePullPolicy: 'IfNotPresent',
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          // if: ConfigMap | PersistentVolumeClaim
          volumeMounts: [
            // if: ConfigMap
            { name: 'config', mountPath: '/config' },
            // if: PersistentVolumeClaim
            { name: 'data', mountPath: '/data' },
          ],
          ...container,
        },
      ],
      // if: ConfigMap | PersistentVolumeClaim
      volumes: [
        // if: ConfigMap
        { name: 'config', configMap: { name } },
        // if: PersistentVolumeClaim
        { name: 'data', persistentVolumeClaim: { claimName: name } },
      ],
    });

    // if: server
    const serverTemplate: PodTemplate = {
      metadata: {
        labels: serverLabels,
        // if: ConfigMap
        // Pods are replaced when a file changes.
        annotations: { 'config-hash': hash('sha256', JSON.stringify(Object.entries(spec.config).sort())) },
      },
      spec: pod({
        // if: Service
        ports: [{ name: 'http', containerPort: spec.port, protocol: 'TCP' }],
        // if: Service
        readinessProbe: { tcpSocket: { port: 'http' } },
        // if: HorizontalPodAutoscaler
        resources: { requests: { cpu: spec.cpu } },
        // if: StatefulSet
        volumeMounts: [
          // if: ConfigMap
          { name: 'config', mountPath: '/config' },
          { name: 'data', mountPath: '/data' },
        ],
      }),
    };

    // if: ServiceAccount
    new ApiObject(this, 'ServiceAccount', {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name },
    } satisfies KubernetesManifest);

    // if: ConfigMap
    new ApiObject(this, 'ConfigMap', {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name },
      data: spec.config,
    } satisfies KubernetesManifest);

    // if: PersistentVolumeClaim
    new ApiObject(this, 'PersistentVolumeClaim', {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: spec.storage } } },
    } satisfies KubernetesManifest);

    // if: Service
    new ApiObject(this, 'Service', {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: {
        // if: StatefulSet & !Ingress
        // Headless: each pod has a DNS name of its own.
        clusterIP: 'None',
        selector: serverLabels,
        ports: [{ name: 'http', port: spec.port, targetPort: 'http', protocol: 'TCP' }],
      },
    } satisfies KubernetesManifest);

    // if: Deployment
    new ApiObject(this, 'Deployment', {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name },
      spec: {
        // if: replicas
        replicas: spec.replicas,
        // if: PersistentVolumeClaim
        // The volume is mounted on one node, so the old pod has to go first.
        strategy: { type: 'Recreate' },
        selector: { matchLabels: serverLabels },
        template: serverTemplate,
      },
    } satisfies KubernetesManifest);

    // if: StatefulSet
    new ApiObject(this, 'StatefulSet', {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name },
      spec: {
        // if: replicas
        replicas: spec.replicas,
        // if: Service
        serviceName: name,
        selector: { matchLabels: serverLabels },
        template: serverTemplate,
        volumeClaimTemplates: [
          {
            metadata: { name: 'data' },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: spec.storage } } },
          },
        ],
      },
    } satisfies KubernetesManifest);

    // if: DaemonSet
    new ApiObject(this, 'DaemonSet', {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name },
      spec: { selector: { matchLabels: serverLabels }, template: serverTemplate },
    } satisfies KubernetesManifest);

    // if: Job
    new ApiObject(this, 'Job', {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name },
      spec: {
        template: {
          metadata: { labels },
          spec: { restartPolicy: 'Never', ...pod({ command: spec.jobCommand }) },
        },
      },
    } satisfies KubernetesManifest);

    // if: CronJob
    new ApiObject(this, 'CronJob', {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name },
      spec: {
        schedule: spec.schedule,
        concurrencyPolicy: 'Forbid',
        jobTemplate: {
          spec: {
            template: {
              metadata: { labels },
              spec: { restartPolicy: 'Never', ...pod({ command: spec.cronJobCommand }) },
            },
          },
        },
      },
    } satisfies KubernetesManifest);

    // if: HorizontalPodAutoscaler
    new ApiObject(this, 'HorizontalPodAutoscaler', {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name },
      spec: {
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'GizmoServer', name },
        minReplicas: spec.minReplicas,
        maxReplicas: spec.maxReplicas,
        metrics: [
          {
            type: 'Resource',
            resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } },
          },
        ],
      },
    } satisfies KubernetesManifest);

    // if: PodDisruptionBudget
    new ApiObject(this, 'PodDisruptionBudget', {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name },
      spec: { maxUnavailable: 1, selector: { matchLabels: serverLabels } },
    } satisfies KubernetesManifest);

    // if: Ingress
    new ApiObject(this, 'Ingress', {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata: { name },
      spec: {
        rules: [
          {
            host: spec.host,
            http: {
              paths: [
                { path: '/', pathType: 'Prefix', backend: { service: { name, port: { name: 'http' } } } },
              ],
            },
          },
        ],
      },
    } satisfies KubernetesManifest);

    // if: NetworkPolicy
    new ApiObject(this, 'NetworkPolicy', {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name },
      spec: {
        podSelector: { matchLabels: labels },
        policyTypes: ['Ingress'],
        // Only what is listed comes in.
        ingress: [
          // if: Service
          { ports: [{ port: 'http', protocol: 'TCP' }] },
        ],
      },
    } satisfies KubernetesManifest);
  }
}
