import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { leanStart } from '../../src/cli/memory.js';

const LEAN = {
  flags: ['--max-semi-space-size=4', '--heap-growing-percent=20', '--expose-gc'],
  env: { MALLOC_ARENA_MAX: '1' },
};

test('what is missing is added, and what is there stays', () => {
  const start = leanStart({ flags: ['--enable-source-maps'], env: { HOME: '/home/me' } });
  expect(start).toEqual({
    flags: ['--enable-source-maps', ...LEAN.flags],
    env: { HOME: '/home/me', ...LEAN.env },
  });
});

test('a process that was started so is left alone', () => {
  expect(leanStart(LEAN)).toBeUndefined();
});

test.for([['--inspect'], ['--inspect-brk=127.0.0.1:9229']])('a process with %s is left alone', (flags) => {
  expect(leanStart({ flags, env: {} })).toBeUndefined();
});

test.for<[string, readonly string[], NodeJS.ProcessEnv]>([
  ["Node's command line", ['--max_semi_space_size=16'], {}],
  ['NODE_OPTIONS', [], { NODE_OPTIONS: '--no-warnings --max-semi-space-size=16' }],
])('a size chosen by %s is kept', ([, flags, env]) => {
  expect(leanStart({ flags, env })).toEqual({
    flags: [...flags, '--heap-growing-percent=20', '--expose-gc'],
    env: { ...env, ...LEAN.env },
  });
});

test('a number of pools that somebody chose is kept', () => {
  expect(leanStart({ flags: [], env: { MALLOC_ARENA_MAX: '4' } })?.env).toEqual({ MALLOC_ARENA_MAX: '4' });
});

test('the process goes on as itself, and does so once', () => {
  const source = `
    const { startLean } = await import(${JSON.stringify(join(repoFolder(), 'src/cli/memory.ts'))});
    process.stdout.write('started ');
    startLean();
    const { pid, execArgv, env } = process;
    console.log(JSON.stringify({ pid, semiSpace: execArgv.includes('--max-semi-space-size=4'), pools: env.MALLOC_ARENA_MAX, mark: env.MARK }));`;
  const { NODE_OPTIONS: _, MALLOC_ARENA_MAX: __, ...rest } = process.env;
  // The shell's own ID, which is Node's too once it has been replaced.
  const output = execFileSync(
    'sh',
    ['-c', 'echo $$; exec "$0" --no-warnings --input-type=module --eval "$1"', process.execPath, source],
    { env: { ...rest, MARK: 'kept' }, encoding: 'utf8' },
  );
  const [pid, started, again, result] = output.split(/\s+/);
  expect([started, again]).toEqual(['started', 'started']);
  expect(JSON.parse(result ?? '')).toEqual({ pid: Number(pid), semiSpace: true, pools: '1', mark: 'kept' });
});
