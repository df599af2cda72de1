import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { controllerOf } from '../../src/contract/object.js';
import { configMap, loadBundle } from '../support/bundle.js';
import { configMaps, eventually } from '../support/cluster.js';
import { watches } from '../support/faults.js';
import { Scenario, summaryOf } from '../support/stages.js';

test.concurrent(
  'an object that another writer creates behind a watch that has gone silent is not taken over',
  async () => {
    await using scenario = await Scenario.start({ purpose: 'foreign', kind: await loadBundle() });
    const { subject, cluster, proxy } = scenario;
    expect(proxy.silence(watches('configmaps'))).toBeGreaterThan(0);

    // In another second, and with nothing that contradicts what is rendered.
    const place = subject.childPlace(configMaps, 'box-a');
    const made = await cluster.create(configMaps, {
      ...{ apiVersion: 'v1', kind: 'ConfigMap' },
      metadata: { name: 'box-a', namespace: subject.namespace, labels: { whose: 'mine' } },
      data: { mine: '1' },
    });
    await delay(1_500);
    const requests = scenario.requestsFromNowOn();
    await subject.create('box', { objects: [configMap('box-a', { value: '1' })] });

    await subject.stalled('box', 'OwnershipConflict');
    await eventually(async () => {
      const live = await cluster.get(place);
      expect(controllerOf(live)).toBeUndefined();
      expect(live.metadata.uid).toBe(made.metadata.uid);
      expect(live.metadata.labels).toEqual({ whose: 'mine' });
      expect(live.data).toEqual({ mine: '1' });
    });
    const sent = requests().filter(({ method, resource }) => method !== 'GET' && resource === 'configmaps');
    expect(sent.map(summaryOf)).toEqual(['PATCH configmaps/box-a 200', 'PATCH configmaps/box-a 200']);
    await subject.delete('box');
    await scenario.settled();
    expect((await cluster.get(place)).metadata.uid).toBe(made.metadata.uid);
  },
);
