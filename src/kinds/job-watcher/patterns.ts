import { messageOf, OperatorError } from '../../contract/error.js';
import { compileRegularExpression } from '../../contract/regular-expression.js';
import type { Matcher } from '../../contract/regular-expression.js';

/**
 * Regular expressions of users: RE2, as the API server checks them, which takes linear time whatever they are. A text
 * matches where one of them is found anywhere in it.
 */
export class Patterns {
  private readonly compiled: readonly Matcher[];

  /**
   * @param path where they stand in the custom resource
   * @throws OperatorError `InvalidPattern`, with the parser's own message
   */
  constructor(patterns: readonly string[], path: readonly string[]) {
    this.compiled = patterns.map((pattern, index) => compile(pattern, [...path, index]));
  }

  match(text: string): boolean {
    return this.compiled.some((pattern) => pattern.test(text));
  }
}

function compile(pattern: string, path: readonly (string | number)[]): Matcher {
  try {
    return compileRegularExpression(pattern);
  } catch (cause) {
    const message = `${JSON.stringify(pattern)} is not a regular expression of RE2: ${messageOf(cause)}; put it right`;
    throw new OperatorError({ reason: 'InvalidPattern', path, message, cause });
  }
}
