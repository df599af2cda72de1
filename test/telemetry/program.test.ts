import { spawn } from 'node:child_process';
import { expect, test } from 'vitest';
import { programEnded } from '../../src/telemetry/program.js';

const shell = (script: string): ReturnType<typeof spawn> =>
  spawn('/bin/sh', ['-c', script], { stdio: ['ignore', 'pipe', 'pipe'] });

test('a program that hangs is named in a line while it is waited for, and killed at the limit, with the remedy', async () => {
  const said: string[] = [];
  // What it has started itself holds its output open.
  const child = shell('sleep 600 & wait');
  await expect(
    programEnded(child, {
      what: 'go env GOVERSION',
      remedy: 'check the network',
      say: (line) => said.push(line),
      sayMilliseconds: 40,
      limitMilliseconds: 200,
    }),
  ).rejects.toThrow(/^go env GOVERSION gave no output for \d+ s and was killed; check the network$/);
  expect(said[0]).toMatch(/^waiting for go env GOVERSION: no output for \d+ s, at most 0.2 s$/);
  expect(child.killed).toBe(true);
});

test('a program that goes on giving output is waited for', async () => {
  const child = shell('for i in 1 2 3 4; do echo $i; sleep 0.2; done; exit 3');
  const limits = { what: 'it', remedy: 'none', limitMilliseconds: 600 };
  expect(await programEnded(child, limits)).toEqual({ code: 3, signal: null });
});

test('a program that can not be started fails with the reason', async () => {
  const child = spawn('no-such-program', { stdio: ['ignore', 'pipe', 'pipe'] });
  await expect(programEnded(child, { what: 'it', remedy: 'none' })).rejects.toThrow('ENOENT');
});
