import { childReadiness, defineKind, worstReadiness } from 'cdk8s-reconstruct';
import type { AnyObject, Readiness } from 'cdk8s-reconstruct';
import { crd } from './crd.ts';
import { EventBus } from './event-bus.ts';

interface StatefulSetStatus {
  readonly replicas?: number;
  readonly readyReplicas?: number;
  readonly updatedReplicas?: number;
  readonly currentRevision?: string;
  readonly updateRevision?: string;
}

export const eventBus = defineKind({
  crd,
  construct: EventBus,
  children: [
    { apiVersion: 'v1', kind: 'ConfigMap' },
    { apiVersion: 'v1', kind: 'Service' },
    { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' },
    { apiVersion: 'apps/v1', kind: 'StatefulSet' },
  ],
  status({ cr, children }) {
    const servers = children.find(({ kind }) => kind === 'StatefulSet');
    const status: StatefulSetStatus = servers?.status ?? {};
    const { replicas = 0, readyReplicas = 0, updatedReplicas = 0 } = status;
    return {
      readiness: readiness(servers, status, cr.spec.replicas),
      fields: { replicas, readyReplicas, updatedReplicas },
    };
  },
});

function readiness(servers: AnyObject | undefined, status: StatefulSetStatus, wanted: number): Readiness {
  if (!servers)
    return { phase: 'progressing', reason: 'Starting', message: 'The servers are yet to be made' };
  const judged = worstReadiness([childReadiness(servers)]);
  if (judged.phase === 'ready')
    return { phase: 'ready', reason: 'Available', message: `All of ${wanted} servers are ready` };
  if (judged.phase !== 'progressing') return judged;
  const { readyReplicas = 0, updatedReplicas = 0, currentRevision, updateRevision } = status;
  if (currentRevision === updateRevision || updatedReplicas >= wanted)
    return {
      phase: 'progressing',
      reason: 'Starting',
      message: `${readyReplicas} of ${wanted} servers are ready`,
    };
  // A StatefulSet replaces the last pod first.
  const next = `${servers.metadata.name}-${wanted - updatedReplicas - 1}`;
  const message = `${updatedReplicas} of ${wanted} servers run with the present settings, and ${readyReplicas} are ready; ${next} is next`;
  return { phase: 'progressing', reason: 'RollingOut', message };
}
