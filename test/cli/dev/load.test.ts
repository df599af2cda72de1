import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { repoFolder } from '../../../sandbox/paths.js';
import { loadProject } from '../../../src/cli/dev/load.js';
import { Session } from '../../../src/cli/dev/session.js';
import type { Guard } from '../../../src/cli/dev/stand.js';
import type { View } from '../../../src/cli/dev/view.js';
import { systemClock } from '../../../src/engine/clock.js';
import { eventually } from '../../../src/testing/eventually.js';
import { folderWith } from '../../synth/fixtures.js';

const [, runner = ''] = process.argv;
const pids: number[] = [];
const guard: Guard = {
  watch: (pid) => pids.push(pid),
  forget: () => undefined,
  release: () => Promise.resolve(),
};

beforeEach(() => {
  pids.length = 0;
  process.argv[1] = join(repoFolder(), 'lib/cli/main.js');
});
afterEach(() => {
  for (const pid of pids)
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  process.argv[1] = runner;
});

function project(code: string): { readonly config: string; readonly root: string } {
  const root = folderWith({ 'reconstruct.config.mjs': code });
  return { root, config: join(root, 'reconstruct.config.mjs') };
}

test('a configuration that ends the process is told with its exit code', async () => {
  const { signal } = new AbortController();
  const props = { ...project('process.exit(7);'), samples: [], guard, clock: systemClock, signal };
  expect(await loadProject(props)).toEqual({
    problems: ['It ends the process, with exit code 7: take out what calls process.exit'],
  });
});

test('what is interrupted already begins no process', async () => {
  const props = { ...project('for (;;);'), samples: [], guard, clock: systemClock };

  expect(await loadProject({ ...props, signal: AbortSignal.abort() })).toEqual({ problems: [] });
  expect(pids).toEqual([]);
});

test('a sandbox that does not start is told by who has started it, and not as a save that cannot be taken up', async () => {
  const { signal } = new AbortController();
  const view = { troubles: vi.fn(), told: vi.fn() };
  const { config } = project('export default {};');
  const stand = Promise.reject(new Error('no etcd'));
  stand.catch(() => undefined);
  const session = new Session({
    ...{ options: { config, samples: [], kinds: ['appservice'] }, view: view as Partial<View> as View },
    ...{ clock: systemClock, guard, stand, signal },
  });
  await session.begin();
  await session.close();

  expect(view.told).not.toHaveBeenCalled();
  expect(view.troubles).not.toHaveBeenCalled();
});

test('what is interrupted while it hangs ends at once, and is no trouble', async () => {
  const interrupted = new AbortController();
  const view = { troubles: vi.fn(), told: vi.fn() };
  const { config } = project('for (;;);');
  const session = new Session({
    ...{ options: { config, samples: [] }, view: view as Partial<View> as View, clock: systemClock, guard },
    ...{ stand: new Promise<never>(() => undefined), signal: interrupted.signal },
  });
  const begun = session.begin();
  await eventually(() => {
    expect(pids).toHaveLength(1);
  });
  interrupted.abort();
  await begun;
  await session.close();

  expect(() => process.kill(pids[0]!, 0)).toThrow('ESRCH');
  expect(view.troubles).not.toHaveBeenCalled();
  expect(view.told).not.toHaveBeenCalled();
});
