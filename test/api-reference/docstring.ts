import ts from 'typescript';

/** What a docstring says. */
export interface Docstring {
  /** Markdown, with its line breaks; empty where there is no docstring. */
  readonly text: string;
  /** As `@default` has it: `false`, `- none` or `false - it is created`. */
  readonly defaultValue?: string;
  /** Name and meaning. */
  readonly params: readonly string[];
  readonly throws: readonly string[];
  readonly see: readonly string[];
}

export const NO_DOCSTRING: Docstring = { text: '', params: [], throws: [], see: [] };

export function docstringOf(symbol: ts.Symbol, checker: ts.TypeChecker): Docstring {
  if (symbol.declarations?.some(isBelowFileComment)) return NO_DOCSTRING;
  const tags = symbol.getJsDocTags(checker);
  const all = (name: string): string[] =>
    tags.filter((tag) => tag.name === name).map((tag) => ts.displayPartsToString(tag.text).trim());
  const [defaultValue] = all('default');
  return {
    text: plain(ts.displayPartsToString(symbol.getDocumentationComment(checker))),
    ...(defaultValue !== undefined && { defaultValue }),
    params: all('param'),
    throws: all('throws'),
    see: all('see'),
  };
}

/** A link to a declaration as the code that it names. */
function plain(text: string): string {
  return text.trim().replaceAll(/\{@link (\S+?)\}/g, '`$1`');
}

/** A comment that a blank line keeps off is of the whole file. */
function isBelowFileComment(declaration: ts.Declaration): boolean {
  const last = ts.getJSDocCommentsAndTags(declaration).findLast((part) => ts.isJSDoc(part));
  if (!last) return false;
  const between = declaration.getSourceFile().text.slice(last.end, declaration.getStart());
  return between.includes('\n\n');
}

/** Its first sentence, on one line. */
export function firstSentence({ text }: Docstring): string {
  const [paragraph = ''] = text.split('\n\n');
  const line = paragraph.replaceAll(/\s+/g, ' ');
  const [sentence = line] = /^.*?(?<!\b(?:e\.g|i\.e))\.(?=\s|$)/.exec(line) ?? [];
  return sentence.replace(/:$/, '.');
}
