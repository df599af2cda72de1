import { expect, test } from 'vitest';
import { formatProgress, formatReport, requireHeld, shortest } from '../../src/testing/report.js';
import type { ConformanceReport } from '../../src/testing/report.js';

const report: ConformanceReport = {
  ...{ version: 1, kind: 'Widget', seed: 7, held: false, seconds: 61.4 },
  checks: [
    { check: 'list keys', held: true, seconds: 0.01, tried: '2 lists of the schema', failures: [] },
    {
      ...{ check: 'rendering', held: true, seconds: 0, tried: '', failures: [] },
      notApplicable: 'it renders nothing',
    },
    {
      ...{ check: 'walk', held: false, seconds: 60, tried: '40 edits' },
      failures: [{ what: 'ConfigMap <name>.data.color is "red" instead of absent', sequence: ['a', 'b'] }],
    },
  ],
};

test('a report is a table of all checks, with what does not hold below', () => {
  expect(formatReport(report)).toBe(
    [
      'Widget, seed 7, 61 s',
      'list keys  held            0.0 s   2 lists of the schema',
      'rendering  not applicable  0.0 s   it renders nothing',
      'walk       FAILED          60.0 s  40 edits',
      '',
      'walk: ConfigMap <name>.data.color is "red" instead of absent',
      '  1. a',
      '  2. b',
    ].join('\n'),
  );
});

test('the progress has the words of the report', () => {
  expect(report.checks.map(formatProgress)).toEqual([
    'list keys: held, after 0 s',
    'rendering: not applicable, after 0 s',
    'walk: FAILED, after 60 s',
  ]);
});

test('what does not hold can be required', () => {
  expect(() => {
    requireHeld(report);
  }).toThrow(formatReport(report));
  requireHeld({ ...report, held: true });
});

test('a failure of another trial is the same, whatever the trial was called and how long it waited', () => {
  const failure = (name: string, seconds: number) => ({
    what: `Still so after ${seconds} s: ConfigMap ${name} is missing`,
    sequence: [name],
  });
  const failures = [failure('trial-00001', 12), failure('trial-00002', 10.43), failure('other', 12)];

  expect(shortest(failures)).toEqual([failures[2], failures[0]]);
});
