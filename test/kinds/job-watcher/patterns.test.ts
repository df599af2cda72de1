import { describe, expect, test } from 'vitest';
import type { OperatorError } from '../../../src/contract/error.js';
import { Patterns } from '../../../src/kinds/job-watcher/patterns.js';
import { selects } from '../../../src/kinds/job-watcher/selector.js';
import type { LabelSelector } from '../../../src/kinds/job-watcher/spec.js';
import { isListed } from '../../../src/kinds/job-watcher/settings.js';

describe('patterns', () => {
  const match = (pattern: string, text: string): boolean => new Patterns([pattern], []).match(text);

  test.each<[pattern: string, text: string, matches: boolean]>([
    ['pi', 'pi', true],
    ['pi', 'copied', true],
    ['^pi$', 'copied', false],
    ['^pi-\\d+$', 'pi-42', true],
    ['(?i)PI', 'pi', true],
    ['\\pL', 'é', true],
    ['$^', 'pi', false],
    ['^', '', true],
    ['a|b', 'cb', true],
  ])('%s in %s: %s', (pattern, text, matches) => {
    expect(match(pattern, text)).toBe(matches);
  });

  test('one of them is enough, and of none there is none', () => {
    expect(new Patterns(['x', 'y'], []).match('y')).toBe(true);
    expect(new Patterns([], []).match('y')).toBe(false);
  });

  test.each(['(', '(?=a)', '(?<=a)', '(a)\\1', 'a{2000}', '[z-a]', '*'])('%s is refused', (pattern) => {
    const refused = (): Patterns => new Patterns(['ok', pattern], ['spec', 'jobNamePatterns']);

    expect(refused).toThrow(
      expect.objectContaining<Partial<OperatorError>>({
        reason: 'InvalidPattern',
        path: ['spec', 'jobNamePatterns', 1],
      }),
    );
    expect(refused).toThrow(/error parsing regexp/);
  });

  test.each(['^(a+)+$', '^(a|aa)+$', '(.*)*x', '^(([a-z])+.)+[A-Z]([a-z])+$', '(a?){200}a{200}'])(
    'a catastrophic pattern ends: %s',
    (pattern) => {
      const text = `${'a'.repeat(62)}!`;
      const patterns = new Patterns([pattern], []);
      const before = performance.now();

      for (let count = 0; count < 100; count++) patterns.match(text);

      // A backtracking engine takes longer than the universe is old for some of these; these take milliseconds each.
      expect((performance.now() - before) / 100).toBeLessThan(250);
    },
  );
});

describe('selector', () => {
  const labels = { app: 'web', tier: '' };

  test.each<[selector: LabelSelector, selected: boolean]>([
    [{}, true],
    [{ matchLabels: {} }, true],
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
