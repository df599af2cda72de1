import { expect, it } from 'vitest';
import type { Action, Change } from '../../src/contract/change.js';
import { ChangeMetrics } from '../../src/engine/runner.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { recordingLogger } from './support/builders.js';
import type { LogLine } from './support/builders.js';

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

it('logs what has changed at info, what was put right at warn, and the rest at debug', () => {
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
  changes.record([...actions.map((action) => ({ ref, action })), corrected('kubectl-edit')], {
    at: () => recordingLogger(lines),
  });
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

it('counts corrections by manager, and those whose author nobody saw', async () => {
  const { changes, metrics } = newChanges();
  changes.record([corrected('kubectl-edit', 'helm'), corrected('helm'), corrected()], {
    at: () => recordingLogger([]),
  });
  expect(await driftByManager(metrics)).toEqual({ 'kubectl-edit': 1, helm: 2, unknown: 1 });
});

it('counts more than twenty managers as one', async () => {
  const { changes, metrics } = newChanges();
  for (let n = 0; n < 30; n++) changes.record([corrected(`m${n}`)], { at: () => recordingLogger([]) });
  changes.record([corrected('m0', 'new', 'newer')], { at: () => recordingLogger([]) });
  const counts = await driftByManager(metrics);
  expect(Object.keys(counts)).toHaveLength(21);
  expect(counts).toMatchObject({ m0: 2, m19: 1, other: 11 });
});
