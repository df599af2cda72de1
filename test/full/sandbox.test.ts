import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual, promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { openSandbox, type Sandbox, startSandbox } from '../../sandbox/control-plane.js';
import { repoFolder } from '../../sandbox/paths.js';
import { waitFor } from '../../sandbox/wait.js';

const shared = openSandbox(inject('sandbox'));
const namespace = 'sandbox-test';
const sources = fileURLToPath(new URL('../../sandbox', import.meta.url));
const withTypeScript = ['--import', join(sources, 'typescript-hook.mjs')];
const inTime = { timeoutMilliseconds: 60_000 };

beforeAll(async () => {
  await shared.kubectl(['create', 'namespace', namespace]);
});
afterAll(async () => {
  await shared.kubectl(['delete', 'namespace', namespace, '--wait=false']);
});

function kubectl(...args: string[]) {
  return shared.kubectl(['--namespace', namespace, ...args]);
}

/** The processes whose command line names the folder of a sandbox, other than zombies. */
async function processesOf(dir: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-ww', '-o', 'pid=,stat=,args=']);
  return stdout.split('\n').filter((line) => line.includes(dir) && !/^\s*\d+\s+Z/.test(line));
}

function waitUntilGone(dir: string): Promise<true> {
  const gone = async () => !existsSync(dir) && (await processesOf(dir)).length === 0;
  return waitFor(`everything of ${dir} to be gone`, async () => (await gone()) || undefined, inTime);
}

describe('the control plane', () => {
  test('a Deployment of three becomes available', async () => {
    await kubectl('create', 'deployment', 'web', '--image=example.com/web', '--replicas=3');

    await kubectl('wait', '--for=condition=Available', 'deployment/web', '--timeout=60s');

    const { stdout } = await kubectl(
      'get',
      'deployment',
      'web',
      '-o',
      'jsonpath={.status.availableReplicas}',
    );
    expect(stdout).toBe('3');
  });

  test.each([
    ['no-image', 'ImagePullBackOff'],
    ['no-config', 'CreateContainerConfigError'],
    ['root', 'CreateContainerConfigError'],
  ])('pods of the image %s wait with the reason %s', async (image, reason) => {
    await kubectl('create', 'deployment', image, `--image=sandbox.invalid/${image}:1`);

    const path = 'jsonpath={.items[0].status.containerStatuses[0].state.waiting.reason}';
    await waitFor(
      `the pod to wait with ${reason}`,
      async () => {
        const { stdout } = await kubectl('get', 'pods', '-l', `app=${image}`, '-o', path);
        return stdout === reason ? true : undefined;
      },
      inTime,
    );
  });

  test('a declared user may nothing until a role is bound, and the audit log counts its requests', async () => {
    const user = 'operator-15';
    const asUser = { kubeconfig: shared.kubeconfig(user), allowFailure: true };
    expect(await shared.audit(user)).toEqual([]);

    const list = ['get', '--raw', `/api/v1/namespaces/${namespace}/configmaps`];
    const refused = await shared.kubectl(list, asUser);
    await kubectl('create', 'rolebinding', 'reader', '--clusterrole=view', `--user=${user}`);
    await waitFor(
      'the role to take effect',
      async () => ((await shared.kubectl(list, asUser)).code === 0 ? true : undefined),
      inTime,
    );

    expect(refused.stderr).toContain('Forbidden');
    const entries = await shared.audit(user);
    expect(entries[0]).toMatchObject({
      ...{ user, verb: 'list', code: 403, stage: 'ResponseComplete' },
      uri: `/api/v1/namespaces/${namespace}/configmaps`,
      objectRef: { resource: 'configmaps', namespace, apiVersion: 'v1' },
    });
    expect(entries.at(-1)).toMatchObject({ code: 200 });
    expect(new Set(entries.map(({ auditID }) => auditID)).size).toBe(entries.length);
  });
});

describe('a second control plane beside the first', () => {
  let second: Sandbox;
  beforeAll(async () => {
    second = await startSandbox({ apiOnly: true, users: ['someone'] });
  });
  afterAll(() => second.stop());

  test('keeps its data, port and audit log when its API server is restarted', async () => {
    await second.kubectl(['create', 'configmap', 'kept', '--from-literal=a=b']);
    const { url, processes } = second;
    const before = (await second.audit('admin')).length;

    await second.restartApiServer();

    const { stdout } = await second.kubectl(['get', 'configmap', 'kept', '-o', 'jsonpath={.data.a}']);
    expect(stdout).toBe('b');
    expect(second.url).toBe(url);
    expect(second.processes['etcd']).toEqual(processes['etcd']);
    expect(second.processes['kube-apiserver']).not.toEqual(processes['kube-apiserver']);
    expect((await second.audit('admin')).length).toBeGreaterThan(before);
  });
});

describe('the end', () => {
  test('stop leaves neither a process nor a file', async () => {
    const sandbox = await startSandbox({ apiOnly: true });
    expect(await processesOf(sandbox.dir)).toHaveLength(2);

    await sandbox.stop();

    expect(await processesOf(sandbox.dir)).toEqual([]);
    expect(existsSync(sandbox.dir)).toBe(false);
    await sandbox.stop(); // A second time does no harm.
  });

  test.each(['SIGKILL', 'SIGTERM'] as const)(
    'a starter ended by %s leaves nothing running',
    async (signal) => {
      const script = `import { startSandbox } from ${JSON.stringify(join(sources, 'control-plane.ts'))};
      console.log((await startSandbox({ apiOnly: true })).dir);
      setInterval(() => {}, 1000);`;
      const args = [...withTypeScript, '--input-type=module', '-e', script];
      const starter = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
      const [dir] = (await once(createInterface({ input: starter.stdout }), 'line')) as [string];
      expect(await processesOf(dir)).toHaveLength(2);

      const ended = once(starter, 'exit');
      starter.kill(signal);

      expect(await ended).toEqual([null, signal]);
      await waitUntilGone(dir);
    },
  );

  test('a program that ends early is reported with the end of its log, and nothing is left', async () => {
    const assets = await mkdtemp(join(tmpdir(), 'assets-'));
    const dataDir = join(assets, 'data');
    await writeFile(join(assets, 'etcd'), '#!/bin/sh\necho no luck today >&2; exit 3\n', { mode: 0o755 });

    const failure = startSandbox({ apiOnly: true, assets: [assets], dataDir });

    await expect(failure).rejects.toThrow(/etcd ended early \(exit code 3\)[^]*no luck today/);
    expect(existsSync(dataDir)).toBe(false);
    await rm(assets, { recursive: true });
  });
});

describe('npm run sandbox', () => {
  const name = `test-${process.pid}`;
  const dir = join(repoFolder(), '.sandbox', name);
  const command = (...args: string[]) =>
    spawn(process.execPath, [...withTypeScript, join(sources, 'main.ts'), ...args, '--name', name]);

  /** The output of a command, which must succeed. */
  async function run(...args: string[]): Promise<string> {
    const child = command(...args);
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number];
    expect(code, output).toBe(0);
    return output;
  }

  afterAll(() => run('down'));

  test('up, status, kubeconfig and down', async () => {
    expect(await run('status')).toContain('There is no sandbox');

    expect(await run('up', '--api-only')).toContain('export KUBECONFIG=');
    expect(await processesOf(dir)).toHaveLength(2);
    expect(await run('up')).toContain('already running');
    expect(await run('status')).toContain('kube-apiserver');
    expect(await readFile((await run('kubeconfig', 'operator')).trim(), 'utf8')).toContain('operator');

    expect(await run('down')).toContain('stopped and removed');
    expect(existsSync(dir)).toBe(false);
    expect(await processesOf(dir)).toEqual([]);
    expect(await run('down')).toContain('There is no sandbox');
  });

  test.each(['SIGINT', 'SIGKILL'] as const)('up interrupted by %s leaves nothing', async (signal) => {
    const interrupted = async (): Promise<unknown> => {
      const up = command('up', '--api-only');
      const ended = once(up, 'exit');
      const log = join(dir, 'logs', 'kube-apiserver.log');
      await waitFor('the API server to start', () => existsSync(log) || undefined, inTime);
      up.kill(signal);
      return ended;
    };

    let end = await interrupted();
    // It was faster than this test.
    if (isDeepStrictEqual(end, [0, null])) {
      await run('down');
      end = await interrupted();
    }
    expect(end).toEqual([null, signal]);
    await waitUntilGone(dir);
  });
});
