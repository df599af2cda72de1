import { expect, test } from 'vitest';
import { resourceType } from '../../src/contract/resource.js';
import { configMap, loadBundle } from '../support/bundle.js';
import type { Fault } from '../support/faults.js';
import { Scenario, writesIn } from '../support/stages.js';

const secrets = resourceType({ apiVersion: 'v1', kind: 'Secret' });
const kind = await loadBundle();
const upgraded = await loadBundle({ upgraded: true });
const specOf = (name: string) => ({
  objects: [
    configMap(`${name}-a`, { value: '1' }),
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: `${name}-seal` }, data: { seal: 'd2F4' } },
  ],
});
const names = ['one', 'two', 'three'];

interface Sent {
  readonly path: string;
  readonly body: string;
}

/** Notes the bodies of the requests that it lets pass. */
function noting(sent: Sent[]): Fault {
  return ({ incoming, request }, next) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      sent.push({ path: request.path, body: Buffer.concat(chunks).toString() });
    });
    next();
  };
}

test('children of a type that the operator no longer makes are pruned once, as they were seen', async () => {
  await using scenario = await Scenario.start({ purpose: 'upgrade', kind });
  const { subject, cluster, proxy } = scenario;
  for (const name of names) await subject.create(name, specOf(name));
  for (const name of names) await subject.ready(name);
  // One that belongs to somebody else stays.
  const foreign = { name: 'foreign', namespace: scenario.namespace };
  await cluster.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: foreign });
  const seals = await cluster.list(secrets, scenario.namespace);
  await scenario.settled();
  expect(await scenario.controller.stop()).toBe(0);

  const deleted: Sent[] = [];
  proxy.on(({ method }) => method === 'DELETE', noting(deleted));
  await scenario.startController({ kind: upgraded });

  for (const name of names) await subject.ready(name);
  await scenario.endsWell({ kind: upgraded });
  expect((await cluster.list(secrets, scenario.namespace)).map(({ metadata }) => metadata.name)).toEqual([
    'foreign',
  ]);
  expect(deleted.map(({ path }) => path.split('/').at(-1)).sort()).toEqual(
    names.map((name) => `${name}-seal`).sort(),
  );
  for (const { path, body } of deleted) {
    const { preconditions } = JSON.parse(body) as { preconditions?: object };
    const { uid, resourceVersion } = seals.find(({ metadata }) =>
      path.endsWith(`/${metadata.name}`),
    )!.metadata;
    expect(preconditions, path).toEqual({ uid, resourceVersion });
  }

  await scenario.settled();
  expect(await scenario.controller.stop()).toBe(0);
  const requests = scenario.requestsFromNowOn();
  await scenario.startController({ kind: upgraded });
  for (const name of names)
    await scenario.controller.logged((line) => line.msg === 'reconciled' && line.name === name);
  expect(writesIn(requests())).toEqual([]);
});
