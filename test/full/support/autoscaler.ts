import { expect } from 'vitest';
import type { AnyObject } from '../../../src/contract/object.js';
import { collection, deployments } from './cluster.js';
import type { Cluster } from './cluster.js';
import { eventually } from './eventually.js';

/** Scales a Deployment as the autoscalers' controller does: its account, through `/scale`, as its field manager. */
export async function scaleAsAutoscaler(
  cluster: Cluster,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  replicas: number,
): Promise<void> {
  const path = `${collection(deployments, namespace)}/${name}/scale`;
  const impersonate = 'system:serviceaccount:kube-system:horizontal-pod-autoscaler';
  // The Deployment's own controller writes its status meanwhile.
  await eventually(async () => {
    const { body } = await cluster.send('GET', path, { impersonate });
    const scale = { ...body, spec: { replicas } };
    const query = { fieldManager: 'kube-controller-manager' };
    const answer = await cluster.send('PUT', path, { body: scale, query, impersonate });
    expect([answer.status, answer.body.message]).toEqual([200, undefined]);
  });
}

/** Whose word `spec.replicas` is. */
export function replicasManagers(deployment: AnyObject): string[] {
  const { managedFields } = deployment.metadata as unknown as {
    managedFields: { manager: string; fieldsV1: { 'f:spec'?: object } }[];
  };
  return managedFields
    .filter(({ fieldsV1 }) => 'f:replicas' in (fieldsV1['f:spec'] ?? {}))
    .map(({ manager }) => manager);
}
