import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { Condition } from '../../src/contract/conditions.js';
import { loadKind } from '../support/bundle.js';
import { deployments } from '../support/cluster.js';
import { Reconstruct } from '../support/commands.js';
import { exampleDocument, examplesFolder } from '../support/examples.js';
import { startController } from '../support/operator.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-98';
const folder = join(examplesFolder, 'composition');
const { kind, config } = await loadKind('examples/composition/reconstruct.config.mjs');
const cluster = openCluster();
let apps: Subject;

async function kubectl(...args: readonly string[]): Promise<string> {
  return (await cluster.sandbox.kubectl(['-n', apps.namespace, ...args])).stdout;
}

/** Writes a status as the operator of that object does. */
async function otherWrites(file: string): Promise<void> {
  const options = ['--server-side', '--subresource=status'];
  await kubectl('apply', ...options, '-f', join(folder, 'others', `${file}.yaml`));
}

beforeAll(async () => {
  const prerequisites = join(folder, 'prerequisites');
  await cluster.sandbox.kubectl(['apply', '--server-side', '-f', prerequisites]);
  await cluster.sandbox.kubectl(['wait', '--for=condition=Established', '-f', prerequisites]);
  apps = await Subject.make(cluster, kind, 'composition');
  await startController({ ...{ cluster, user, kinds: [kind], config }, namespaces: [apps.namespace] });
});

test('children of other operators are waited for, and their errors are those of the custom resource', async () => {
  const { spec } = exampleDocument('composition/sample.yaml');
  const { namespace } = apps;
  const name = `${namespace}/web`;
  const deployment = apps.childPlace(deployments, 'web');
  const says = async (status: Condition['status'], reason: string, message: string): Promise<void> => {
    const ready = await apps.condition('web', { type: 'Ready', status, reason });
    expect(ready.message).toBe(message);
  };
  const status = async (): Promise<string> => {
    const options = ['--config', config, '-n', namespace];
    const { stdout } = await new Reconstruct('status', cluster.sandbox.adminKubeconfig, options).run();
    return stdout.replaceAll(/\n│ +/g, ' ').replaceAll(/ +/g, ' ');
  };

  await apps.create('web', spec as object);
  const unseen = "has no status yet; one whose controller never writes any can't be waited for";
  await says('Unknown', 'WaitingForDependency', `Deployment ${name} waits: ExternalSecret ${name} ${unseen}`);

  await otherWrites('keys-missing');
  const refused = `ExternalSecret ${name}: could not get secret data from provider; Deployment ${name} waits for it`;
  await says('False', 'SecretSyncedError', refused);
  expect(await kubectl('get', 'apps.apps.example.com', '-o', 'wide')).toMatch(
    new RegExp(`^web +False +SecretSyncedError +\\S+ +${refused}$`, 'm'),
  );
  expect(await status()).toMatch(
    new RegExp(`^App ${name} \\S+ Reconciling SecretSyncedError, for \\S+ ${refused}`),
  );

  await otherWrites('database-starting');
  await otherWrites('keys-ready');
  const starting = `Cluster ${name}: Cluster Is Not Ready; Deployment ${name} waits for it`;
  await says('False', 'ClusterIsNotReady', starting);
  expect(await cluster.find(deployment)).toBeUndefined();

  await otherWrites('database-ready');
  await apps.ready('web');
  expect(await cluster.find(deployment)).toBeDefined();

  // What is applied stays, and the error shows all the same.
  await otherWrites('keys-missing');
  const error = `ExternalSecret ${name}: could not get secret data from provider`;
  await says('False', 'SecretSyncedError', error);
  expect(await cluster.find(deployment)).toBeDefined();
});
