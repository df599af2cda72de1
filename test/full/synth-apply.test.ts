import { expect, test } from 'vitest';
import { deployments, services, withFixedNodePorts } from '../support/cluster.js';
import { reconstruct } from '../support/commands.js';
import { openCluster } from '../support/test-clusters.js';

const cluster = openCluster();

test.for([
  { how: 'client-side', flags: [] },
  { how: 'server-side', flags: ['--server-side'] },
])('kubectl apply takes what synth prints without a warning ($how)', async ({ flags }) => {
  const namespace = await cluster.makeNamespace('synth-apply');
  const manifests = await reconstruct('synth', 'examples/');
  const apply = ['apply', '--namespace', namespace, ...flags, '-f', '-'];

  await withFixedNodePorts(cluster, async () => {
    const { stdout, stderr } = await cluster.sandbox.kubectl(apply, { stdin: manifests });
    // A second time nothing changes, and that is accepted as well.
    const again = await cluster.sandbox.kubectl(apply, { stdin: manifests });

    expect(stderr + again.stderr).toBe('');
    expect(stdout.match(/deployment\.apps\/\S+ (created|serverside-applied)/g)?.length).toBeGreaterThan(0);
    expect((await cluster.list(deployments, namespace)).length).toBeGreaterThan(1);
    for (const { metadata } of await cluster.list(services, namespace))
      await cluster.delete({ type: services, namespace, name: metadata.name });
  });
});
