import fc from 'fast-check';
import { expect, test } from 'vitest';
import { durationSeconds } from '../../../src/kinds/job-watcher/duration.js';

/** After the table of Go's own test. @see https://github.com/golang/go/blob/master/src/time/time_test.go */
test.each<[text: string, seconds: number]>([
  ['0', 0],
  ['-0', 0],
  ['-0s', 0],
  ['+5s', 5],
  ['5.s', 5],
  ['.5s', 1],
  ['5.6s', 6],
  ['1.0s', 1],
  ['1.004s', 2],
  ['10ns', 1],
  ['999ms', 1],
  ['1000000us', 1],
  ['1000000µs', 1],
  ['1000001μs', 2],
  ['3h30m', 12_600],
  ['10.5s4m', 251],
  ['1h2m3s4ms5us6ns', 3724],
  ['0.3333333333333333333h', 1200],
  ['0.100000000000000000000h', 360],
  ['0.830103483285477580700h', 2989],
  ['9223372036s854ms775us807ns', 9_223_372_037],
  [`${'0'.repeat(200_000)}1s`, 1],
  [`0.${'3'.repeat(200_000)}s`, 1],
])('%s is %i s', (text, seconds) => {
  expect(durationSeconds(text)).toBe(seconds);
});

test.each([
  ...[
    ...'3 - s . -. .s +.s 1d hello 1S 1..5s 1.5.5s --1s 1s-1s 1e3s 0x1s ١s 1sec 1h30 -1ns -5s'.split(' '),
    '',
  ],
  ...['\x85\x85', ' 1s', '1s ', '1 s', 'toString', '1__proto__', '9'.repeat(40) + 'ns', '1'.repeat(200_000)],
  ...['9223372036854775808ns', '3000000h', '9223372036854ms775us808ns'],
])('%j is none that can pass', (text) => {
  expect(durationSeconds(text)).toBeUndefined();
});

test('Go’s grammar is followed, and nothing throws', () => {
  const grammar = /^\+?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)$/;
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...Array.from('0123.+nsumhµd ')), { maxLength: 10 }), (letters) => {
      const text = letters.join('');
      // Six digits fit every unit.
      fc.pre(!/\d{7}/.test(text));

      expect(durationSeconds(text) !== undefined).toBe(grammar.test(text));
    }),
    { numRuns: 5000 },
  );
});
