import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { parse } from 'yaml';
import { openSandbox } from '../../sandbox/client.js';
import { repoFolder } from '../../sandbox/paths.js';
import type { Condition } from '../../src/contract/conditions.js';
import { resourceType } from '../../src/contract/resource.js';
import type { AppServiceProps } from '../../src/kinds/app-service/construct.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { anyRoute } from './support/any-route.js';
import { Cluster, services } from './support/cluster.js';
import { startController } from './support/controller.js';
import type { RunningController } from './support/controller.js';
import { installCrd } from './support/crds.js';
import { withFixedNodePorts } from './support/node-ports.js';
import { Subject } from './support/subject.js';

/** What an example is about that it doesn't bring along. */
interface Surroundings {
  /** How the pods of the namespace have to be. @default - anyhow */
  readonly podSecurity?: string;
  /** @default - none */
  readonly serviceAccounts?: readonly string[];
  /** @default - none */
  readonly claims?: readonly string[];
  /** What it comes to. @default - it is Ready */
  readonly outcome?: readonly Partial<Condition>[];
}

const READY = { type: 'Ready', status: 'True' } as const;

const surroundings: Readonly<Record<string, Surroundings>> = {
  'appservice/files.yaml': { claims: ['web-data'] },
  'appservice/recreate.yaml': { claims: ['ledger'] },
  'appservice/security.yaml': { podSecurity: 'restricted', serviceAccounts: ['shop'] },
  // There is HTTPRoute, but no Gateway that would take one.
  'appservice/route.yaml': {
    outcome: [READY, { type: 'RouteReady', status: 'Unknown', reason: 'Pending' }],
  },
  // No node has the accelerators that it asks for.
  'appservice-full.yaml': { outcome: [{ type: 'Ready', status: 'False', reason: 'Unschedulable' }] },
};

const folder = join(repoFolder(), 'examples');
const files = ['.', 'appservice'].flatMap((inner) =>
  readdirSync(join(folder, inner))
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => join(inner, name)),
);

const volumes = resourceType({ apiVersion: 'v1', kind: 'PersistentVolume', namespaced: false });
const namespaces = resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false });
const claims = resourceType({ apiVersion: 'v1', kind: 'PersistentVolumeClaim' });
const accounts = resourceType({ apiVersion: 'v1', kind: 'ServiceAccount' });

const cluster = new Cluster(openSandbox(inject('sandbox')));
let controller: RunningController;
/** One for each example, by its file. */
const subjects = new Map<string, Subject>();

beforeAll(async () => {
  await installCrd(cluster, appService);
  for (const file of files)
    subjects.set(file, new Subject(cluster, appService, await cluster.makeNamespace('example')));
  const inside = [...subjects.values()].map(({ namespace }) => namespace);
  const props = { cluster, user: 'operator-37', kinds: [appService] };
  controller = await startController({ ...props, namespaces: inside, args: anyRoute });
});
afterAll(async () => {
  await controller.kill();
  await cluster.close();
});

describe('an example, applied strictly as it is, comes to what it promises', () => {
  test.for(files)('%s', async (file) => {
    const apps = subjects.get(file)!;
    const { outcome = [READY], ...needed } = surroundings[file] ?? {};
    const { metadata, spec } = parse(readFileSync(join(folder, file), 'utf8')) as AppServiceProps;
    await prepare(apps.namespace, needed);
    const judge = async (): Promise<void> => {
      const place = ['-n', apps.namespace, '-f', join(folder, file)];
      await cluster.sandbox.kubectl(['apply', '--validate=strict', ...place]);

      for (const condition of outcome) await apps.condition(metadata.name, condition);
      await apps.asRendered(metadata.name);
    };

    if (!spec.ports?.some(({ nodePort }) => nodePort)) return judge();
    return withFixedNodePorts(cluster, async () => {
      await judge();
      // Not left to the garbage collector, since others wait for the node port.
      await apps.delete(metadata.name);
      await cluster.delete(apps.childPlace(services, metadata.name), { mayBeMissing: true });
    });
  });
});

test('everything that is prepared is for an example', () => {
  expect(Object.keys(surroundings).filter((file) => !files.includes(file))).toEqual([]);
});

async function prepare(namespace: string, needed: Surroundings): Promise<void> {
  const { podSecurity, serviceAccounts = [], claims: names = [] } = needed;
  if (podSecurity !== undefined) {
    const labels = { 'pod-security.kubernetes.io/enforce': podSecurity };
    await cluster.merge({ type: namespaces, name: namespace }, { metadata: { labels } });
  }
  for (const name of serviceAccounts)
    await cluster.create(accounts, {
      ...{ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } },
    });
  for (const name of names) await makeClaim(namespace, name);
}

/** With a volume for it, which goes where the sandbox goes. */
async function makeClaim(namespace: string, name: string): Promise<void> {
  const accessModes = ['ReadWriteOnce'];
  await cluster.create(volumes, {
    ...{ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: `${namespace}-${name}` } },
    spec: {
      ...{ accessModes, capacity: { storage: '1Gi' }, claimRef: { namespace, name } },
      hostPath: { path: '/never-mounted' },
    },
  });
  await cluster.create(claims, {
    ...{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name, namespace } },
    spec: {
      ...{ accessModes, storageClassName: '', volumeName: `${namespace}-${name}` },
      resources: { requests: { storage: '1Gi' } },
    },
  });
}
