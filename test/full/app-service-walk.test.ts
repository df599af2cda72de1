import { beforeAll, expect, test } from 'vitest';
import { appService } from '../../src/kinds/app-service/kind.js';
import type { Walk } from '../../src/testing/walk.js';
import { hasRefusedFields, planWalks, seed } from '../support/app-service-specs.js';
import { anyRoute, startController } from '../support/operator.js';
import { settled } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import { openCluster } from '../support/test-clusters.js';

const user = 'operator-34';
const cluster = openCluster();
let apps: Subject;

beforeAll(async () => {
  apps = await Subject.make(cluster, appService, 'walk');
  const namespaces = [apps.namespace];
  await startController({ cluster, user, kinds: [appService], namespaces, args: anyRoute });
});

test('each field that is set, changed and removed leads to the children that synth renders', async () => {
  const walks = await planWalks(12, 320);
  let failed = false;
  const follow = async (walk: Walk, place: number): Promise<void> => {
    const name = `walker-${String.fromCharCode(97 + place)}`;
    for (const [index, spec] of walk.entries()) {
      // Once one has failed, the others stop where they are.
      if (failed) return;
      try {
        await (index === 0 ? apps.create(name, spec) : apps.edit(name, spec));
        await (hasRefusedFields(spec) ? apps.stalled(name, 'Invalid') : apps.asRendered(name));
      } catch (error) {
        failed = true;
        const where = `WALK_SEED=${seed}: ${name}, edit ${index}: ${JSON.stringify(walk[index - 1])}\n-> ${JSON.stringify(spec)}`;
        if (error instanceof Error) error.message = `${where}\n${error.message}`;
        throw error;
      }
    }
  };

  await Promise.all(walks.map(follow));

  await settled(cluster, user);
  for (const [place, walk] of walks.entries())
    if (!hasRefusedFields(walk.at(-1)!)) await apps.asRendered(`walker-${String.fromCharCode(97 + place)}`);
  expect(walks.flat().length).toBeGreaterThan(300);
});
