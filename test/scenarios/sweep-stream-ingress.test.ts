import { expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { formatReport, sweep } from '../../src/testing/sweep.js';
import { leadingBack, lingering } from './planted/shared-faults.js';
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

test('a port that keeps its entry when nobody asks for it any more is found', async () => {
  const [sample] = streamIngressSamples;

  const report = await sweep(lingering, [sample!], { ...options, checks: ['ownership'] });

  expect(report.checks[0]?.failures[0]?.what).toMatch(/its fields in ConfigMap tcp-services some stay/);
});

test('a port that leads to where it led under an earlier spec is found', async () => {
  const report = await sweep(leadingBack, streamIngressSamples.slice(0, 2), { ...options, checks: ['walk'] });

  expect(report.checks[0]?.failures[0]?.what, formatReport(report)).toMatch(
    /ConfigMap <elsewhere>\/tcp-services\.data\.9000 is /,
  );
  expect(report.checks[0]?.failures[0]?.sequence.length).toBeGreaterThan(1);
});
