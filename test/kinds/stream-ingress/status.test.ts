import { describe, expect, test } from 'vitest';
import type { Condition } from '../../../src/contract/conditions.js';
import { stalledEvent, statusOf } from '../../../src/kinds/stream-ingress/status.js';
import type { Findings, Programmed } from '../../../src/kinds/stream-ingress/status.js';
import { resolution, streamIngress } from './builders.js';

const now = new Date('2026-01-01T12:00:00.500Z');
const cr = streamIngress();
const done: Programmed = { type: 'Programmed', status: 'True', reason: 'Programmed', message: 'open' };
const good: Findings = {
  ...{ target: 'default', resolution: resolution(), programmed: done, addresses: ['1.2.3.4:9000'] },
};

function said(findings: Findings): Record<string, string> {
  const { conditions = [] } = statusOf(cr, findings, now);
  return Object.fromEntries(conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]));
}

const failed = (reason: string, stalls?: boolean): Findings => ({
  ...good,
  programmed: { ...done, status: 'False', reason, ...(stalls !== undefined && { stalls }) },
});

describe('the status', () => {
  test('of a port that is open', () => {
    const { conditions, ...rest } = statusOf(cr, good, now);
    expect(rest).toEqual({
      ...{ observedGeneration: 1, target: 'default', upstream: 'shop/db:5432', addresses: ['1.2.3.4:9000'] },
    });
    expect(said(good)).toEqual({
      Ready: 'True Programmed',
      Reconciling: 'False Programmed',
      Stalled: 'False Programmed',
      Accepted: 'True Accepted',
      ResolvedRefs: 'True ResolvedRefs',
      Programmed: 'True Programmed',
    });
    expect(conditions![0]).toMatchObject({
      ...{ message: '9000/TCP is open and leads to shop/db:5432', observedGeneration: 1 },
      lastTransitionTime: '2026-01-01T12:00:00Z',
    });
  });

  test('of one that is refused: not accepted, stalled, and nothing is programmed', () => {
    const { programmed, ...rest } = good;
    expect(said({ ...rest, refusal: { reason: 'PortConflict', message: 'taken' } })).toMatchObject({
      Ready: 'False PortConflict',
      Stalled: 'True PortConflict',
      Accepted: 'False PortConflict',
      ResolvedRefs: 'True ResolvedRefs',
      Programmed: 'False Pending',
    });
    expect(said({ ...rest, refusal: { reason: 'PortReserved', message: 'reserved' } })).toMatchObject({
      ...{ Accepted: 'False PortReserved', Programmed: 'False PortUnavailable' },
    });
    expect(programmed).toBe(done);
  });

  test('of one whose class is none has no target and says nothing of the upstream', () => {
    const status = statusOf(cr, { refusal: { reason: 'ClassNotFound', message: 'no' }, addresses: [] }, now);
    expect(status).not.toHaveProperty('target');
    expect(status.conditions!.map(({ type }) => type)).not.toContain('ResolvedRefs');
  });

  test.each<[string, Findings, 'failing' | 'stalled' | 'progressing']>([
    ['ServiceNotFound', { ...good, resolution: resolution('keep') }, 'failing'],
    ['RefNotPermitted', { ...good, resolution: resolution('shut') }, 'stalled'],
    ['TargetNotFound', failed('TargetNotFound'), 'failing'],
    ['LoadBalancerPortsError', failed('LoadBalancerPortsError'), 'failing'],
    ['TargetNotConfigured', failed('TargetNotConfigured'), 'stalled'],
    ['PortUnavailable', failed('PortUnavailable'), 'stalled'],
    ['TooManyListeners', failed('TooManyListeners'), 'stalled'],
    ['OwnershipConflict', failed('OwnershipConflict', true), 'stalled'],
    ['NotAllowed', failed('NotAllowed'), 'stalled'],
    ['ProtocolConflict', failed('ProtocolConflict'), 'stalled'],
    ['ParentNotProgrammed', failed('ParentNotProgrammed'), 'failing'],
    ['Pending', { ...good, programmed: { ...done, status: 'Unknown', reason: 'Pending' } }, 'progressing'],
  ])('%s', (reason, findings, phase) => {
    const expected = {
      failing: ['False', 'True', 'False'],
      stalled: ['False', 'False', 'True'],
      progressing: ['Unknown', 'True', 'False'],
    }[phase];
    const { Ready, Reconciling, Stalled } = said(findings);
    expect([Ready, Reconciling, Stalled]).toEqual(expected.map((status) => `${status} ${reason}`));
  });

  test('has no addresses while it isn’t open', () => {
    expect(statusOf(cr, failed('TargetNotFound'), now)).not.toHaveProperty('addresses');
  });

  test('is the same while nothing changes, whatever time it is', () => {
    const before = statusOf(cr, good, now);
    const later = statusOf({ ...cr, status: before }, good, new Date('2026-02-02T00:00:00Z'));
    expect(later).toEqual(before);
  });
});

describe('an event', () => {
  const lost: Findings = { ...good, refusal: { reason: 'PortConflict', message: 'taken' } };
  const event = { type: 'Warning', reason: 'PortConflict', action: 'Reconcile', note: 'taken' };

  test('tells the loser, once', () => {
    expect(stalledEvent(cr, lost)).toEqual(event);
    const told = { ...cr, status: statusOf(cr, lost, now) };
    expect(stalledEvent(told, lost)).toBeUndefined();
    expect(
      stalledEvent(told, { ...lost, refusal: { reason: 'PortConflict', message: 'another' } }),
    ).toBeDefined();
  });

  test('tells nobody of what heals by itself', () => {
    expect(stalledEvent(cr, good)).toBeUndefined();
    expect(stalledEvent(cr, { ...good, resolution: resolution('keep') })).toBeUndefined();
  });
});

test('conditions of the same type are there once', () => {
  const types = (statusOf(cr, good, now).conditions as Condition[]).map(({ type }) => type);
  expect(new Set(types).size).toBe(types.length);
});
