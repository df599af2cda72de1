import { describe, expect, it } from 'vitest';
import type { Plan } from '../../src/contract/controller.js';
import type { CustomResource } from '../../src/contract/object.js';
import { plan } from './support/bench.js';
import { apply, failure, ownedBy, STATUS_MANAGER, widget } from './support/builders.js';
import type { FakeApiServer } from './support/fake-api-server.js';
import { startedRunner } from './support/started-runner.js';
import type { StartedRunner } from './support/started-runner.js';

const COUNT = 30;
const names = Array.from({ length: COUNT }, (_, index) => `w${index}`);

/** A child each, and a status that says so. */
function planFor(key: string, parts: Partial<Plan> = {}): Plan {
  const name = key.replace('shop/', '');
  const target: CustomResource = widget(name);
  return plan({
    apply: [{ ...apply(name), owner: ownedBy(name) }],
    status: [{ target, fieldManager: STATUS_MANAGER, status: () => ({ phase: 'Made' }) }],
    ...parts,
  });
}

/** All of them at once, one worker, and a server that takes 20 ms for each write. */
async function burst(
  reconcile: (key: string) => Plan,
  answer: FakeApiServer['intercept'] = () => undefined,
): Promise<StartedRunner> {
  const setup = startedRunner(reconcile, 1);
  const { server, clock, runner } = setup;
  server.intercept = async (request) => {
    await new Promise<void>((resolve) => clock.setTimer(20, resolve));
    return answer(request);
  };
  runner.queue.hold('test');
  for (const name of names) await setup.deliver(widget(name));
  runner.queue.release('test');
  await clock.advance(5_000);
  return setup;
}

const kindsOf = ({ server }: StartedRunner): string[] =>
  server.requests
    .filter(({ method }) => method === 'PATCH')
    .map(({ path }) => (path.endsWith('/status') ? 'status' : 'child'));

describe('Runner, in a burst', () => {
  it('makes the children first, gives each status its turn, and writes each once', async () => {
    const kinds = kindsOf(await burst((key) => planFor(key)));
    expect(kinds.filter((kind) => kind === 'child')).toHaveLength(COUNT);
    expect(kinds.filter((kind) => kind === 'status')).toHaveLength(COUNT);
    const statusesBefore = kinds.slice(0, kinds.lastIndexOf('child')).filter((kind) => kind === 'status');
    expect(statusesBefore.length).toBeGreaterThan(0);
    // Every sixteenth key.
    expect(statusesBefore.length).toBeLessThanOrEqual(2);
  });

  it('tells at once that a child was refused', async () => {
    const setup = await burst(
      (key) => planFor(key),
      ({ method, path }) =>
        method === 'PATCH' && path.endsWith('/w0') ? failure(422, 'Invalid', 'no') : undefined,
    );
    expect(kindsOf(setup).slice(0, 2)).toEqual(['child', 'status']);
  });
});

it('Runner leaves no status for longer than a second, however often its custom resource changes', async () => {
  const setup = startedRunner((key, count) =>
    planFor(key, {
      status: [
        {
          target: widget(key.slice(5)),
          fieldManager: STATUS_MANAGER,
          status: () => ({ phase: `Made ${count}` }),
        },
      ],
    }),
  );
  const statuses = (name: string): number =>
    setup.server.requests.filter(({ path }) => path.endsWith(`/${name}/status`)).length;
  for (let n = 0; n < 500; n++) {
    await setup.deliver(widget(`w${n % 40}`, { generation: n + 1 }));
    await setup.clock.advance(20);
  }
  // Each was changed every 800 ms for ten seconds: left with one change, and written a second later, after the next.
  for (const name of ['w0', 'w20', 'w39']) expect(statuses(name)).toBeGreaterThanOrEqual(6);
});

it('Runner writes the status with the children where nobody waits', async () => {
  const setup = startedRunner((key) => planFor(key), 1);
  await setup.deliver(widget('w0'));
  expect(kindsOf(setup)).toEqual(['child', 'status']);
});
