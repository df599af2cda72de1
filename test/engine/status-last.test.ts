import { describe, expect, it } from 'vitest';
import { OperatorError } from '../../src/contract/error.js';
import type { Plan } from '../../src/contract/controller.js';
import type { CustomResource } from '../../src/contract/object.js';
import { plan } from './support/bench.js';
import { failure, ownedBy, STATUS_MANAGER, widget } from './support/builders.js';
import { apply, cr, startedRunner } from './support/started-runner.js';
import type { StartedRunner } from './support/started-runner.js';
import { settled } from './support/virtual-clock.js';

const COUNT = 20;
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

/** All of them at once, and one worker. */
async function burst(reconcile: (key: string) => Plan): Promise<StartedRunner> {
  const setup = startedRunner(reconcile, 1);
  setup.runner.queue.hold('test');
  for (const name of names) await setup.deliver(cr(name));
  setup.runner.queue.release('test');
  for (let turn = 0; turn < 20; turn++) await settled();
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
    // Every sixteenth key, and the ones at the end, when hardly anybody waits.
    expect(statusesBefore.length).toBeLessThanOrEqual(4);
  });

  it('tells a failure at once', async () => {
    const error = new OperatorError({ reason: 'RenderFailed', message: 'no' });
    const kinds = kindsOf(await burst((key) => planFor(key, key === 'shop/w0' ? { apply: [], error } : {})));
    expect(kinds[0]).toBe('status');
  });

  it('tells at once that a child was refused', async () => {
    const setup = startedRunner((key) => planFor(key), 1);
    setup.server.intercept = ({ method, path }) =>
      method === 'PATCH' && path.endsWith('/w0') ? failure(422, 'Invalid', 'no') : undefined;
    setup.runner.queue.hold('test');
    for (const name of names) await setup.deliver(cr(name));
    setup.runner.queue.release('test');
    for (let turn = 0; turn < 20; turn++) await settled();
    expect(kindsOf(setup).slice(0, 2)).toEqual(['child', 'status']);
  });

  it('leaves nothing for later where a status is as it should be', async () => {
    const setup = await burst((key) => planFor(key));
    const before = setup.reconciled.length;
    setup.runner.queue.hold('test');
    for (const name of names) setup.runner.queue.add(`shop/${name}`, 'initial');
    setup.runner.queue.release('test');
    for (let turn = 0; turn < 20; turn++) await settled();
    expect(setup.reconciled.length - before).toBe(COUNT);
  });
});

it('Runner writes the status with the children where nobody waits', async () => {
  const setup = startedRunner((key) => planFor(key), 1);
  await setup.deliver(cr('w0'));
  expect(kindsOf(setup)).toEqual(['child', 'status']);
});
