import { expect, test } from 'vitest';
import { loadStand } from '../../../src/cli/dev/stand.js';
import type { StandModule } from '../../../src/cli/dev/stand.js';
import * as devStand from '../../../src/testing/dev-stand.js';

test('what the testing kit exports for dev is what dev expects, by name and type', async () => {
  const expected: StandModule = devStand;
  expect(Object.keys(expected).sort()).toEqual(['startEmpty', 'startGuard', 'startStand']);
  expect(Object.keys(await loadStand()).sort()).toEqual(['startEmpty', 'startGuard', 'startStand']);
});
