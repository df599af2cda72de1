import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { controllerOf } from '../../src/contract/object.js';
import { services } from '../cluster/support/cluster.js';
import { eventually } from '../cluster/support/eventually.js';
import { settled } from '../cluster/support/settled.js';
import { small } from './support/kinds.js';
import { watches } from './support/proxied-request.js';
import { Scenario } from './support/scenario.js';

test.concurrent(
  'an object that somebody makes behind a watch that has gone silent is not taken over',
  async () => {
    await using scenario = await Scenario.start({ purpose: 'foreign' });
    const { subject, cluster, proxy } = scenario;
    await subject.create('first', small);
    await subject.ready('first');
    await settled(cluster, scenario.user);
    expect(proxy.silence(watches('services'))).toBeGreaterThan(0);

    // In another second, and with nothing that contradicts what is rendered.
    const place = subject.childPlace(services, 'web');
    const made = await cluster.create(services, {
      ...{ apiVersion: 'v1', kind: 'Service' },
      metadata: { name: 'web', namespace: subject.namespace, labels: { whose: 'mine' } },
      spec: { clusterIP: 'None' },
    });
    await delay(1_500);
    await subject.create('web', small);

    await subject.condition('web', { type: 'Stalled', status: 'True', reason: 'OwnershipConflict' });
    await eventually(async () => {
      const live = await cluster.get(place);
      expect(controllerOf(live)).toBeUndefined();
      expect(live.metadata.uid).toBe(made.metadata.uid);
      expect(live.metadata.labels).toEqual({ whose: 'mine' });
    });
    await subject.delete('web');
    await settled(cluster, scenario.user);
    expect((await cluster.get(place)).metadata.uid).toBe(made.metadata.uid);
  },
);
