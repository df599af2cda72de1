import { describe, expect, it } from 'vitest';
import type { Controller, Watch } from '../../src/contract/controller.js';
import type { AnyObject } from '../../src/contract/object.js';
import { measureStores } from '../../src/engine/manager.js';
import { Stores } from '../../src/engine/cache.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { anObject, SERVICE } from './support/builders.js';

const WIDGET = { apiVersion: 'example.com/v1', kind: 'Widget', plural: 'widgets', namespaced: true };

let version = 0;

function widget(name: string, conditions: Readonly<Record<string, string>>, metadata = {}): AnyObject {
  const status = {
    conditions: Object.entries(conditions).map(([type, told]) => {
      const [value, reason] = told.split(' ');
      return { type, status: value, reason };
    }),
  };
  return anObject(
    WIDGET,
    name,
    { namespace: 'shop', resourceVersion: String(++version), ...metadata },
    { status },
  );
}

const of = (watches: readonly Watch[]): Controller => ({
  ...{ name: 'widget', kind: 'Widget', watches },
  reconcile: () => ({ apply: [], delete: [], status: [], events: [] }),
});

const watch = (type: Watch['type'], props: Partial<Watch> = {}): Watch => ({
  ...{ type, mapsTo: () => [], keep: (object) => object },
  ...props,
});

function measured(watches: readonly Watch[]) {
  const metrics = new Metrics();
  const stores = new Stores({ perNamespace: false, freeze: true });
  for (const each of watches) stores.open(each);
  // Two controllers of one kind count it once.
  measureStores({ stores, metrics, controllers: [of(watches), of(watches)] });
  const lines = async (name: string): Promise<string[]> =>
    (await metrics.scrape()).split('\n').filter((line) => line.startsWith(`${name}{`));
  return { stores: stores.all().map(({ store }) => store), lines };
}

describe('measureStores', () => {
  it('counts custom resources by state and reason, each once', async () => {
    const { stores, lines } = measured([watch(WIDGET)]);
    const [store] = stores;
    const stalled = { Ready: 'False Invalid', Stalled: 'True Invalid' };
    store?.observed(widget('a', { Ready: 'True Available', Stalled: 'False Available' }));
    store?.observed(widget('b', stalled));
    store?.observed(widget('c', stalled));
    store?.observed(widget('d', { Ready: 'False FieldContested', Stalled: 'False FieldContested' }));
    store?.observed(widget('e', { Ready: 'Unknown RollingOut' }));
    store?.observed(widget('f', {}));
    store?.observed(widget('g', stalled, { deletionTimestamp: '2026-01-01T00:00:00Z' }));
    const type = 'type="Widget.example.com"';
    expect((await lines('reconstruct_custom_resources')).sort()).toEqual([
      `reconstruct_custom_resources{${type},state="deleting",reason=""} 1`,
      `reconstruct_custom_resources{${type},state="failing",reason="FieldContested"} 1`,
      `reconstruct_custom_resources{${type},state="progressing",reason="RollingOut"} 1`,
      `reconstruct_custom_resources{${type},state="ready",reason="Available"} 1`,
      `reconstruct_custom_resources{${type},state="stalled",reason="Invalid"} 2`,
      `reconstruct_custom_resources{${type},state="unseen",reason=""} 1`,
    ]);
  });

  it('has a bounded number of series, whatever reasons somebody writes', async () => {
    const { stores, lines } = measured([watch(WIDGET)]);
    for (let index = 0; index < 500; index++)
      stores[0]?.observed(widget(`w${index}`, { Ready: `False R${index}` }));
    const told = await lines('reconstruct_custom_resources');
    expect(told).toHaveLength(51);
    expect(told.find((line) => line.includes('reason="other"'))).toMatch(/ 450$/);
  });

  it('adds up what several watches of one type hold', async () => {
    const service = (name: string): AnyObject =>
      anObject(SERVICE, name, { namespace: 'shop', resourceVersion: String(++version) });
    const { stores, lines } = measured([watch(WIDGET), watch(SERVICE), watch(SERVICE, { name: 'proxy' })]);
    stores[1]?.observed(service('a'));
    stores[1]?.observed(service('b'));
    stores[2]?.observed(service('proxy'));
    expect(await lines('reconstruct_store_objects')).toContain('reconstruct_store_objects{type="Service"} 3');
  });
});
