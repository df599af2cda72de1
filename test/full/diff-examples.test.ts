import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageVersion } from '../../src/cli/package.js';
import { objectId } from '../../src/contract/object.js';
import { ExampleStand } from '../support/example-stand.js';
import { settled } from '../support/requests.js';
import { recordRelease } from '../upgrade/release.js';

const user = 'operator-62';
let stand: ExampleStand | undefined;

beforeAll(async () => {
  stand = await ExampleStand.open(user);
  // All at once: a JobWatcher that sees another one later may report it minutes later.
  for (const { kind, object } of stand.examples) await stand.cluster.create(kind.type, object);
  await stand.startController();
  await stand.openGatewayPorts(stand.examples.map(({ object }) => object));
});
afterAll(() => stand?.[Symbol.asyncDispose]());

test('every example comes to what it promises', async () => {
  await stand!.settled();
  await settled(stand!.cluster, user);
});

test('every example differs in nothing once it is settled', async () => {
  const given = stand!.examples.map(({ object }) => object);

  const { differs, objects, code } = await stand!.differ().diff(given);

  expect(objects.filter(({ action }) => action !== 'unchanged')).toEqual([]);
  expect({ code, differs }).toEqual({ code: 0, differs: false });
  expect(objects.map((object) => objectId(object as never))).toEqual(
    expect.arrayContaining(given.map((object) => objectId(object))),
  );
});

/** `npm run release:golden` */
test.runIf(process.env.RELEASE_GOLDEN)('what this release leaves is recorded', async ({ task }) => {
  const others = task.file.tasks.filter((other) => other !== task);
  const failed = others.filter(({ result }) => result?.state !== 'pass').map(({ name }) => name);
  expect(failed, 'nothing is recorded unless these pass').toEqual([]);
  recordRelease({
    version: packageVersion(),
    customResources: await stand!.customResources(),
    applied: await stand!.applied(),
  });
});
