import { describe, expect, it } from 'vitest';
import type { Action, Change } from '../../src/contract/change.js';
import { ChangeMetrics, KindMetrics } from '../../src/engine/loop/runner.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { SERVICE, anObject, recordingLogger } from './support/builders.js';
import type { LogLine } from './support/builders.js';
import type { Controller, Metric, Watch } from '../../src/contract/controller.js';
import { NOTHING } from '../../src/contract/plan.js';
import type { Sample } from '../../src/contract/plan.js';
import type { AnyObject } from '../../src/contract/object.js';
import { measureStores } from '../../src/engine/loop/manager.js';
import { Stores } from '../../src/engine/watch/reader.js';

const ref = { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: 'web' };
const corrected = (...managers: string[]): Change => ({
  ref,
  action: 'corrected',
  drift: { managers, fields: ['.spec.ports'] },
});

function newChanges(): { changes: ChangeMetrics; metrics: Metrics; lines: LogLine[] } {
  const metrics = new Metrics();
  return { changes: new ChangeMetrics(metrics, 'widget'), metrics, lines: [] };
}

async function driftByManager({ drift }: Metrics): Promise<Record<string, number>> {
  const { values } = await drift.get();
  return Object.fromEntries(values.map(({ labels, value }) => [String(labels.manager), value]));
}

it('logs what has changed at info, what was corrected at warn, and the rest at debug', () => {
  const { changes, lines } = newChanges();
  const actions: Action[] = [
    'created',
    'configured',
    'recreated',
    'deleted',
    'unchanged',
    'skipped',
    'failed',
  ];
  changes.record(
    [...actions.map((action) => ({ ref, action })), corrected('kubectl-edit')],
    recordingLogger(lines),
  );
  expect(lines.map(({ level }) => level)).toEqual([
    ...['info', 'info', 'info', 'info', 'debug', 'debug', 'debug'],
    'warn',
  ]);
  expect(lines.at(-1)).toEqual({
    level: 'warn',
    fields: { child: 'Service', action: 'corrected', managers: ['kubectl-edit'], fields: ['.spec.ports'] },
    message: 'Service shop/web corrected',
  });
});

it('logs and counts drift that is left once', async () => {
  const { changes, metrics, lines } = newChanges();
  const drifted: Change = { ...corrected('kubectl-edit'), action: 'drifted' };
  changes.record([drifted, { ...drifted, isKnown: true }], recordingLogger(lines));
  expect(lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
    'warn Service shop/web drifted',
    'debug Service shop/web unchanged',
  ]);
  const { values } = await metrics.changes.get();
  expect(values.map(({ labels, value }) => `${labels.action} ${value}`)).toEqual([
    'drifted 1',
    'unchanged 1',
  ]);
  expect(await driftByManager(metrics)).toEqual({});
});

it('counts corrections by manager, and those whose author no one saw', async () => {
  const { changes, metrics } = newChanges();
  changes.record([corrected('kubectl-edit', 'helm'), corrected('helm'), corrected()], recordingLogger([]));
  expect(await driftByManager(metrics)).toEqual({ 'kubectl-edit': 1, helm: 2, unknown: 1 });
});

describe('Stores', () => {
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
    reconcile: () => NOTHING,
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

    it('counts the updates that are held, by the most severe change', async () => {
      const { stores, lines } = measured([watch(WIDGET)]);
      const pending = { a: 'True RollsPods', b: 'True RollsPods', c: 'False Updating', d: 'True MadeUp' };
      for (const [name, UpdatePending] of Object.entries(pending))
        stores[0]?.observed(widget(name, { UpdatePending }));
      const of = 'reconstruct_pending_updates{type="Widget.example.com",reason=';
      const shown = [`${of}"RollsPods"} 2`, `${of}"other"} 1`];
      expect((await lines('reconstruct_pending_updates')).sort()).toEqual(shown);
      expect((await lines('reconstruct_pending_updates')).sort()).toEqual(shown);
    });

    it('shows reasons that alerts select, whatever others are made up', async () => {
      const { stores, lines } = measured([watch(WIDGET)]);
      for (let index = 0; index < 60; index++)
        stores[0]?.observed(widget(`made-up-${index}`, { Ready: `False MadeUp${index}` }));
      await lines('reconstruct_custom_resources');
      stores[0]?.observed(widget('contested', { Ready: 'False FieldContested' }));
      const shown = (await lines('reconstruct_custom_resources')).join('\n');
      expect(shown).toContain('reason="FieldContested"} 1');
      expect(shown.match(/reason="MadeUp/g)?.length).toBe(50);
      expect(shown).toContain('reason="other"} 10');
    });

    it('adds up what several watches of one type hold', async () => {
      const service = (name: string): AnyObject =>
        anObject(SERVICE, name, { namespace: 'shop', resourceVersion: String(++version) });
      const { stores, lines } = measured([watch(WIDGET), watch(SERVICE), watch(SERVICE, { name: 'proxy' })]);
      stores[1]?.observed(service('a'));
      stores[1]?.observed(service('b'));
      stores[2]?.observed(service('proxy'));
      expect(await lines('reconstruct_store_objects')).toContain(
        'reconstruct_store_objects{type="Service"} 3',
      );
    });
  });
});

describe('Kinds', () => {
  const DELETED: Metric = {
    type: 'counter',
    name: 'demo_deleted_total',
    help: 'Deleted',
    labels: ['outcome'],
  };
  const PENDING: Metric = { type: 'gauge', name: 'demo_pending', help: 'Pending' };
  const LAG: Metric = { type: 'histogram', name: 'demo_lag_seconds', help: 'Lag', buckets: [1, 2] };

  function setup(declared: readonly Metric[] = [DELETED, PENDING, LAG]) {
    const metrics = new Metrics();
    const lines: LogLine[] = [];
    const own = new KindMetrics(metrics, declared, recordingLogger(lines));
    const record = (...samples: Sample[]): void => {
      own.record({ status: [], events: [], samples });
    };
    return { metrics, lines, record };
  }

  describe('Metrics of a kind', () => {
    it('count, replace and sort into buckets', async () => {
      const { metrics, record } = setup();
      const deleted = { metric: DELETED.name, labels: { outcome: 'ok' }, value: 2 };
      record(deleted, deleted, { metric: PENDING.name, value: 5 }, { metric: LAG.name, value: 1.5 });
      record({ metric: PENDING.name, value: 3 });
      const text = await metrics.scrape();
      expect(text).toContain('demo_deleted_total{outcome="ok"} 4');
      expect(text).toContain('demo_pending 3');
      expect(text).toContain('demo_lag_seconds_bucket{le="1"} 0');
      expect(text).toContain('demo_lag_seconds_bucket{le="2"} 1');
    });

    it('are shared by controllers that declare the same, and refused where they do not', () => {
      const { metrics, lines } = setup();
      const log = recordingLogger(lines);
      expect(() => new KindMetrics(metrics, [DELETED], log)).not.toThrow();
      for (const other of [{ type: 'gauge' }, { labels: ['reason'] }] as const)
        expect(() => new KindMetrics(metrics, [{ ...DELETED, ...other }], log)).toThrow('demo_deleted_total');
      expect(() => new KindMetrics(metrics, [{ ...LAG, buckets: [1] }], log)).toThrow('demo_lag_seconds');
    });

    it.each([
      ['isn’t declared', { metric: 'demo_other', value: 1 }],
      ['has a label too many', { metric: PENDING.name, labels: { name: 'web' }, value: 1 }],
      ['counts down', { metric: DELETED.name, labels: { outcome: 'ok' }, value: -1 }],
    ])('stop nothing where a sample %s: it is logged as a bug', (_, sample) => {
      const { lines, record } = setup();
      record(sample);
      expect(lines).toMatchObject([{ level: 'error' }]);
    });
  });
});
