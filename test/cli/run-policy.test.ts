import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { program } from '../../src/cli/commands.js';
import type { Kind, Render } from '../../src/contract/kind.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { folderWith } from '../synth/fixtures.js';

/** By default it would be a second. */
const IN_TIME = { timeout: 20_000 };

const started = vi.hoisted(() => ({
  render: undefined as Render | undefined,
  lookedAgain: [] as string[],
  errors: [] as object[],
  running: undefined as Promise<undefined> | undefined,
}));

vi.mock('../../src/telemetry/logger.js', async (original) => ({
  ...(await original<object>()),
  createLogger: () => ({
    ...{ info: () => undefined, warn: () => undefined },
    error: (fields: object, message: string) => started.errors.push({ ...fields, message }),
  }),
}));
vi.mock('../../src/engine/transport.js', () => ({ UndiciTransport: vi.fn() }));
vi.mock('../../src/cli/cluster.js', () => ({
  clusterAccess: () => ({ context: 'test', cluster: { server: 'https://test' }, user: {}, namespace: 'ops' }),
}));
vi.mock('../../src/engine/manager.js', () => ({
  Manager: class {
    run(): Promise<void> {
      return started.running ?? Promise.resolve();
    }
    requeueAll(name: string): void {
      started.lookedAgain.push(name);
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
  const { streamIngress } = await import('../../src/kinds/stream-ingress/kind.js');
  return { builtInKinds: [spy, streamIngress] };
});

beforeEach(() => {
  started.render = undefined;
  started.running = undefined;
  started.lookedAgain = [];
  started.errors = [];
});

async function run(...args: string[]): Promise<void> {
  const none = ['--metrics-bind-address', '0', '--health-bind-address', '0'];
  await program().parseAsync(['run', ...none, ...args], { from: 'user' });
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

/** A controller that is at work by the policy of a file. */
async function runningBy(policy: string): Promise<{
  readonly file: string;
  readonly look: () => Promise<void>;
  readonly end: () => Promise<void>;
}> {
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const { promise, resolve } = Promise.withResolvers<undefined>();
  started.running = promise;
  started.render = undefined;
  const file = join(folderWith({ 'policy.yaml': policy }), 'policy.yaml');
  const running = run('--policy', file);
  await vi.waitFor(() => {
    expect(started.render?.(appService, web)).toHaveLength(1);
  }, IN_TIME);
  return {
    file,
    look: async () => {
      await vi.advanceTimersByTimeAsync(2_000);
    },
    end: () => {
      resolve(undefined);
      return running;
    },
  };
}

test('by the one that the file has later too, and the kinds that it concerns are looked at again', async () => {
  const { file, look, end } = await runningBy('appservice: { maxSize: 4 }');

  writeFileSync(file, 'appservice: { maxSize: 3 }');
  await vi.waitFor(async () => {
    await look();
    expect(started.lookedAgain).toEqual(['appservice']);
  }, IN_TIME);

  expect(() => started.render?.(appService, web)).toThrow("more than the policy's maxSize, 3");
  await end();
});

test('a policy that is not understood ends it before it begins, with code 2', async () => {
  await expect(run('--policy', 'nowhere.yaml')).rejects.toMatchObject({ exitCode: 2 });
  expect(started.render).toBeUndefined();
});
