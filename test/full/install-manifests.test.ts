import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { globSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';
import type { AnyObject } from '../../src/contract/object.js';
import { serviceMonitorType } from '../../src/install/objects.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { manifestExceptions } from '../install/manifest-exceptions.js';
import { goTool, reconstruct } from '../support/commands.js';
import { renderChart } from '../support/helm.js';
import { conformed, monitoringCrds, schemasIn, schemasOf, scored } from '../support/manifest-checks.js';
import type { SchemaFile } from '../support/manifest-checks.js';
import { openCluster } from '../support/test-clusters.js';

const kinds = [appService, jobWatcher, streamIngress];
const cluster = openCluster();

let folder: string;
let schemas: readonly SchemaFile[];

const policy = 'examples/policy/policy.yaml';
const all = ['--kinds', 'appservice,jobwatcher,streamingress'];

/** What is printed, by its name here. */
const variants: Readonly<Record<string, () => Promise<string>>> = {
  'cluster-wide': () => reconstruct('install', ...all),
  namespaced: () => reconstruct('install', '--watch-namespace', 'shop,billing', ...all),
  'one kind': () => reconstruct('install', '--kinds', 'jobwatcher'),
  'with monitoring': () =>
    reconstruct('install', '--monitoring', '--monitoring-labels', 'release=prometheus', ...all),
  'with secure metrics': () =>
    reconstruct(
      'install',
      '--monitoring',
      '--metrics-secure',
      '--metrics-cert-secret',
      'metrics-tls',
      ...all,
    ),
  'one replica': () => reconstruct('install', '--replicas', '1', ...all),
  'with a policy': () => reconstruct('install', '--policy', join(repoFolder(), policy), ...all),
  'by Helm': () => renderChart(folder, {}),
  'by Helm, namespaced': () =>
    renderChart(folder, {
      ...{ watchNamespaces: ['shop'], kinds: { streamingress: true } },
      policy: { appservice: { maxSize: 3 } },
      monitoring: { dashboard: true },
    }),
};

const texts = new Map<string, string>();
const fileOf = (variant: string): string => join(folder, `${variant.replaceAll(/\W+/g, '-')}.yaml`);

function objectsIn(text: string): AnyObject[] {
  return parseAllDocuments(text).flatMap((document) => (document.toJS() as AnyObject | null) ?? []);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'manifests-'));
  for (const tool of ['helm', 'kubeconform'] as const) await goTool(tool);
  for (const [name, print] of Object.entries(variants)) {
    texts.set(name, await print());
    await writeFile(fileOf(name), texts.get(name) ?? '');
  }
  const versions = new Set([...texts.values()].flatMap(objectsIn).map(({ apiVersion }) => apiVersion));
  const monitoring = (await monitoringCrds()).flatMap(schemasIn);
  versions.delete(serviceMonitorType.apiVersion);
  const served = await Promise.all([...versions].map((version) => schemasOf(version, cluster)));
  schemas = [...served.flat(), ...monitoring];
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

describe.each(Object.keys(variants))('what is installed %s', (variant) => {
  test('is as the API server says that it has to be, with no field too many', async () => {
    const { valid, problems } = await conformed([fileOf(variant)], schemas, folder);
    expect(problems).toEqual([]);
    expect(valid).toBe(objectsIn(texts.get(variant) ?? '').length);
  });

  test('is as kube-score wants it, but for what is meant to be', async () => {
    const count = variant === 'one replica' ? 'one' : 'several';
    const meant = manifestExceptions.filter(({ replicas = count }) => replicas === count);
    expect((await scored(fileOf(variant), folder)).sort()).toEqual(
      meant.map(({ kind, check }) => `${kind} ${check}`).sort(),
    );
  });
});

test('every example is as the CRDs say, with no field too many', async () => {
  const groups = new Set(kinds.map(({ crd }) => crd.spec.group));
  const files = globSync('examples/**/*.yaml', { cwd: repoFolder() });
  const ours: string[] = [];
  for (const file of files) {
    const path = join(repoFolder(), file);
    const objects = objectsIn(await readFile(path, 'utf8')) as readonly Partial<AnyObject>[];
    if (objects.every(({ apiVersion }) => groups.has(apiVersion?.split('/')[0] ?? ''))) ours.push(path);
  }
  expect(ours.length).toBeGreaterThan(20);
  const { problems } = await conformed(
    ours,
    kinds.flatMap(({ crd }) => schemasIn(crd)),
    folder,
  );
  expect(problems).toEqual([]);
});
