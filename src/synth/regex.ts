import { compileRegularExpression } from '../contract/regular-expression.js';
import type { Matcher } from '../contract/regular-expression.js';

const compiled = new Map<string, Matcher>();

/** Patterns that a rule makes out of values could otherwise fill the memory. */
const MAX_KEPT = 1000;

/**
 * Compiles a pattern as Go does, whose syntax CRDs are written in, and which takes linear time whatever the pattern
 * is: it comes from users.
 * @throws Error if it is none
 */
export function compilePattern(pattern: string): Matcher {
  const known = compiled.get(pattern);
  if (known) return known;
  const matcher = compileRegularExpression(pattern);
  if (compiled.size >= MAX_KEPT) compiled.clear();
  compiled.set(pattern, matcher);
  return matcher;
}
