import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readYaml } from '../../src/values/yaml.js';
import { AuditLog } from '../../sandbox/audit.js';
import { openSandbox, type SandboxHandle } from '../../sandbox/client.js';
import { kubeconfigFor, makeUsers, tokenFile } from '../../sandbox/users.js';
import { tryLock } from '../../sandbox/lock.js';
import { identify, isRunning } from '../../sandbox/process.js';
import { checkName, readState, removeState, writeState } from '../../sandbox/state.js';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'sandbox-files-test-'));
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const handle = (): SandboxHandle => ({
  ...{ dir, url: 'https://127.0.0.1:1', adminKubeconfig: '/admin', kubeconfigs: { admin: '/admin' } },
  ...{ etcdUrl: 'http://127.0.0.1:2', kubectlPath: '/kubectl', auditLogPath: join(dir, 'audit.log') },
});

/** A process that has ended: this one's pid, but another start. */
const gone = { pid: process.pid, startTime: '1' };
const onLinux = process.platform === 'linux';

describe('users', () => {
  test('admin has all rights, a declared user none', () => {
    const users = makeUsers(['operator-a']);

    expect(users.get('admin')?.groups).toEqual(['system:masters']);
    expect(users.get('operator-a')?.groups).toEqual([]);
    expect(tokenFile([{ name: 'x', token: 't', groups: ['a', 'b'] }])).toBe('t,x,x,"a,b"\n');
  });

  test('a kubeconfig for a user not declared is refused, naming those that are', () => {
    const client = openSandbox(handle());

    expect(client.kubeconfig('admin')).toBe('/admin');
    expect(() => client.kubeconfig('nobody')).toThrow('no user "nobody"; it has admin');
  });
});

test('a kubeconfig leads to the cluster as the user', () => {
  const text = kubeconfigFor({ url: 'https://127.0.0.1:1', ca: 'PEM' }, { name: 'me', token: 'secret' });

  expect(readYaml(text)).toMatchObject({
    'current-context': 'sandbox',
    clusters: [{ cluster: { server: 'https://127.0.0.1:1', 'certificate-authority-data': btoa('PEM') } }],
    users: [{ name: 'me', user: { token: 'secret' } }],
    contexts: [{ name: 'sandbox', context: { cluster: 'sandbox', user: 'me' } }],
  });
});

describe('the audit log', () => {
  const event = (username: string, verb: string): string =>
    JSON.stringify({
      auditID: '1',
      verb,
      requestURI: '/x',
      user: { username },
      responseStatus: { code: 200 },
    });

  test('is read with the end of what was being handled, but not of what has lost its API server', async () => {
    const path = join(dir, 'handled.log');
    const log = new AuditLog(path, 2_000);
    const verbs = async (): Promise<string[]> => (await log.entries('a')).map(({ verb }) => verb);
    const stage = (name: string, auditID: string, verb: string): string =>
      `${JSON.stringify({ ...(JSON.parse(event('a', verb)) as object), auditID, stage: name })}\n`;

    await writeFile(path, stage('RequestReceived', 'x', 'delete'));
    const read = verbs();
    await delay(50);
    await appendFile(path, stage('RequestReceived', 'y', 'watch'));
    await appendFile(path, stage('ResponseComplete', 'x', 'delete'));
    expect(await read).toEqual(['delete']);
    await appendFile(path, stage('ResponseStarted', 'y', 'watch'));
    expect(await verbs()).toEqual(['delete', 'watch']);

    await appendFile(path, stage('RequestReceived', 'lost', 'patch'));
    expect(await verbs()).toEqual(['delete', 'watch']);
  });

  test('is read on where it has grown, by whoever asks at once', async () => {
    const path = join(dir, 'growing.log');
    const log = new AuditLog(path);
    const verbs = async (user: string): Promise<string[]> =>
      (await log.entries(user)).map(({ verb }) => verb);
    const [first, second, other] = [event('a', 'get'), event('a', 'größer'), event('b', 'list')];
    const cut = Buffer.from(second).indexOf('ß') + 1;

    await writeFile(path, `${first}\n`);
    await appendFile(path, Buffer.from(second).subarray(0, cut));
    expect(await Promise.all([verbs('a'), verbs('a')])).toEqual([['get'], ['get']]);
    await appendFile(path, Buffer.from(second).subarray(cut));
    expect(await verbs('a')).toEqual(['get']);
    await appendFile(path, `\n${other}\n`);
    expect(await Promise.all([verbs('a'), verbs('a'), verbs('b')])).toEqual([
      ...[
        ['get', 'größer'],
        ['get', 'größer'],
      ],
      ['list'],
    ]);
    expect(await verbs('a')).toEqual(['get', 'größer']);
  });
});

describe('process identity', () => {
  test.runIf(onLinux)('another process by a pid used before is not the same', () => {
    expect(isRunning(gone)).toBe(false);
  });
});

describe('a lock', () => {
  test('has one holder, and is free after its release', async () => {
    const path = join(dir, 'lock');
    const first = await tryLock(path);
    expect(await tryLock(path)).toMatchObject({ pid: process.pid });

    if ('release' in first) await first.release();

    expect(await tryLock(path)).toHaveProperty('release');
  });

  test.runIf(onLinux)('left by a process that has ended is taken over', async () => {
    const path = join(dir, 'lock');
    await writeFile(path, JSON.stringify({ ...gone, id: 'old' }));

    const lock = await tryLock(path);

    expect(lock).toHaveProperty('release');
    if ('release' in lock) await lock.release();
  });
});

describe('the state of a background sandbox', () => {
  const me = identify(process.pid);

  test('absent without a folder, stale without a record', async () => {
    expect(await readState(join(dir, 'none'))).toEqual({ kind: 'absent' });
    expect(await readState(dir)).toEqual({ kind: 'stale' });
  });

  test('running while all its processes run', async () => {
    await writeState({ handle: handle(), processes: { etcd: me, kwok: me } });

    expect(await readState(dir)).toMatchObject({ kind: 'running' });
  });

  test.runIf(onLinux)('broken when some have ended, stale when all have', async () => {
    await writeState({ handle: handle(), processes: { etcd: me, kwok: gone } });
    expect(await readState(dir)).toMatchObject({ kind: 'broken', ended: ['kwok'] });

    await writeState({ handle: handle(), processes: { etcd: gone, kwok: gone } });
    expect(await readState(dir)).toEqual({ kind: 'stale' });
  });

  test.runIf(onLinux)('removing a stale one ends no process that got a pid of it', async () => {
    await writeState({ handle: handle(), processes: { etcd: gone } });

    await removeState(dir, await readState(dir));

    expect(await readState(dir)).toEqual({ kind: 'absent' });
  });

  test.each(['../x', 'A', '', '-a'])('the name %j is refused', (name) => {
    expect(() => checkName(name)).toThrow(/sandbox name/);
  });
});
