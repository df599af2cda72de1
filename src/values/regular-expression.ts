import { RE2JS } from '@bufbuild/re2';
import { messageOf } from '../contract/error.js';

/** Something that finds its pattern in a text. */
export interface Matcher {
  test(text: string): boolean;
}

/** Size of the largest regular expression that is compiled; what it costs to compile grows with it. */
const MAX_SIZE = 20_000;

/** Maximum number of estimated bytes of all that is compiled, together with what searching has added. */
const MAX_COMPILED_BYTES = 32 * 2 ** 20;
const BYTES_PER_INSTRUCTION = 300;
/** Bytes of one state of the automaton that a search builds, which has up to 4 more for each instruction. */
const BYTES_PER_STATE = 2000;

const compiled = new Map<string, RE2JS>();
let compiledBytes = 0;

/**
 * Compiles a regular expression as Go does: RE2, which takes linear time whatever the pattern is.
 *
 * @remarks
 * Equal patterns are compiled once. Memory is bounded for all together: beyond it, all are forgotten, and compiled again
 * when they are used.
 *
 * **Caveats.** Unicode classes are known by their short names and as of Unicode 16; Go knows those of its own release. Go
 * compiles larger ones, too.
 * @throws Error with the parser's message, if it is none, or if it is too large
 */
export function compileRegularExpression(pattern: string): Matcher {
  programOf(pattern);
  return { test: (text) => find(pattern, text) };
}

/**
 * Upper bound of the instructions that a regular expression is compiled to, worked out from its text, since compiling is
 * what costs. A Unicode class counts as 20 more.
 */
export function sizeOfRegularExpression(pattern: string): number {
  const outer: { before: number; last: number }[] = [];
  let before = 3;
  let last = 0;
  for (const [token] of pattern.matchAll(TOKENS)) {
    const repeat = /^(?:[*+?]|\{(\d+)(?:(,)(\d*))?\})$/.exec(token);
    if (repeat) {
      last = repeatedSize(last, repeat[1], repeat[2], repeat[3]);
    } else if (token === '|') {
      [before, last] = [before + last + 2, 0];
    } else if (token === ')') {
      const size = before + last;
      ({ before, last } = outer.pop() ?? { before: 0, last: 0 });
      [before, last] = [before + last, size];
    } else if (/^\((?!\?[^:]*\)$)/.test(token)) {
      outer.push({ before, last });
      [before, last] = [3, 0];
    } else {
      before += last;
      const classes = token.startsWith('\\Q') ? 0 : token.split(/\\p/i).length - 1;
      last = token.startsWith('\\Q') ? token.length : 1 + 20 * classes;
    }
  }
  return outer.reduce((sum, group) => sum + group.before + group.last, before + last);
}

/** Returns the size of `a{min,max}`, and without numbers of `a*`, `a+` and `a?`. */
function repeatedSize(size: number, min?: string, comma?: string, max?: string): number {
  if (min === undefined) return size + 2;
  if (comma === undefined) return Math.max(1, size * Number(min));
  return max ? Math.max(1, (size + 1) * Number(max)) : size * Math.max(1, Number(min)) + 2;
}

function find(pattern: string, text: string): boolean {
  const program = programOf(pattern);
  const { dfa, prog } = program.re2();
  const before = dfa.stateCount;
  const found = program.test(text);
  count((dfa.stateCount - before) * (BYTES_PER_STATE + 4 * prog.numInst()));
  return found;
}

function programOf(pattern: string): RE2JS {
  const known = compiled.get(pattern);
  if (known) return known;
  const size = sizeOfRegularExpression(pattern);
  if (size > MAX_SIZE)
    throw new Error(
      `the regular expression is too large: it has a size of ${size}, at most ${MAX_SIZE} is allowed`,
    );
  const program = compileNew(pattern);
  const { dfa } = program.re2();
  dfa.stateLimit = Math.ceil(MAX_COMPILED_BYTES / 2 / (BYTES_PER_STATE + 4 * size));
  count(size * BYTES_PER_INSTRUCTION);
  compiled.set(pattern, program);
  return program;
}

function count(bytes: number): void {
  compiledBytes += bytes;
  if (compiledBytes < MAX_COMPILED_BYTES) return;
  compiled.clear();
  compiledBytes = 0;
}

function compileNew(pattern: string): RE2JS {
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
function compilePlain(pattern: string): RE2JS {
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

/** Parts of a pattern: what is quoted, escapes, classes, repetitions, and what opens a group or sets flags; else one character. */
const TOKENS = new RegExp(
  [
    String.raw`\\Q[^]*?(?:\\E|$)`,
    String.raw`\\[pPx]\{`,
    String.raw`\\[^]`,
    String.raw`\[\^?\]?(?:\[:\^?\w+:\]|\\[^]?|[^\]\\])*\]?`,
    String.raw`\{(?:0|[1-9]\d*)(?:,(?:0|[1-9]\d*)?)?\}`,
    String.raw`\(\?P?<[^>]*(?:>|$)`,
    String.raw`\(\?[-a-zA-Z]*[:)]`,
    String.raw`[^]`,
  ].join('|'),
  'g',
);
