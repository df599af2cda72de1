import { describe, expect, test } from 'vitest';
import type { OperatorError } from '../../../src/contract/error.js';
import {
  checkPatterns,
  findsOne,
  MAX_PATTERN_SIZE,
  MAX_WATCHER_SIZE,
} from '../../../src/kinds/job-watcher/watcher.js';
import { selects } from '../../../src/values/label-selector.js';
import type { LabelSelector } from '../../../src/values/label-selector.js';
import { isListed } from '../../../src/kinds/job-watcher/matching.js';

describe('patterns', () => {
  // The rest of RE2 is held by test/full/job-watcher-syntax.test.ts.
  test.each<[pattern: string, text: string, matches: boolean]>([
    ['pi', 'copied', true],
    ['^pi$', 'copied', false],
    ['(?i)PI', 'pi', true],
    ['$^', 'pi', false],
    ['^', '', true],
  ])('%s in %s: %s', (pattern, text, matches) => {
    expect(findsOne([pattern], text)).toBe(matches);
  });

  test('one of them is enough, and of none there is none', () => {
    expect(findsOne(['x', 'y'], 'y')).toBe(true);
    expect(findsOne([], 'y')).toBe(false);
  });

  test.each(['(', '(?=a)', '(a)\\1', 'a{1001}'])('%s is refused', (pattern) => {
    const refused = (): void => {
      checkPatterns({ jobNamePatterns: ['ok', pattern] });
    };
    const path = ['spec', 'jobNamePatterns', 1];
    expect(refused).toThrow(expect.objectContaining({ reason: 'InvalidPattern', path }));
    expect(refused).toThrow(/error parsing regexp/);
  });
});

describe('patterns that would cost too much', () => {
  const refused = (jobNamePatterns: string[]): void => {
    checkPatterns({ jobNamePatterns });
  };

  test('a large one is refused before it is compiled, with where it is and what to do', () => {
    const before = performance.now();
    expect(() => {
      refused(['ok', '.{0,1000}'.repeat(27)]);
    }).toThrow(
      expect.objectContaining<Partial<OperatorError>>({
        reason: 'PatternsTooLarge',
        path: ['spec', 'jobNamePatterns', 1],
        message: expect.stringMatching(/size 54003, at most 1500 is allowed; give/) as string,
      }),
    );
    // To compile it takes hundreds of times as long.
    expect(performance.now() - before).toBeLessThan(250);
  });

  test('so are many that are too large together', () => {
    const all = Array.from({ length: 64 }, (_, index) => `^x{0,${30 + index}}y$`);
    expect(() => {
      refused(all);
    }).toThrow(expect.objectContaining({ reason: 'PatternsTooLarge', path: ['spec'] }));
    expect(() => {
      refused(all.slice(0, 40));
    }).not.toThrow();
    expect(MAX_PATTERN_SIZE).toBeLessThan(MAX_WATCHER_SIZE);
  });
});

describe('selector', () => {
  const labels = { app: 'web', tier: '' };

  test.each<[selector: LabelSelector, selected: boolean]>([
    [{}, true],
    [{ matchLabels: { app: 'web' } }, true],
    [{ matchLabels: { app: 'web', tier: 'x' } }, false],
    [{ matchLabels: { toString: 'x' } }, false],
    [{ matchExpressions: [{ key: 'app', operator: 'In', values: ['a', 'web'] }] }, true],
    [{ matchExpressions: [{ key: 'none', operator: 'In', values: ['web'] }] }, false],
    [{ matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['web'] }] }, false],
    [{ matchExpressions: [{ key: 'none', operator: 'NotIn', values: ['web'] }] }, true],
    [{ matchExpressions: [{ key: 'tier', operator: 'Exists' }] }, true],
    [{ matchExpressions: [{ key: 'none', operator: 'Exists' }] }, false],
    [{ matchExpressions: [{ key: 'none', operator: 'DoesNotExist' }] }, true],
    [{ matchLabels: { app: 'web' }, matchExpressions: [{ key: 'tier', operator: 'DoesNotExist' }] }, false],
  ])('%j: %s', (selector, selected) => {
    expect(selects(selector, labels)).toBe(selected);
  });
});

test.each<[list: string[], namespace: string, listed: boolean]>([
  [['kube-*'], 'kube-system', true],
  [['kube-*'], 'kube-', true],
  [['kube-*'], 'my-kube-system', false],
  [['ops'], 'ops', true],
  [['ops'], 'ops2', false],
  [['*'], 'any', true],
  [['a*b*c'], 'axbyc', true],
  [['a*b*c'], 'abc', true],
  [['a*bb*b'], 'abb', false],
  [['a*a'], 'a', false],
  [[], 'any', false],
])('%j lists %s: %s', (list, namespace, listed) => {
  expect(isListed(list, namespace)).toBe(listed);
});
