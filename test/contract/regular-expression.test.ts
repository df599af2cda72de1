import { describe, expect, test } from 'vitest';
import { RE2JS } from '@bufbuild/re2';
import { patterns } from '../kinds/job-watcher/syntax.js';
import { compileRegularExpression, sizeOfRegularExpression } from '../../src/values/regular-expression.js';

const finds = (pattern: string, text: string): boolean => compileRegularExpression(pattern).test(text);

describe('what Go takes', () => {
  test.each<[pattern: string, found: string, missed: string]>([
    ['^a{2}$', 'aa', 'a'],
    ['^{$', '{', ''],
    ['^{+$', '{{{', ''],
    ['^{{2}$', '{{', '{'],
    ['^a{,2}+$', 'a{,2}}', 'aa'],
    ['^{01}?$', '{01', '0'],
    ['^(?P<n>a)(?<n>b)$', 'ab', 'a'],
    ['^(?P<n>{*)(?<n>b)$', '{{b', 'a'],
    ['^(?P<n>[({<]+)(?P<n>\\Q(?<n>\\E)$', '<(?<n>', 'x'],
    ['^\\{{2}{?$', '{{{', '{'],
    ['^[[:]$', ':', ']'],
    ['^[[:][]{+]{*$', '[]{', 'a'],
    ['^[\\]{+]{*$', '+{', 'a'],
    ['^[[:alpha:]{+]{*$', 'a{', '1'],
    ['^\\x{61}{*\\p{L}$', 'a{{b', 'a{1'],
  ])('%s finds %s and not %s', (pattern, found, missed) => {
    expect([finds(pattern, found), finds(pattern, missed)]).toEqual([true, false]);
  });
});

test.each<[pattern: string, message: string]>([
  ['(', 'error parsing regexp: missing closing ): `(`'],
  ['a**', 'error parsing regexp: invalid nested repetition operator: `**`'],
  ['{+a**', 'error parsing regexp: invalid nested repetition operator: `**`'],
  ['(?P<n>a)(?P<n>', 'error parsing regexp: missing closing ): `(?P<n>a)(?P<n>`'],
  ['(?:{+', 'error parsing regexp: missing closing ): `(?:{+`'],
  ['(?P<n>a)(?P<1>a)(?P<n>b)(?=a)', 'error parsing regexp: invalid or unsupported Perl syntax: `(?=`'],
  ['[b-a]{+', 'error parsing regexp: invalid character class range: `b-a`'],
])('what Go refuses is refused in its words: %s', (pattern, message) => {
  expect(() => compileRegularExpression(pattern)).toThrow(message);
});

describe('the size of a regular expression', () => {
  test('is never less than what it is compiled to', () => {
    const small = patterns(1_200, 5).flatMap((pattern) => {
      try {
        return [[pattern, RE2JS.compile(pattern).re2().prog.numInst()] as const];
      } catch {
        return [];
      }
    });
    expect(small.length).toBeGreaterThan(300);
    expect(small.filter(([pattern, size]) => sizeOfRegularExpression(pattern) < size)).toEqual([]);
  });

  test.each<[pattern: string, most: number]>([
    ['^pi-\\d+$', 12],
    ['^[a-z]{1,63}$', 140],
    ['^(dev|prod)-[a-z0-9]{8}$', 35],
  ])('is close to it for the usual ones: %s', (pattern, most) => {
    expect(sizeOfRegularExpression(pattern)).toBeLessThanOrEqual(most);
  });

  test('is refused before it is compiled where it is out of all measure', () => {
    expect(() => finds('.{0,1000}'.repeat(27), 'a')).toThrow(/has a size of 54003, at most 20000/);
  });
});

test('what searching has built is given back: many patterns, each searched for in many texts', () => {
  const used = (): number => process.memoryUsage().heapUsed / 2 ** 20;
  const before = used();
  for (let n = 0; n < 60; n++)
    for (let text = 0; text < 20; text++)
      finds(
        `(a|b)*${n}a(a|b){100}x`,
        Math.sin(text * 60 + n)
          .toString(2)
          .replaceAll('0', 'a')
          .replaceAll('1', 'b'),
      );
  expect(used() - before).toBeLessThan(300);
});
