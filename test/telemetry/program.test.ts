import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { expect, test, vi } from 'vitest';
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
  vi.useFakeTimers();
  try {
    const stdout = new EventEmitter();
    const child = Object.assign(new EventEmitter(), { stdout }) as unknown as ChildProcess;
    const ended = programEnded(child, { what: 'it', remedy: 'none', limitMilliseconds: 600 });
    for (let line = 0; line < 4; line++) {
      await vi.advanceTimersByTimeAsync(500);
      stdout.emit('data', 'more');
    }
    child.emit('close', 3, null);
    expect(await ended).toEqual({ code: 3, signal: null });
  } finally {
    vi.useRealTimers();
  }
});

test('a program that can not be started fails with the reason', async () => {
  const child = spawn('no-such-program', { stdio: ['ignore', 'pipe', 'pipe'] });
  await expect(programEnded(child, { what: 'it', remedy: 'none' })).rejects.toThrow('ENOENT');
});
