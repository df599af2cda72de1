import { messageOf, OperatorError } from '../../contract/error.js';
import { compileRegularExpression, sizeOfRegularExpression } from '../../contract/regular-expression.js';
import type { JobWatcherSpec } from './spec.js';

/** Most instructions that one pattern may be compiled to. */
export const MAX_PATTERN_SIZE = 1500;

/** The same of all patterns of one JobWatcher. */
export const MAX_WATCHER_SIZE = 5000;

/** The same of the different patterns of all JobWatchers in one namespace, which each of its Jobs may be searched for. */
export const MAX_NAMESPACE_SIZE = 20_000;

const LISTS = ['namespacePatterns', 'jobNamePatterns'] as const;

/**
 * Sizes of the patterns of a JobWatcher. None is compiled for that: compiling is what costs.
 * @throws OperatorError `PatternsTooLarge`
 */
export function patternSizes(spec: JobWatcherSpec): ReadonlyMap<string, number> {
  const sizes = new Map<string, number>();
  for (const list of LISTS)
    for (const [index, pattern] of [...(spec[list] ?? [])].entries()) {
      const size = sizeOfRegularExpression(pattern);
      const what = `${JSON.stringify(pattern)} is a regular expression of size ${size}`;
      if (size > MAX_PATTERN_SIZE) throw tooLarge(what, MAX_PATTERN_SIZE, ['spec', list, index]);
      sizes.set(pattern, size);
    }
  const size = [...sizes.values()].reduce((sum, its) => sum + its, 0);
  if (size > MAX_WATCHER_SIZE)
    throw tooLarge(`the patterns have a size of ${size}`, MAX_WATCHER_SIZE, ['spec']);
  return sizes;
}

/** @param path where it is in the custom resource */
export function tooLarge(what: string, most: number, path: readonly (string | number)[]): OperatorError {
  const place = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('');
  const message = `${place.slice(1)}: ${what}, at most ${most} is allowed; give less, and smaller repetitions: "x{0,100}" stands for a hundred x`;
  return new OperatorError({ reason: 'PatternsTooLarge', path, message });
}

/**
 * Checks the patterns of a JobWatcher: RE2, as the API server checks them.
 * @throws OperatorError `PatternsTooLarge`, or `InvalidPattern` with the parser's own message
 */
export function checkPatterns(spec: JobWatcherSpec): void {
  patternSizes(spec);
  for (const list of LISTS)
    for (const [index, pattern] of [...(spec[list] ?? [])].entries()) {
      try {
        compileRegularExpression(pattern);
      } catch (cause) {
        const message = `${JSON.stringify(pattern)} is not a regular expression of RE2: ${messageOf(cause)}; correct it`;
        throw new OperatorError({ reason: 'InvalidPattern', path: ['spec', list, index], message, cause });
      }
    }
}

/**
 * Reports whether one of the patterns is found anywhere in a text.
 * @param found what is known of that text already: equal patterns are searched for once
 */
export function findsOne(
  patterns: readonly string[],
  text: string,
  found = new Map<string, boolean>(),
): boolean {
  return patterns.some((pattern) => {
    const known = found.get(pattern) ?? compileRegularExpression(pattern).test(text);
    found.set(pattern, known);
    return known;
  });
}
