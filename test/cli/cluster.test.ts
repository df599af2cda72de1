import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';
import { afterEach, expect, it } from 'vitest';
import { currentNamespace, loadKubeConfig, runsInCluster } from '../../src/cli/cluster.js';
import { namespace, namespaces } from '../../src/cli/options.js';

const folders: string[] = [];
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

/** As a Pod finds it. */
async function inCluster(): Promise<KubeConfig> {
  const folder = await mkdtemp(join(tmpdir(), 'pod-'));
  folders.push(folder);
  const files = join(folder, 'var/run/secrets/kubernetes.io/serviceaccount');
  await mkdir(files, { recursive: true });
  await writeFile(join(files, 'namespace'), 'ops\n');
  const config = new KubeConfig();
  config.loadFromCluster(folder);
  return config;
}

function outside(context: { readonly namespace?: string }): KubeConfig {
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [{ name: 'c', server: 'https://127.0.0.1:6443' }],
    users: [{ name: 'u' }],
    contexts: [{ name: 'x', cluster: 'c', user: 'u', ...context }],
    currentContext: 'x',
  });
  return config;
}

it("takes a Pod's namespace from its service account's files", async () => {
  const config = await inCluster();
  expect(runsInCluster(config)).toBe(true);
  expect(currentNamespace(config)).toBe('ops');
});

it("takes the context's namespace outside a cluster, else `default`", () => {
  expect(runsInCluster(outside({}))).toBe(false);
  expect(currentNamespace(outside({ namespace: 'shop' }))).toBe('shop');
  expect(currentNamespace(outside({}))).toBe('default');
});

it('refuses what can not name a namespace', () => {
  expect(namespace('ops')).toBe('ops');
  expect(() => namespace('Ops')).toThrow("Ops can't name a namespace.");
  expect(() => namespace('a,b')).toThrow("a,b can't name a namespace.");
  expect(() => namespaces('ops,Ops', undefined)).toThrow("Ops can't name a namespace.");
});

it('names a file that is no kubeconfig', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'kubeconfig-'));
  folders.push(folder);
  const kubeconfig = join(folder, 'page.yaml');
  await writeFile(kubeconfig, 'kind: Page\nspec: {}\n');
  await expect(loadKubeConfig({ kubeconfig })).rejects.toThrow(
    `${kubeconfig}: names no cluster; it isn't a kubeconfig, or has no current context`,
  );
});

const three = (current: string | undefined, clusters = ['here']) => ({
  ...{ apiVersion: 'v1', kind: 'Config', users: [{ name: 'u', user: {} }] },
  clusters: clusters.map((name) => ({ name, cluster: { server: 'https://127.0.0.1:1' } })),
  contexts: ['staging', 'production'].map((name) => ({ name, context: { cluster: 'here', user: 'u' } })),
  ...(current !== undefined && { 'current-context': current }),
});

it.each([
  ['none is chosen', three(undefined), 'has no current context'],
  ['it is not there', three('gone'), "its current context gone isn't there"],
  [
    'its cluster is not there',
    three('staging', ['other']),
    "its context staging names a cluster that isn't there",
  ],
])('names the contexts that there are where %s', async (_, config, wrong) => {
  const folder = await mkdtemp(join(tmpdir(), 'kubeconfig-'));
  folders.push(folder);
  const kubeconfig = join(folder, 'config');
  await writeFile(kubeconfig, JSON.stringify(config));
  await expect(loadKubeConfig({ kubeconfig })).rejects.toMatchObject({
    message: `${kubeconfig}: ${wrong}; choose one with --context: staging, production`,
    exitCode: 2,
  });
});

it('says which context may be meant', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'kubeconfig-'));
  folders.push(folder);
  const kubeconfig = join(folder, 'config');
  await writeFile(kubeconfig, JSON.stringify(three('staging')));
  await expect(loadKubeConfig({ kubeconfig, context: 'stagin' })).rejects.toMatchObject({
    message:
      '--context stagin: there is no such context; there are staging, production; did you mean staging?',
    exitCode: 2,
  });
});
