import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { repoFolder } from '../../sandbox/paths.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'run-ends-'));
  // Nothing listens on the port that is there for discarding what is sent.
  const kubeconfig = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'nowhere' },
    clusters: [{ name: 'nowhere', cluster: { server: 'http://127.0.0.1:9' } }],
    users: [{ name: 'nobody', user: { token: 'none' } }],
    contexts: [{ name: 'nowhere', context: { cluster: 'nowhere', user: 'nobody' } }],
  };
  await writeFile(join(folder, 'kubeconfig'), stringify(kubeconfig));
});
afterAll(() => rm(folder, { recursive: true }));

/** A controller that reaches no server, after something was done to its process by what it loads. */
async function ending(
  preload: string,
  act: (child: ChildProcess, message: string) => void = () => undefined,
): Promise<{ code: number | null; signal: string | null; messages: string[] }> {
  const file = join(folder, 'preload.mjs');
  await writeFile(file, preload);
  const flags = ['--metrics-bind-address', '0', '--health-bind-address', '0', '--no-leader-elect'];
  const child = spawn(
    process.execPath,
    [
      ...['--import', file, join(repoFolder(), 'lib/cli/main.js'), 'run', ...flags],
      ...['--kubeconfig', join(folder, 'kubeconfig')],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const messages: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    const { msg, err } = JSON.parse(line) as { msg: string; err?: { message: string } };
    messages.push(err ? `${msg}: ${err.message}` : msg);
    act(child, msg);
  });
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  return { code, signal, messages };
}

const BUG = 'uncaught error, which is a bug, ending at once without releasing the lease';
/** Happens once the process handles signals, and so everything else that may end it. */
const onceStarted = (what: string): string => `
  const on = process.on;
  process.on = function (name, listener) {
    if (name === 'SIGTERM') setImmediate(() => { ${what} });
    return on.call(this, name, listener);
  };`;

test.for([
  ['throws outside of all promises', "throw new Error('thrown')"],
  ['rejects a promise that nothing awaits', "void Promise.reject(new Error('thrown'))"],
])('a controller that %s logs why it ends, and ends with exit code 70', async ([, what]) => {
  const { code, messages } = await ending(onceStarted(what ?? ''));
  expect(messages.at(-1)).toBe(`${BUG}: thrown`);
  expect(code).toBe(70);
});

test('a controller that is asked to stop logs the signal, and ends with exit code 0', async () => {
  const { code, messages } = await ending('', (child, message) => {
    if (message === 'starting') child.kill('SIGTERM');
  });
  expect(messages).toContain('received a signal to stop');
  expect(messages.at(-1)).toBe('stopped');
  expect(code).toBe(0);
});

test('a controller that is asked twice logs that it ends at once', async () => {
  const twice = "process.emit('SIGTERM', 'SIGTERM'); process.emit('SIGTERM', 'SIGTERM');";
  const { signal, messages } = await ending(onceStarted(twice));
  expect(messages.filter((message) => message.includes('signal'))).toEqual([
    'received a signal to stop',
    'received a second signal, ending at once without releasing the lease',
  ]);
  expect(signal).toBe('SIGTERM');
});
