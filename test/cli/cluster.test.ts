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
