import { expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { formatReport, sweep } from '../../src/testing/sweep.js';
import { keepsItsPort, streamIngressSamples, withIngressNginx } from './support/stream-ingress-swept.js';
import { triedFor, verdictsOf } from './support/verdicts.js';

const options = {
  ...{ sandbox: openSandbox(inject('sandbox')), seed: 7 },
  ...{ surroundings: withIngressNginx, keepsEarlier: keepsItsPort },
};

test('StreamIngress passes its sweep, in which an ingress-nginx is shared with others', async () => {
  const report = await sweep(streamIngress, streamIngressSamples, options);

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
  expect(triedFor(report, 'ownership')).toMatch(/8 shared objects/);
  expect(triedFor(report, 'drift')).toMatch(/^12 fields changed, .* 8 objects removed$/);
  expect(triedFor(report, 'walk')).toMatch(/can't be changed: protocol, listen;/);
});
