import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { runCommand } from '../../src/cli/run.js';
import type { Kind, Render } from '../../src/contract/kind.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { folderWith } from '../synth/fixtures.js';

const started = vi.hoisted(() => ({ render: undefined as Render | undefined }));

vi.mock('../../src/cli/memory.js', () => ({ startLean: () => undefined }));
vi.mock('../../src/cli/servers.js', () => ({ startServers: () => Promise.resolve([]) }));
vi.mock('../../src/engine/undici-transport.js', () => ({ UndiciTransport: vi.fn() }));
vi.mock('../../src/cli/cluster.js', () => ({
  loadKubeConfig: () => ({ getCurrentCluster: () => null, getCurrentContext: () => 'test' }),
  runsInCluster: () => false,
  currentNamespace: () => 'ops',
}));
vi.mock('../../src/engine/manager.js', () => ({
  Manager: class {
    run(): Promise<void> {
      return Promise.resolve();
    }
  },
}));
vi.mock('../../src/kinds/index.js', async () => {
  const { appService: kind } = await import('../../src/kinds/app-service/kind.js');
  const spy: Kind = {
    ...kind,
    controllers: (context) => {
      started.render = context.render;
      return kind.controllers(context);
    },
  };
  return { builtInKinds: [spy] };
});

beforeEach(() => {
  started.render = undefined;
});

async function run(...args: string[]): Promise<void> {
  await runCommand().parseAsync(['--log-level', 'error', ...args], { from: 'user' });
}

const web = {
  ...{ apiVersion: 'kosmos.io/v1', kind: 'AppService', metadata: { name: 'web' } },
  spec: { size: 4, image: 'nginx' },
};

test('the controller renders by the policy', async () => {
  const folder = folderWith({ 'policy.yaml': 'appservice: { maxSize: 3 }' });

  await run('--policy', join(folder, 'policy.yaml'));

  expect(() => started.render?.(appService, web)).toThrow("more than the policy's maxSize, 3");
});

test('without one nothing is forbidden', async () => {
  await run();

  expect(started.render?.(appService, web)).toHaveLength(1);
});

test('a policy that is not understood ends it before it begins, with code 2', async () => {
  await expect(run('--policy', 'nowhere.yaml')).rejects.toMatchObject({ exitCode: 2 });
  expect(started.render).toBeUndefined();
});
