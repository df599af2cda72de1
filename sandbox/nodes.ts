import { type ApiAccess, callApi } from './api.js';
import type { ManagedProcess } from './process.js';
import { waitFor } from './wait.js';

const nodeNames = ['node-0', 'node-1'] as const;
const resources = { cpu: '10000', memory: '100Ti', pods: '10000', 'ephemeral-storage': '100Ti' } as const;

/** Makes the fake nodes and waits until kwok has made them Ready and pods may be scheduled on them. */
export async function addNodes(access: ApiAccess, processes: readonly ManagedProcess[]): Promise<void> {
  for (const name of nodeNames) {
    const { status, body } = await callApi(access, 'POST', '/api/v1/nodes', nodeManifest(name));
    if (status !== 201) throw new Error(`The node ${name} cannot be made (HTTP ${status}): ${body}`);
  }
  await Promise.all(
    nodeNames.map((name) =>
      waitFor(`node ${name} to be ready`, () => schedulable(access, name), {
        timeoutMilliseconds: 60_000,
        processes,
      }),
    ),
  );
}

function nodeManifest(name: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      annotations: { 'kwok.x-k8s.io/node': 'fake', 'node.alpha.kubernetes.io/ttl': '0' },
      labels: {
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        type: 'kwok',
      },
    },
    status: { allocatable: resources, capacity: resources },
  };
}

interface Node {
  readonly spec: { readonly taints?: readonly unknown[] };
  readonly status: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** A new node bears a taint until the controller manager has seen it Ready. */
async function schedulable(access: ApiAccess, name: string): Promise<true | undefined> {
  const { status, body } = await callApi(access, 'GET', `/api/v1/nodes/${name}`);
  if (status !== 200) return undefined;
  const node = JSON.parse(body) as Node;
  const ready = node.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
  return ready === true && (node.spec.taints ?? []).length === 0 ? true : undefined;
}
