import { RE2JS } from '@bufbuild/re2';
import { messageOf } from './error.js';

/** Something that finds its pattern in a text. */
export interface Matcher {
  test(text: string): boolean;
}

/**
 * Compiles a regular expression as Go does: RE2, which takes linear time whatever the pattern is.
 *
 * **Caveats.** Unicode classes are known by their short names and as of Unicode 16; Go knows those of its own release.
 * @throws Error with the parser's message, if it is none
 */
export function compileRegularExpression(pattern: string): Matcher {
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    if (!REFUSED_HERE_ALONE.test(messageOf(error))) throw error;
    return compilePlain(pattern);
  }
}

/** Go lets several groups have one name, repeats a brace that begins no repetition (`{+`), and takes `[[:]` for two letters. */
const REFUSED_HERE_ALONE =
  /duplicate capture group name|invalid nested repetition operator|invalid character class range: `\[:\]`/;

/** The same without names of groups, and with such braces and brackets escaped. */
function compilePlain(pattern: string): Matcher {
  const plain = pattern.replace(TOKENS, (token) => {
    if (token === '{') return '\\{';
    if (token.startsWith('[')) return token.replaceAll('[:]', '\\[:]');
    return /^\(\?P?<\w+>$/.test(token) ? '(' : token;
  });
  try {
    return RE2JS.compile(plain);
  } catch (error) {
    throw new Error(
      messageOf(error).replace(plain, () => pattern),
      { cause: error },
    );
  }
}

/** What has to be told apart from a brace that stands for itself, a name of a group, and that brace. */
const TOKENS = new RegExp(
  [
    String.raw`\\Q[^]*?(?:\\E|$)`,
    String.raw`\\[pPx]\{`,
    String.raw`\\[^]`,
    String.raw`\[\^?\]?(?:\[:\^?\w+:\]|\\[^]?|[^\]\\])*\]?`,
    String.raw`\{(?:0|[1-9]\d*)(?:,(?:0|[1-9]\d*)?)?\}`,
    String.raw`\(\?P?<[^>]*(?:>|$)`,
    String.raw`\{`,
  ].join('|'),
  'g',
);
