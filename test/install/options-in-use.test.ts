import { beforeEach, describe, expect, it } from 'vitest';
import { OperatorError } from '../../src/contract/error.js';
import { applyInstallation } from '../../src/install/apply.js';
import type { InstallRequest } from '../../src/install/apply.js';
import { MONITORING_PARTS } from '../../src/install/props.js';
import type { InstallProps } from '../../src/install/props.js';
import { uninstall } from '../../src/install/uninstall.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { MemoryCluster } from './memory-cluster.js';

const kinds = [appService, jobWatcher];
const bare: InstallProps = { namespace: 'ops', image: 'example.com/reconstruct:1', kinds, replicas: 2 };
const policy = { text: 'appservice: { maxSize: 1 }\n', parsed: { appservice: { maxSize: 1 } } };
const monitoring = {
  ...{ parts: MONITORING_PARTS, labels: { release: 'prometheus' }, runbooks: 'https://example.com/r' },
};

let cluster: MemoryCluster;
let reported: string[];

beforeEach(() => {
  cluster = new MemoryCluster();
  reported = [];
});

/** @returns what was written */
async function install(
  changed: Partial<InstallProps> = {},
  request?: InstallRequest,
): Promise<readonly string[]> {
  cluster.writes.length = 0;
  await applyInstallation({ ...bare, ...changed }, cluster, (line) => reported.push(line), request);
  return cluster.writes;
}

/** What an installation is refused with, before anything is written. */
async function refusal(changed: Partial<InstallProps> = {}, request?: InstallRequest): Promise<string> {
  const before = JSON.stringify(cluster.all);
  const error: unknown = await install(changed, request).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(OperatorError);
  expect(error).toMatchObject({ reason: 'OptionsLeftOut' });
  expect(JSON.stringify(cluster.all)).toBe(before);
  return (error as OperatorError).message;
}

const read = `kubectl get configmap reconstruct-policy --namespace ops -o jsonpath='{.data.policy\\.yaml}' > policy.yaml`;
const inUse = `reconstruct install --apply --namespace ops --kinds appservice.kosmos.io,jobwatcher.batch.my.github.com`;
const rest = '--image example.com/reconstruct:1 --replicas 2';

describe('an installation with fewer options than are in use', () => {
  it('is refused, with the command that has them: policy and namespaces', async () => {
    await install({ watchNamespaces: ['shop'], policy });
    expect(await refusal()).toBe(
      'With these options the operator in the namespace ops would lose its limit to --watch-namespace shop; ' +
        '--policy reconstruct-policy: keep the options in use with ' +
        `"${read} && ${inUse} --watch-namespace shop --policy policy.yaml ${rest}", or add --replace to drop what is left out`,
    );
  });

  it('is refused, with the command that reads both files', async () => {
    await install({ policy, settings: policy });
    expect(await refusal()).toContain(
      `--policy reconstruct-policy; --settings reconstruct-settings: keep the options in use with "${read} && ` +
        `${read.replaceAll('policy', 'settings')} && ${inUse} --policy policy.yaml --settings settings.yaml ${rest}"`,
    );
  });

  it.each<[string, Partial<InstallProps>, Partial<InstallProps>, string]>([
    ['kinds', {}, { kinds: [jobWatcher] }, '--kinds appservice.kosmos.io:'],
    ['namespaces', { watchNamespaces: ['a', 'b'] }, { watchNamespaces: ['b', 'c'] }, '--watch-namespace a:'],
    [
      'monitoring',
      { monitoring },
      { monitoring: { parts: ['rules'] } },
      '--monitoring service-monitor,dashboard:',
    ],
    [
      'options of a kind',
      { kinds: [streamIngress], flags: { '--ingress-namespace': 'edge' } },
      { kinds: [streamIngress] },
      '--ingress-namespace edge:',
    ],
    ['user IDs', { omitUserIds: true, monitoring }, { monitoring }, '--omit-user-ids:'],
    ['held updates', { onUpgrade: 'hold' }, {}, '--on-upgrade hold:'],
    ['secure metrics', { secureMetrics: {} }, {}, '--metrics-secure:'],
    [
      'their certificate',
      { secureMetrics: { certificateSecret: 'a' } },
      { secureMetrics: {}, monitoring },
      '--metrics-cert-secret a:',
    ],
  ])('is refused: %s', async (_, before, after, lost) => {
    await install(before);
    expect(await refusal(after)).toContain(`would lose ${lost}`);
    await install(after, { replace: true });
    await install(after);
  });

  it('is refused where the Deployment is gone and the policy is not', async () => {
    await install({ watchNamespaces: ['shop', 'a'], policy });
    for (const object of cluster.all.filter(({ kind }) => kind === 'Deployment')) cluster.remove(object);
    expect(await refusal()).toContain('reconstruct install --apply --namespace ops --policy policy.yaml"');
    await install({ policy });
  });

  it('is refused where the Deployment does not say what it was installed with', async () => {
    await install();
    const deployment = cluster.all.find(({ kind }) => kind === 'Deployment')!;
    Object.assign(deployment.metadata, { annotations: {} });
    expect(await refusal()).toContain("Deployment ops/reconstruct doesn't say with which options");
    await install({}, { replace: true });
    await install();
  });

  it('is refused with whatever else is in use, and with what was given for the cluster and the image', async () => {
    await install({ kinds: [...kinds, streamIngress], flags: { '--ingress-namespace': 'edge' }, monitoring });
    const given = { '--kubeconfig': 'my config', '--image': 'example.com/reconstruct:2' };
    expect(await refusal({}, { given })).toContain(
      'reconstruct install --apply --namespace ops ' +
        '--kinds appservice.kosmos.io,jobwatcher.batch.my.github.com,streamingress.nginx-stream.jeffthecoder.xyz ' +
        '--ingress-namespace edge --monitoring service-monitor,rules,dashboard --monitoring-labels release=prometheus ' +
        "--runbooks https://example.com/r --image example.com/reconstruct:2 --replicas 2 --kubeconfig 'my config'\"",
    );
  });
});

describe('an installation with the options in use', () => {
  it.each<[string, Partial<InstallProps>]>([
    ['another image', { image: 'example.com/reconstruct:2' }],
    ['another number of replicas', { replicas: 3 }],
    ['more kinds', { kinds: [...kinds, streamIngress] }],
    ['more namespaces', { watchNamespaces: ['shop', 'more'] }],
    ['another policy', { policy: { text: '{}', parsed: {} } }],
    ['monitoring', { monitoring }],
  ])('goes through with %s', async (_, changed) => {
    const before = { watchNamespaces: ['shop'], policy };
    await install(before);
    expect(await install({ ...before, ...changed })).not.toEqual([]);
  });

  it('goes through in single namespaces instead of the whole cluster, and without one that was deleted', async () => {
    await install();
    await install({ watchNamespaces: ['shop', 'gone'] });
    for (const object of cluster.all.filter(({ metadata }) => metadata.namespace === 'gone'))
      cluster.remove(object);
    await install({ watchNamespaces: ['shop'] });
  });
});

it('an installation that is only tried is reported, and nothing is written', async () => {
  expect(await install({}, { dryRun: true })).toEqual([]);
  expect(reported).toContain('Namespace ops would be created');
  expect(reported.at(-1)).toBe('Deployment ops/reconstruct would be created');
  await install({ policy });
  reported.length = 0;
  expect(await install({}, { dryRun: true, replace: true })).toEqual([]);
  expect(reported.at(-1)).toBe('ConfigMap ops/reconstruct-policy would be deleted');
});

describe('types that may not be listed', () => {
  beforeEach(async () => {
    await install({ monitoring: { parts: ['dashboard'] } });
    reported.length = 0;
    const list = cluster.list.bind(cluster);
    cluster.list = (type, scope) =>
      type.apiVersion === 'monitoring.coreos.com/v1'
        ? Promise.reject(
            new OperatorError({ reason: 'Forbidden', message: `List ${type.plural}: forbidden` }),
          )
        : list(type, scope);
  });
  const lines = ['prometheusrules', 'servicemonitors'].map(
    (type) =>
      `${type}.monitoring.coreos.com may not be listed: what an earlier installation has of them stays`,
  );

  it('are reported by uninstall, which removes all the rest', async () => {
    await uninstall({ namespace: 'ops', kinds, purge: false, dryRun: false }, cluster, (line) =>
      reported.push(line),
    );
    expect(reported.slice(0, 2)).toEqual(lines);
    expect(cluster.all.map(({ kind }) => kind)).toEqual([
      'CustomResourceDefinition',
      'CustomResourceDefinition',
    ]);
  });
});
