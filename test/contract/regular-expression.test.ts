import { describe, expect, test } from 'vitest';
import { compileRegularExpression } from '../../src/contract/regular-expression.js';

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
