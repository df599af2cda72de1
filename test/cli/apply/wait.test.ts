import { describe, expect, test } from 'vitest';
import type { Applied } from '../../../src/cli/apply/resources.js';
import { waitUntilReady } from '../../../src/cli/apply/resources.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { Api } from '../../../src/engine/api.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { anObject, DEPLOYMENT, failure } from '../../engine/support/builders.js';
import { VirtualClock } from '../../engine/support/virtual-clock.js';
import { WatchedServer } from '../support/watched-server.js';

const app = anObject(appService.type, 'web', { uid: 'uid-web', generation: 1 }, { spec: {} });
const applied = [{ given: { input: { kind: appService }, after: app } }] as unknown as Applied[];
const busy = failure(503, 'ServiceUnavailable', 'busy');

function deployment(available: number): AnyObject {
  const { apiVersion, kind } = appService.type;
  const owner = { apiVersion, kind, name: 'web', uid: 'uid-web', controller: true };
  const status = {
    ...{ observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: available },
    conditions: [{ type: 'Available', status: available === 1 ? 'True' : 'False' }],
  };
  const metadata = { uid: 'uid-d', generation: 1, ownerReferences: [owner] };
  return anObject(DEPLOYMENT, 'web', metadata, { spec: { replicas: 1 }, status });
}

async function waited(
  server: WatchedServer,
  afterMilliseconds = 60_000,
  interrupted = new AbortController(),
) {
  const clock = new VirtualClock();
  const told: string[] = [];
  let outcome: string | undefined;
  const waiting = waitUntilReady(applied, {
    ...{ api: new Api(server), clock, signal: interrupted.signal, timeoutMilliseconds: 60_000 },
    report: (line) => {
      told.push(line);
      return Promise.resolve();
    },
  }).then(
    () => (outcome = 'ready'),
    (error: unknown) => (outcome = (error as Error).message),
  );
  await clock.advance(afterMilliseconds);
  return { outcome: () => outcome, told, waiting, clock };
}

const serverOf = (...deployments: AnyObject[]) => new WatchedServer({ appservices: [app], deployments });

describe('without an operator, a custom resource is', () => {
  test('ready once its children are', async () => {
    expect((await waited(serverOf(deployment(1)), 1000)).outcome()).toBe('ready');
    expect((await waited(serverOf(deployment(0)))).outcome()).toMatch(
      /^AppService shop\/web isn't ready after 60 s\n {2}Deployment shop\/web: Progressing: /,
    );
  });

  test('not ready where its children may not be listed or watched, which is said at once', async () => {
    for (const verb of ['list', 'watch']) {
      const server = serverOf(deployment(1));
      if (verb === 'list') server.refused.set('deployments', failure(403, 'Forbidden', 'not you'));
      else server.unwatchable.add('deployments');
      expect((await waited(server, 1000)).outcome()).toBe(
        "AppService shop/web isn't ready\n" +
          `  Not seen, for want of the right to ${verb} them: deployments`,
      );
    }
  });

  test('not ready as long as its children can not be listed, and that is said in the end', async () => {
    const server = serverOf(deployment(1));
    server.refused.set('deployments', busy);
    expect((await waited(server)).outcome()).toBe(
      "AppService shop/web isn't ready after 60 s\n  Not seen: List deployments: 503 busy",
    );
  });

  test('ready once they can be listed', async () => {
    const server = serverOf(deployment(1));
    server.refused.set('deployments', busy);
    const { outcome, clock } = await waited(server, 10_000);
    expect(outcome()).toBeUndefined();
    server.refused.clear();
    await clock.advance(10_000);
    expect(outcome()).toBe('ready');
  });
});

test('an API server that never answers ends with the time, and with an interrupt', async () => {
  const silent = serverOf();
  silent.silent = true;
  expect((await waited(silent)).outcome()).toMatch(
    /^Whether AppService shop\/web is ready couldn't be seen after 60 s: /,
  );

  const interrupted = new AbortController();
  const { outcome, waiting } = await waited(silent, 0, interrupted);
  expect(outcome()).toBeUndefined();
  interrupted.abort();
  await waiting;
  expect(outcome()).toBe('Interrupted: what was applied stays');
});
