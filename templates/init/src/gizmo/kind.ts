import {
  defineKind,
  // if: workload
  podsOf,
} from 'cdk8s-reconstruct';
import { Gizmo } from './construct.ts';
import { crd } from './crd.ts';

export const kind = defineKind({
  crd,
  construct: Gizmo,
  children: [
    // if: ServiceAccount
    { apiVersion: 'v1', kind: 'ServiceAccount' },
    // if: ConfigMap
    { apiVersion: 'v1', kind: 'ConfigMap' },
    // if: PersistentVolumeClaim
    { apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
    // if: Service
    { apiVersion: 'v1', kind: 'Service' },
    // if: Deployment
    { apiVersion: 'apps/v1', kind: 'Deployment' },
    // if: StatefulSet
    { apiVersion: 'apps/v1', kind: 'StatefulSet' },
    // if: DaemonSet
    { apiVersion: 'apps/v1', kind: 'DaemonSet' },
    // if: Job
    // The pod template of a Job is immutable.
    { apiVersion: 'batch/v1', kind: 'Job', recreate: true },
    // if: CronJob
    { apiVersion: 'batch/v1', kind: 'CronJob' },
    // if: HorizontalPodAutoscaler
    { apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler' },
    // if: PodDisruptionBudget
    { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' },
    // if: Ingress
    { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' },
    // if: NetworkPolicy
    { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' },
  ],
  // if: workload
  // The conditions say why a Pod doesn't run.
  related: [podsOf(crd)],
});
