import { request } from 'node:https';
import type { ManagedProcess } from './process.js';
import { waitFor } from './wait.js';

/** Access to an API server as one user. */
export interface ApiAccess {
  readonly url: string;
  /** PEM. */
  readonly ca: string;
  readonly token: string;
}

/** An answer of the API server, whatever its status. */
export interface ApiAnswer {
  readonly status: number;
  readonly body: string;
}

/** Sends one request over a connection of its own. **Errors**: when no answer comes within 5 s. */
export function callApi(
  access: ApiAccess,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
): Promise<ApiAnswer> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${access.token}`, 'content-type': 'application/json' };
    const sent = request(
      new URL(path, access.url),
      { method, headers, ca: access.ca, agent: false, timeout: 5_000 },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() });
        });
      },
    );
    sent.on('error', reject);
    sent.on('timeout', () => sent.destroy(new Error(`${method} ${path}: no answer within 5 s.`)));
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

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

/** Number of claims that can have a volume at the same time; a claim beyond them waits until one is given back. */
const COUNT = 64;

/**
 * Makes volumes for claims that name no storage class: nothing is ever mounted. A volume whose claim goes is free again, by a
 * stage of kwok.
 */
export async function addVolumes(access: ApiAccess): Promise<void> {
  const names = Array.from({ length: COUNT }, (_, index) => `volume-${index}`);
  await Promise.all(
    names.map(async (name) => {
      const path = '/api/v1/persistentvolumes';
      const { status, body } = await callApi(access, 'POST', path, volumeManifest(name));
      if (status !== 201) throw new Error(`The volume ${name} cannot be made (HTTP ${status}): ${body}`);
    }),
  );
}

function volumeManifest(name: string): object {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, labels: { sandbox: 'volume' } },
    spec: {
      accessModes: ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany'],
      capacity: { storage: '100Ti' },
      persistentVolumeReclaimPolicy: 'Retain',
      hostPath: { path: '/never-mounted' },
    },
  };
}
