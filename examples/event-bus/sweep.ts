import { join } from 'node:path';
import { Yaml } from 'cdk8s';
import { resourceType } from 'cdk8s-reconstruct';
import type { AnyObject } from 'cdk8s-reconstruct';
import { formatReport, sweep, withSandbox } from 'cdk8s-reconstruct/testing';
import type { Cluster } from 'cdk8s-reconstruct/testing';
import { eventBus } from './kind.ts';

const [sample] = Yaml.load(join(import.meta.dirname, 'sample.yaml')) as [AnyObject];
// The first is edited into the second: two more servers, other settings, and what was left out.
const other = {
  ...{ replicas: 5, image: 'nats:2.11.3-alpine', memoryMiB: 512, maxPayloadKiB: 2048, debug: true },
  ...{ tokenSecret: 'orders', whenDeleted: 'Delete', storage: { size: '5Gi' } },
};
const alone = { replicas: 1, storage: { size: '1Gi', className: 'fast' } };
const samples = [sample, { ...sample, spec: other }, { ...sample, spec: alone }];

const report = await withSandbox({ kinds: [eventBus] }, async ({ sandbox, cluster }) => {
  await makeVolumes(cluster, 'fast', 64);
  return sweep(eventBus, samples, { sandbox });
});
console.log(formatReport(report));
process.exitCode = report.held ? 0 : 1;

/** The sandbox has volumes for claims that name no class; by the label, one whose claim has gone is free again. */
async function makeVolumes(cluster: Cluster, storageClassName: string, count: number): Promise<void> {
  const type = resourceType({ apiVersion: 'v1', kind: 'PersistentVolume', namespaced: false });
  for (let index = 0; index < count; index++)
    await cluster.create(type, {
      ...{ apiVersion: 'v1', kind: 'PersistentVolume' },
      metadata: { name: `${storageClassName}-${index}`, labels: { sandbox: 'volume' } },
      spec: {
        storageClassName,
        capacity: { storage: '10Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/nowhere' },
      },
    });
}
