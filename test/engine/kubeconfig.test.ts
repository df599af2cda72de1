import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadKubeconfig } from '../../src/client/kubeconfig.js';
import type { ClusterAccess } from '../../src/client/kubeconfig.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kubeconfig-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const IN_POD = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };

/** The service account's files, as a Pod finds them. */
function mounted(namespace = 'ops'): string {
  const place = join(folder, 'serviceaccount');
  mkdirSync(place);
  writeFileSync(join(place, 'token'), 'pod-token');
  writeFileSync(join(place, 'namespace'), `${namespace}\n`);
  return place;
}

/** Kubeconfig with a context for each name, all of one cluster. */
function written(content: object | string): string {
  const file = join(folder, 'config');
  writeFileSync(file, JSON.stringify(content));
  return file;
}

const config = (
  current: string | undefined,
  { clusters = ['here'], server = 'https://api.example.com', ...context } = {},
) => ({
  ...{ apiVersion: 'v1', kind: 'Config', users: [{ name: 'u', user: { token: 't' } }] },
  clusters: clusters.map((name) => ({ name, cluster: { server } })),
  contexts: ['staging', 'production'].map((name) => ({
    name,
    context: { cluster: 'here', user: 'u', ...context },
  })),
  ...(current !== undefined && { 'current-context': current }),
});

describe('in a Pod', () => {
  test('without a kubeconfig, the cluster is the one of the service account', () => {
    const place = mounted();
    const env = { ...IN_POD, KUBECONFIG: '', HOME: folder };
    expect(loadKubeconfig({ env, mounted: place })).toEqual({
      ...{ context: 'in-cluster', inPod: true, namespace: 'ops' },
      cluster: { server: 'https://[fd00::1]:443', 'certificate-authority': join(place, 'ca.crt') },
      user: { tokenFile: join(place, 'token') },
      ...{ clusterAt: `${place}: service account`, userAt: `${place}: service account` },
    });
  });

  test.each<[string, NodeJS.ProcessEnv, boolean]>([
    ['its token is mounted', {}, true],
    ['its token is not mounted, but it knows its cluster', IN_POD, false],
  ])('a process with a kubeconfig knows that it is in one where %s', (_, env, isMounted) => {
    const place = isMounted ? mounted() : folder;
    const kubeconfig = written(config('staging'));
    expect(loadKubeconfig({ kubeconfig, env, mounted: place }).inPod).toBe(true);
    expect(loadKubeconfig({ kubeconfig, env: {}, mounted: join(folder, 'none') }).inPod).toBe(false);
  });
});

describe('what is wrong with a kubeconfig is named with the file', () => {
  const message = (options: Parameters<typeof loadKubeconfig>[0]): string => {
    try {
      loadKubeconfig({ env: { HOME: folder }, mounted: join(folder, 'none'), ...options });
    } catch (error) {
      return (error as Error).message;
    }
    return 'accepted';
  };

  test('nothing at all', () => {
    expect(message({})).toBe(
      'No cluster is configured: give --kubeconfig FILE, set KUBECONFIG, or run inside a cluster',
    );
  });
});

describe('as client-go reads it', () => {
  const server = 'https://localhost:1';
  const of = (cluster: object): object => ({
    ...config('staging'),
    clusters: [{ name: 'here', cluster }],
  });

  test('what is not a field is ignored, whatever it holds', () => {
    const unknown = { labels: { team: 'a' }, 'read-only': true, constructor: 1, token: 5, exec: null };
    const kubeconfig = written({
      ...config('staging', { namespace: 'shop', extensions: {}, toString: [1] } as object),
      clusters: [{ name: 'here', cluster: { server, ...unknown } }],
      ...{ preferences: { colors: true }, users: [{ name: 'u', user: { server: 1, exec: EXEC } }] },
    });
    expect(loadKubeconfig({ kubeconfig, env: {}, mounted: folder })).toMatchObject({
      ...{ namespace: 'shop', cluster: { server } },
      user: { exec: { command: 'login', env: [{ name: 'LEVEL' }] } },
    });
  });
  const EXEC = {
    ...{ apiVersion: 'client.authentication.k8s.io/v1', command: 'login', colour: 1 },
    env: [{ name: 'LEVEL', hint: 1 }],
  };

  test.each<[given: string, server: string, cluster?: object]>([
    ['HTTPS://API.example.com', 'https://API.example.com'],
    ['HTTP://127.0.0.1:8001/k8s', 'http://127.0.0.1:8001/k8s'],
    ['127.0.0.1:8001', 'http://127.0.0.1:8001'],
    ['localhost', 'http://localhost'],
    ['[::1]:6443/', 'https://[::1]:6443/', { 'insecure-skip-tls-verify': true }],
    ['api.example.com:6443', 'https://api.example.com:6443', { 'certificate-authority-data': 'eA==' }],
  ])('the server %s is %s', (given, expected, cluster = {}) => {
    const kubeconfig = written(of({ server: given, ...cluster }));
    expect(loadKubeconfig({ kubeconfig, env: {}, mounted: folder }).cluster.server).toBe(expected);
  });

  test.each(['host/path', 'ftp://host', '//', '/'])('%s is no server', (given) => {
    const kubeconfig = written(of({ server: given }));
    expect(() => loadKubeconfig({ kubeconfig, env: {}, mounted: folder })).toThrow(/is no URL/);
  });

  test('the scheme of a proxy may be in capitals', () => {
    const kubeconfig = written(of({ server: 'https://localhost:1', 'proxy-url': 'HTTP://localhost:3128' }));
    expect(loadKubeconfig({ kubeconfig, env: {}, mounted: folder }).proxy).toBe('HTTP://localhost:3128');
  });

  test.each([
    [{ clusters: {} }, "clusters isn't a list"],
    [{ clusters: 'a' }, "clusters isn't a list"],
    [{ users: [null] }, "names a user that isn't there"],
  ])('%j is refused', (fields, message) => {
    const kubeconfig = written({ ...config('staging'), ...fields });
    expect(() => loadKubeconfig({ kubeconfig, env: {}, mounted: folder })).toThrow(message);
  });
});

describe('NO_PROXY, as Go reads it', () => {
  const proxyFor = (server: string, NO_PROXY: string): ClusterAccess['proxy'] =>
    loadKubeconfig({
      kubeconfig: written(config('staging', { server })),
      env: { HTTPS_PROXY: 'proxy:3128', NO_PROXY },
      mounted: folder,
    }).proxy;

  test.each([
    ['https://api.example.com', '*'],
    ['https://api.example.com', 'example.com'],
    ['https://api.example.com', '.example.com'],
    ['https://api.example.com', '*.example.com'],
    ['https://API.example.com', 'other.com, EXAMPLE.com'],
    ['https://example.com', 'example.com'],
    ['https://example.com:6443', 'example.com:6443'],
    ['https://api.example.com', 'example.com:443'],
    ['https://10.1.2.3', '10.0.0.0/8'],
    ['https://10.1.2.3', '10.1.2.3'],
    ['https://10.1.2.3:6443', '10.1.2.3:6443'],
    ['https://[fd00::1]:6443', 'fd00::/8'],
    ['https://[fd00::1]:6443', 'fd00:0::1'],
    ['https://[fd00::1]:6443', '[fd00::1]:6443'],
    ['https://localhost:6443', ''],
    ['https://127.0.0.2:6443', ''],
    ['https://[::1]:6443', ''],
  ])('%s is not sent through a proxy with "%s"', (server, noProxy) => {
    expect(proxyFor(server, noProxy)).toBeUndefined();
  });

  test.each([
    ['https://api.example.com', ''],
    ['https://example.com', '.example.com'],
    ['https://example.com', '*.example.com'],
    ['https://notexample.com', 'example.com'],
    ['https://example.com:6443', 'example.com:443'],
    ['https://11.1.2.3', '10.0.0.0/8'],
    ['https://10.1.2.3', '10.0.0.0/99'],
    ['https://10.1.2.3:6443', '10.1.2.3:443'],
    ['https://[fe00::1]:6443', 'fd00::/8'],
  ])('%s is sent through the proxy with "%s"', (server, noProxy) => {
    expect(proxyFor(server, noProxy)).toBe('http://proxy:3128');
  });
});
