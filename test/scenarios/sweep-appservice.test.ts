import { expect, test } from 'vitest';
import { startSandbox } from '../../sandbox/control-plane.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { formatReport, sweep } from '../../src/testing/sweep.js';
import { httpRouteCrd } from '../full/support/http-route-crd.js';
import { appServiceSamples } from './support/app-service-samples.js';
import { triedFor, verdictsOf } from './support/verdicts.js';

test('AppService passes its sweep, with all that it can make', async () => {
  // Of its own, since the other scenarios have no Gateway API.
  await using sandbox = await startSandbox();
  for (const crd of [httpRouteCrd, appService.crd])
    await sandbox.kubectl(['apply', '--server-side', '-f', '-'], { stdin: JSON.stringify(crd) });
  // Its garbage collector would learn of them half a minute later.
  await sandbox.restartControllerManager();

  const report = await sweep(appService, appServiceSamples, { sandbox, seed: 7 });

  console.log(formatReport(report));
  expect(verdictsOf(report), formatReport(report)).toEqual({
    'list keys': 'held',
    rendering: 'held',
    settling: 'held',
    ownership: 'held',
    collisions: 'held',
    status: 'held',
    drift: 'held',
    kills: 'held',
    events: 'held',
    walk: 'held',
  });
  // Of the three samples: two with a Deployment, Service, autoscaler and budget, one of them with a route, and one without.
  expect(triedFor(report, 'drift')).toMatch(/10 objects removed$/);
  expect(triedFor(report, 'events')).toMatch(/^6 watches/);
  // Of 505; what is left either needs more edits, or values that go together.
  const walked = report.checks.find(({ check }) => check === 'walk');
  expect(walked?.notDone?.length, JSON.stringify(walked?.notDone)).toBeLessThan(100);
});
