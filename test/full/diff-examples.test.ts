import { afterAll, beforeAll, expect, test } from 'vitest';
import { objectId } from '../../src/contract/object.js';
import type { RunningController } from './support/controller.js';
import { eventually } from './support/eventually.js';
import { ExampleStand } from './support/example-stand.js';
import { kubectlDiff } from './support/kubectl-diff.js';
import { settled } from './support/settled.js';
import { untold } from './support/untold.js';
import { packageVersion } from '../../src/cli/version.js';
import { othersNotPassed } from '../upgrade/earlier-tests.js';
import { recordRelease } from '../upgrade/release.js';

const user = 'operator-62';
let stand: ExampleStand;
let controller: RunningController;

beforeAll(async () => {
  stand = await ExampleStand.open(user);
  // All at once: a JobWatcher that sees another one later may tell so minutes later.
  for (const { kind, object } of stand.examples) await stand.cluster.create(kind.type, object);
  controller = await stand.startController();
  await stand.openGatewayPorts(stand.examples.map(({ object }) => object));
  await stand.asRendered();
  await stand.portsReady();
  await settled(stand.cluster, user);
});
afterAll(async () => {
  await controller.kill();
  await stand.close();
});

test('every example differs in nothing once it is settled', async () => {
  const given = stand.examples.map(({ object }) => object);

  const { differs, objects, code } = await stand.differ().json(given);

  expect(objects.filter(({ action }) => action !== 'unchanged')).toEqual([]);
  expect({ code, differs }).toEqual({ code: 0, differs: false });
  expect(objects.map((object) => objectId(object as never))).toEqual(
    expect.arrayContaining(given.map((object) => objectId(object))),
  );
});

test('kubectl diff finds nothing either, with the objects, the hash and the owner of the controller', async () => {
  const intents = await stand.intents();
  const applied = await stand.applied();
  expect(intents.map(({ object }) => objectId(object)).sort()).toEqual(
    applied.map((object) => objectId(object)).sort(),
  );

  // A Deployment's own status may change while it is compared.
  await eventually(async () => {
    expect(await kubectlDiff(stand.sandbox, intents)).toBe('');
  });
});

test('no JobWatcher has anything left to tell', async () => {
  await eventually(async () => {
    expect(await untold(stand)).toEqual([]);
  });
});

/** `npm run release:golden` */
test.runIf(process.env.RELEASE_GOLDEN)('what this release leaves is recorded', async ({ task }) => {
  expect(othersNotPassed(task), 'nothing is recorded unless these pass').toEqual([]);
  recordRelease({
    version: packageVersion(),
    customResources: await stand.customResources(),
    applied: await stand.applied(),
  });
});
