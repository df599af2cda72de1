import { expect, it } from 'vitest';
import type { StatusStep } from '../../src/contract/controller.js';
import { refOf } from '../../src/contract/object.js';
import type { AnyObject, CustomResource } from '../../src/contract/object.js';
import { carryOut } from '../../src/engine/carry-out.js';
import { newBench, plan } from './support/bench.js';
import { failure, STATUS_MANAGER, widget, WIDGET } from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { settled } from './support/virtual-clock.js';

const NEVER = new AbortController().signal;

function setup(names: readonly string[]) {
  const bench = newBench(new FakeApiServer());
  const targets = names.map((name) => {
    const put = bench.server.put(WIDGET, widget(name) as unknown as AnyObject);
    bench.reader.store(WIDGET).observed(put);
    return put as unknown as CustomResource;
  });
  const step = (target: CustomResource, status: object): StatusStep => ({
    target,
    fieldManager: STATUS_MANAGER,
    status: () => status,
  });
  return { ...bench, targets, step };
}

const names = Array.from({ length: 1_000 }, (_, n) => `w${n}`);

it('writes the statuses of a plan several at a time, and no more than sixteen', async () => {
  const { server, reader, tools, targets, step } = setup(names);
  let [now, most] = [0, 0];
  server.intercept = async () => {
    most = Math.max(most, ++now);
    await Promise.resolve();
    now--;
    return undefined;
  };
  const work = plan({ status: targets.map((target, n) => step(target, { n })) });
  const { statusChanges } = await carryOut(work, reader, tools, NEVER);
  expect(most).toBe(16);
  expect(statusChanges.map(({ ref }) => ref)).toEqual(targets.map(refOf));
  expect(statusChanges.every(({ action }) => action === 'configured')).toBe(true);
  expect(names.map((name) => server.get(WIDGET, `shop/${name}`)?.status)).toEqual(
    names.map((_, n) => ({ n })),
  );
  server.requests.length = 0;
  const again = await carryOut(work, reader, tools, NEVER);
  expect(again.statusChanges.every(({ action }) => action === 'unchanged')).toBe(true);
  expect(server.requests).toEqual([]);
});

it('keeps the order of what is written to one object', async () => {
  const { server, reader, tools, targets, step } = setup(['a', 'b']);
  const written: string[] = [];
  server.intercept = async ({ path, body }) => {
    const { status } = body as { status: { n: number } };
    written.push(`${path.split('/').at(-2) ?? ''} ${String(status.n)} begins`);
    // The first takes longest.
    for (let turn = 0; turn < 3 - status.n; turn++) await settled();
    written.push(`${path.split('/').at(-2) ?? ''} ${String(status.n)} ends`);
    return undefined;
  };
  const [a, b] = targets as [CustomResource, CustomResource];
  const status = [step(a, { n: 0 }), step(b, { n: 0 }), step(a, { n: 1 }), step(a, { n: 2 })];
  await carryOut(plan({ status }), reader, tools, NEVER);
  expect(written.filter((line) => line.startsWith('a'))).toEqual(
    [0, 1, 2].flatMap((n) => [`a ${n} begins`, `a ${n} ends`]),
  );
  expect(server.get(WIDGET, 'shop/a')?.status).toEqual({ n: 2 });
});

it('goes on where one fails', async () => {
  const { server, reader, tools, targets, step } = setup(names.slice(0, 40));
  server.intercept = ({ path }) => (path.includes('/w7/') ? failure(422, 'Invalid', 'no') : undefined);
  const work = plan({ status: targets.map((target, n) => step(target, { n })) });
  const { statusChanges } = await carryOut(work, reader, tools, NEVER);
  expect(statusChanges.filter(({ action }) => action === 'configured')).toHaveLength(39);
  expect(statusChanges[7]).toMatchObject({ action: 'failed', error: { reason: 'Invalid' } });
});

it('tells of every write that is still under way when it is given up', async () => {
  const { server, reader, tools, targets, step } = setup(names.slice(0, 3));
  const abort = new AbortController();
  const answers: (() => void)[] = [];
  server.intercept = () =>
    new Promise((resolve) => {
      answers.push(() => {
        resolve(undefined);
      });
    });
  const work = plan({ status: targets.map((target, n) => step(target, { n })) });
  const outcome = carryOut(work, reader, tools, abort.signal);
  await settled();
  abort.abort(new Error('over'));
  const { pending } = await outcome;
  let isOver = false;
  void pending?.then(() => (isOver = true));
  for (const answer of answers.reverse()) {
    await settled();
    expect(isOver).toBe(false);
    answer();
  }
  await settled();
  expect(isOver).toBe(true);
  expect(server.requests).toHaveLength(3);
});
