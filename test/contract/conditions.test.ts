import { describe, expect, it } from 'vitest';
import { dateConditions, standardConditions } from '../../src/author/status.js';

const NOW = new Date('2026-01-02T03:04:05.678Z');
const READY = { type: 'Ready', status: 'True', reason: 'Available', message: 'well' } as const;

describe('standardConditions', () => {
  it.each([
    ['ready', 'True', 'False', 'False'],
    ['progressing', 'Unknown', 'True', 'False'],
    ['failing', 'False', 'True', 'False'],
    ['stalled', 'False', 'False', 'True'],
  ] as const)('says %s by the rules of kstatus', (phase, ready, reconciling, stalled) => {
    const said = { reason: 'Why', message: 'because' };
    expect(standardConditions({ phase, ...said })).toEqual([
      { type: 'Ready', status: ready, ...said },
      { type: 'Reconciling', status: reconciling, ...said },
      { type: 'Stalled', status: stalled, ...said },
    ]);
  });
});

describe('dateConditions', () => {
  it('keeps the date while the status stays, whatever else changes', () => {
    const before = {
      ...READY,
      reason: 'Other',
      message: 'other',
      lastTransitionTime: '2020-01-01T00:00:00Z',
    };
    expect(dateConditions([READY], [before], NOW, undefined)).toEqual([
      { ...READY, lastTransitionTime: before.lastTransitionTime },
    ]);
  });

  it('replaces a date that is none', () => {
    const before = [
      { type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00+99:99' },
    ] as const;
    const ready = { type: 'Ready', status: 'True', reason: 'Available', message: '' } as const;
    const [condition] = dateConditions([ready], before, new Date('2026-01-02T03:04:05Z'), 1);
    expect(condition?.lastTransitionTime).toBe('2026-01-02T03:04:05Z');
  });

  it('moves the date when the status flips', () => {
    const before = { ...READY, status: 'False', lastTransitionTime: '2020-01-01T00:00:00Z' } as const;
    expect(dateConditions([READY], [before], NOW, 1)[0]?.lastTransitionTime).toBe('2026-01-02T03:04:05Z');
  });

  // The API server refuses a status with half a surrogate pair.
  it.each([`a${'😀'.repeat(20_000)}`, `${'a😀'.slice(0, 2)}...`])(
    'leaves no half of a character: %.3s',
    (message) => {
      expect(dateConditions([{ ...READY, message }], [], NOW, 1)[0]?.message.isWellFormed()).toBe(true);
    },
  );
});
