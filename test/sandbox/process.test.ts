import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { ManagedProcess } from '../../sandbox/process.js';
import { waitFor } from '../../sandbox/wait.js';

const sources = fileURLToPath(new URL('../../sandbox', import.meta.url));

test('a program whose starter is killed before it could be watched never runs', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'process-'));
  const script = `
    import { ManagedProcess } from ${JSON.stringify(join(sources, 'process.ts'))};
    await ManagedProcess.start({
      name: 'sleeper',
      program: '/bin/sh',
      args: ['-c', 'sleep 60; exit', ${JSON.stringify(dir)}],
      dir: ${JSON.stringify(dir)},
      logFile: ${JSON.stringify(join(dir, 'log'))},
      watchdog: { watch: () => process.kill(process.pid, 'SIGKILL') },
    });
  `;
  const hook = join(sources, 'typescript-hook.mjs');
  const starter = spawn(process.execPath, ['--import', hook, '--input-type=module', '--eval', script]);

  expect(await once(starter, 'exit')).toEqual([null, 'SIGKILL']);

  await waitFor('the program to be gone', async () => (await isGone(dir)) || undefined, {
    timeoutMilliseconds: 30_000,
  });
  await rm(dir, { recursive: true });
});

test('of a program whose folder is gone there is no log, which is no failure', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'process-'));
  const watchdog = {
    ...{ watch: () => undefined, forget: () => undefined, watchFolder: () => undefined },
    release: () => Promise.resolve(),
  };
  const started = await ManagedProcess.start({
    ...{
      name: 'brief',
      program: '/bin/sh',
      args: ['-c', 'exit 3'],
      dir,
      logFile: join(dir, 'log'),
      watchdog,
    },
  });
  await rm(dir, { recursive: true });
  await started.ended;

  expect(started.failure?.message).toBe('brief ended early (exit code 3). Its log is gone.');
});

async function isGone(dir: string): Promise<boolean> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-ww', '-o', 'stat=,args=']);
  return !stdout.split('\n').some((line) => line.includes(dir) && !line.startsWith('Z'));
}
