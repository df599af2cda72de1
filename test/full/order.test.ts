import { beforeAll, expect, test } from 'vitest';
import { rulesFor } from '../../src/install/rules.js';
import { loadKind } from '../support/bundle.js';
import {
  accountKubeconfig,
  configMaps,
  deployments,
  eventually,
  grant,
  installCrd,
  jobs,
  putStatus,
} from '../support/cluster.js';
import { Reconstruct } from '../support/commands.js';
import { finishedStatus } from '../support/jobs.js';
import { startController } from '../support/operator.js';
import { settled } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const operator = 'operator-56';
const user = 'operator-59';
const { kind, config } = await loadKind('test/support/kinds/release.config.mjs');
const cluster = openCluster();
let releases: Subject;

beforeAll(async () => {
  releases = await Subject.make(cluster, kind, 'releases');
});

const at = (type: typeof jobs, name: string) => releases.childPlace(type, name);

async function finish(name: string, as?: 'Failed'): Promise<void> {
  await putStatus(cluster, at(jobs, name), finishedStatus({ ago: 0, ...(as && { as }) }));
}

/** Returns the version of which the children are. */
async function versions(name: string): Promise<(string | undefined)[]> {
  type Live = { spec: { template: { spec: { containers: { image: string }[] } } } };
  const [job, deployment] = await Promise.all([
    cluster.find<Live>(at(jobs, name)),
    cluster.find<Live>(at(deployments, name)),
  ]);
  return [job, deployment].map((live) => live?.spec.template.spec.containers[0]!.image.split(':')[1]);
}

async function waits(name: string): Promise<string> {
  const wanted = { type: 'Ready', status: 'Unknown', reason: 'WaitingForDependency' } as const;
  return (await releases.condition(name, wanted)).message;
}

test('a Deployment waits for its migration, also over an edit and a restart; a failed one shows', async () => {
  const namespaces = [releases.namespace];
  const start = () => startController({ ...{ cluster, kinds: [kind], config, namespaces }, user: operator });
  const first = await start();
  await releases.create('web', { version: '1' });

  // Why the Job has yet to complete is added once its controller has said so.
  expect(await waits('web')).toContain(
    `Deployment ${releases.namespace}/web waits: Job ${releases.namespace}/web has yet to complete`,
  );
  expect(await versions('web')).toEqual(['1', undefined]);
  await finish('web');
  await releases.ready('web');
  expect(await versions('web')).toEqual(['1', '1']);

  await releases.edit('web', { version: '2', extra: true });
  await waits('web');
  expect(await versions('web')).toEqual(['2', '1']);
  expect(await cluster.find(at(configMaps, 'web-extra'))).toBeDefined();
  await first.kill();
  await using second = await start();
  // What waits holds back what would be pruned, and nothing else; drift of what was applied is corrected.
  await releases.edit('web', { version: '3' });
  await eventually(async () => {
    expect(await versions('web')).toEqual(['3', '1']);
  });
  await waits('web');
  expect(await cluster.find(at(configMaps, 'web-extra'))).toBeDefined();
  await cluster.merge(at(configMaps, 'web'), { data: { version: 'another' } });
  await eventually(async () => {
    const { data } = await cluster.get<{ data: object }>(at(configMaps, 'web'));
    expect(data).toEqual({ version: '3' });
  });
  await finish('web');
  await releases.ready('web');
  expect(await versions('web')).toEqual(['3', '3']);
  await eventually(async () => {
    expect(await cluster.find(at(configMaps, 'web-extra'))).toBeUndefined();
  });

  await releases.edit('web', { version: '4' });
  await eventually(async () => {
    expect(await versions('web')).toEqual(['4', '3']);
  });
  await finish('web', 'Failed');
  const failed = await releases.condition('web', { type: 'Stalled', status: 'True' });
  expect(failed.message).toMatch(/; Deployment .*\/web waits for it$/);
  await settled(cluster, operator, { namespace: releases.namespace });
  expect(await versions('web')).toEqual(['4', '3']);
  await releases.edit('web', { version: '5' });
  await waits('web');
  await finish('web');
  await releases.ready('web');
  await second.kill();
});

test('diff shows what would wait; apply says so, and goes on with --wait', async () => {
  await installCrd(cluster, kind);
  const namespaces = [await cluster.makeNamespace('order')];
  const [namespace = ''] = namespaces;
  const written = {
    apiGroups: [kind.crd.spec.group],
    ...{ resources: ['releases'], verbs: ['get', 'list', 'watch', 'create', 'update'] },
  };
  await grant(cluster, { user, namespaces, rules: [...rulesFor([kind], { namespaces }), written] });
  const options = ['-n', namespace, '--config', config];
  const own = new Reconstruct('apply', await accountKubeconfig(cluster, user), options);
  const spec = { version: '1' };
  const web = { apiVersion: kind.type.apiVersion, kind: kind.type.kind, metadata: { name: 'web' }, spec };

  const once = await own.of([web]);
  expect(once, once.stderr).toMatchObject({ code: 0 });
  expect(once.stdout).toContain(
    `Deployment ${namespace}/web waits: Job ${namespace}/web has yet to complete`,
  );
  expect(once.stdout).toMatch(/1 object waits: apply again once that is ready, or with --wait/);
  const diff = await own.of([web], '--dry-run');
  expect(diff.stdout).toContain(
    `Deployment ${namespace}/web would be created, once Job ${namespace}/web is ready`,
  );
  const going = own.of([web], '--wait', '--timeout', '90s');
  await putStatus(cluster, { type: jobs, namespace, name: 'web' }, finishedStatus({ ago: 0 }));
  const done = await going;
  expect(done.stdout).toMatch(/Release web is ready\n$/);
  expect(done).toMatchObject({ code: 0 });
});
