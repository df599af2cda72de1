import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { parcel } from './support/kinds.js';
import { Scenario, summaryOf } from './support/scenario.js';

/** A part of the ten minutes within which one request is allowed. */
const windowMilliseconds = 60_000;
const valid = { parts: [{ name: 'a', data: { value: '1' } }] };

const mistakes = [
  { status: 422, spec: { parts: [{ name: 'a', data: { 'no key!': '1' } }] } },
  // https://github.com/kubernetes/kubernetes/issues/113482
  { status: 500, spec: { ...valid, raw: { nothing: 'of the kind' } } },
];

test.concurrent.for(mistakes)(
  'a spec that the API server refuses with $status stalls, is sent once, and heals when it is edited',
  async ({ status, spec }) => {
    await using scenario = await Scenario.start({ purpose: `invalid-${status}`, kind: parcel });
    const { subject, cluster } = scenario;
    const requests = scenario.requestsFromNowOn();
    await subject.create('box', spec);
    await subject.condition('box', { type: 'Stalled', status: 'True', reason: 'Invalid' });

    // The row itself: for ten minutes it must not be sent again, of which this is the first.
    await cluster.merge(subject.place('box'), { metadata: { labels: { touched: 'yes' } } });
    await delay(windowMilliseconds);

    const sent = requests().filter(({ method, resource }) => method === 'PATCH' && resource === 'configmaps');
    expect(sent.map(summaryOf)).toEqual([`PATCH configmaps/box-a ${status}`]);
    await scenario.endsWell({ failing: { box: 'Invalid' } });
    await subject.edit('box', valid);
    await subject.ready('box');
    await scenario.endsWell();
  },
);
