import fc from 'fast-check';
import { expect, test } from 'vitest';
import { durationSeconds, parseGoDuration } from '../../../src/kinds/job-watcher/duration.js';

const SECOND = 1_000_000_000n;
const MINUTE = 60n * SECOND;
const HOUR = 60n * MINUTE;

/** The table of Go's own test. @see https://github.com/golang/go/blob/master/src/time/time_test.go */
test.each<[text: string, nanoseconds: bigint]>([
  ['0', 0n],
  ['5s', 5n * SECOND],
  ['30s', 30n * SECOND],
  ['1478s', 1478n * SECOND],
  ['-5s', -5n * SECOND],
  ['+5s', 5n * SECOND],
  ['-0', 0n],
  ['+0', 0n],
  ['5.0s', 5n * SECOND],
  ['5.6s', 5_600_000_000n],
  ['5.s', 5n * SECOND],
  ['.5s', 500_000_000n],
  ['1.0s', SECOND],
  ['1.00s', SECOND],
  ['1.004s', 1_004_000_000n],
  ['1.0040s', 1_004_000_000n],
  ['100.00100s', 100_001_000_000n],
  ['10ns', 10n],
  ['11us', 11_000n],
  ['12µs', 12_000n],
  ['12μs', 12_000n],
  ['13ms', 13_000_000n],
  ['14s', 14n * SECOND],
  ['15m', 15n * MINUTE],
  ['16h', 16n * HOUR],
  ['3h30m', 3n * HOUR + 30n * MINUTE],
  ['10.5s4m', 4n * MINUTE + 10_500_000_000n],
  ['-2m3.4s', -(2n * MINUTE + 3_400_000_000n)],
  ['1h2m3s4ms5us6ns', HOUR + 2n * MINUTE + 3n * SECOND + 4_005_006n],
  ['39h9m14.425s', 39n * HOUR + 9n * MINUTE + 14_425_000_000n],
  ['52763797000ns', 52_763_797_000n],
  ['0.3333333333333333333h', 20n * MINUTE],
  ['9007199254740993ns', (1n << 53n) + 1n],
  ['9223372036854775807ns', (1n << 63n) - 1n],
  ['9223372036854775.807us', (1n << 63n) - 1n],
  ['9223372036s854ms775us807ns', (1n << 63n) - 1n],
  ['-9223372036854775808ns', -(1n << 63n)],
  ['-9223372036854775.808us', -(1n << 63n)],
  ['-9223372036s854ms775us808ns', -(1n << 63n)],
  ['0.100000000000000000000h', 6n * MINUTE],
  ['0.830103483285477580700h', 49n * MINUTE + 48n * SECOND + 372_539_827n],
])('%s is %i ns', (text, nanoseconds) => {
  expect(parseGoDuration(text)).toBe(nanoseconds);
});

/** The errors of the same test, and some more. */
test.each([
  ...['', '3', '-', 's', '.', '-.', '.s', '+.s', '1d', '\x85\x85', '\xffff', 'hello \xffff world'],
  ...['9223372036854775810ns', '9223372036854775808ns', '-9223372036854775809ns', '9223372036854776us'],
  ...['3000000h', '9223372036854775.808us', '9223372036854ms775us808ns', '9'.repeat(40) + 'ns'],
  ...[
    ' 1s',
    '1s ',
    '1 s',
    '1S',
    '1.5.5s',
    '1..5s',
    '--1s',
    '+-1s',
    '1s-1s',
    '1e3s',
    '0x1s',
    '١s',
    '1sec',
    '1h30',
  ],
  ...['toString', '1toString', '1__proto__'],
])('%j is none', (text) => {
  expect(parseGoDuration(text)).toBeUndefined();
});

const unit = fc.constantFrom<[name: string, nanoseconds: bigint]>(
  ['ns', 1n],
  ['us', 1000n],
  ['µs', 1000n],
  ['ms', 1_000_000n],
  ['s', SECOND],
  ['m', MINUTE],
  ['h', HOUR],
);

test('a sum of whole numbers with units is that sum, exactly', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(200_000), unit), { minLength: 1, maxLength: 8 }), (terms) => {
      const text = terms.map(([count, [name]]) => `${count}${name}`).join('');
      const sum = terms.reduce((total, [count, [, nanoseconds]]) => total + BigInt(count) * nanoseconds, 0n);

      expect(parseGoDuration(text)).toBe(sum);
      expect(parseGoDuration(`-${text}`)).toBe(-sum);
    }),
  );
});

test('what Go refuses by its grammar is refused, and nothing throws', () => {
  const grammar = /^[-+]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$/;
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...Array.from('0123.-+nsumhµd ')), { maxLength: 10 }), (letters) => {
      const text = letters.join('');
      // Six digits fit every unit.
      fc.pre(!/\d{7}/.test(text));

      expect(parseGoDuration(text) !== undefined).toBe(grammar.test(text));
    }),
    { numRuns: 5000 },
  );
});

test.each<[text: string, seconds: number | undefined]>([
  ['0s', 0],
  ['-0s', 0],
  ['1ns', 1],
  ['999ms', 1],
  ['1s', 1],
  ['1.000000001s', 2],
  ['1h30m', 5400],
  ['-1ns', undefined],
  ['1d', undefined],
])('%s counts as %s whole seconds: never too early', (text, seconds) => {
  expect(durationSeconds(text)).toBe(seconds);
});

test('a long text takes no longer than its length', () => {
  expect(parseGoDuration(`${'0'.repeat(200_000)}1s`)).toBe(SECOND);
  expect(parseGoDuration(`0.${'3'.repeat(200_000)}s`)).toBe(333_333_333n);
  expect(parseGoDuration('1'.repeat(200_000))).toBeUndefined();
});
