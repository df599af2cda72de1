import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { configMap, loadBundle } from '../support/bundle.js';
import { Scenario, summaryOf } from '../support/stages.js';

/** A part of the ten minutes within which one request is allowed. */
const windowMilliseconds = 60_000;
const valid = configMap('box-a', { value: '1' });

const mistakes = [
  { what: 'invalid', status: 422, object: configMap('box-a', { 'no key!': '1' }) },
  // https://github.com/kubernetes/kubernetes/issues/113482
  { what: 'mistyped', status: 500, object: { ...valid, nothing: 'of the kind' } },
  { what: 'unconverted', status: 500, object: { ...valid, binaryData: { key: 'not base64' } } },
];

test.concurrent.for(mistakes)(
  'a spec that the API server refuses stalls, is sent once, and heals when it is edited: $status, $what',
  async ({ what, status, object }) => {
    await using scenario = await Scenario.start({ purpose: `refused-${what}`, kind: await loadBundle() });
    const { subject } = scenario;
    const requests = scenario.requestsFromNowOn();
    await subject.create('box', { objects: [object] });
    await subject.stalled('box', 'Invalid');

    // The row itself: for ten minutes it must not be sent again, of which this is the first.
    await subject.touch('box');
    await delay(windowMilliseconds);

    const sent = requests().filter(({ method, resource }) => method === 'PATCH' && resource === 'configmaps');
    expect(sent.map(summaryOf)).toEqual([`PATCH configmaps/box-a ${status}`]);
    await scenario.endsWell({ failing: { box: 'Invalid' } });
    await subject.edit('box', { objects: [valid] });
    await subject.ready('box');
    await scenario.endsWell();
  },
);
