// Draws code and the output of a terminal as a still picture, light and dark.
import { format } from 'prettier';
import ts from 'typescript';

/** Width and height of a character's cell, and the space around the text. */
const [CELL, LINE, EDGE] = [8, 19, 18];
const palettes = {
  light: {
    ...{ paper: '#ffffff', screen: '#f3f5f8', line: '#d0d7de', text: '#24292f', dim: '#667080' },
    ...{
      keyword: '#a626a4',
      string: '#0a5f2c',
      type: '#0550ae',
      ok: '#1a7f37',
      bad: '#cf222e',
      warn: '#8a5a00',
    },
  },
  dark: {
    ...{ paper: '#0d1117', screen: '#161b22', line: '#30363d', text: '#e6edf3', dim: '#8b949e' },
    ...{
      keyword: '#d2a8ff',
      string: '#7ee787',
      type: '#79c0ff',
      ok: '#3fb950',
      bad: '#ff7b72',
      warn: '#e3b341',
    },
  },
};

/**
 * Draws the class of a module above commands and what the last of them prints.
 * @returns the content of the two files, by their path
 */
export async function drawPicture({ construct, commands, output, columns }) {
  const [code] = /^export class [^]*?^\}$/m.exec(construct);
  const narrow = await format(code.replace('export ', ''), {
    ...{ parser: 'typescript', printWidth: columns, singleQuote: true },
  });
  const above = codeLines(narrow.trimEnd());
  const below = [
    ...commands.map((text) => [
      { at: 0, text: '$', look: 'dim' },
      { at: 2, text },
    ]),
    ...output.trimEnd().split('\n').map(terminalLine),
  ];
  const widest = Math.max(...[...above, ...below].flat().map(({ at, text }) => at + text.length));
  if (widest > columns)
    throw new Error(`The picture has a line of ${widest} characters, and room for ${columns}`);
  return Object.fromEntries(
    Object.entries(palettes).map(([name, palette]) => [
      `docs/picture-${name}.svg`,
      drawing({ above, below, columns, palette }),
    ]),
  );
}

/** Parts of TypeScript by their looks, a list for each line. */
function codeLines(code) {
  const scanner = ts.createScanner(ts.ScriptTarget.Latest, false, ts.LanguageVariant.Standard, code);
  const lines = code.split('\n').map(() => []);
  const { SyntaxKind } = ts;
  for (let kind = scanner.scan(); kind !== SyntaxKind.EndOfFileToken; kind = scanner.scan()) {
    const text = scanner.getTokenText();
    if (text.trim() === '') continue;
    const before = code.slice(0, scanner.getTokenStart());
    const line = before.split('\n').length - 1;
    const at = before.length - (before.lastIndexOf('\n') + 1);
    const isKeyword = kind >= SyntaxKind.FirstKeyword && kind <= SyntaxKind.LastKeyword;
    const isType = kind === SyntaxKind.Identifier && /^[A-Z]/.test(text);
    const look = { [SyntaxKind.StringLiteral]: 'string', [SyntaxKind.SingleLineCommentTrivia]: 'dim' }[kind];
    lines[line].push({ at, text, look: look ?? (isKeyword ? 'keyword' : isType ? 'type' : undefined) });
  }
  return lines;
}

/** Parts of a line of a terminal, by its colours. */
function terminalLine(line) {
  const looks = { 2: 'dim', 31: 'bad', 32: 'ok', 33: 'warn', 90: 'dim' };
  const parts = [];
  let [at, look] = [0, undefined];
  for (const [, codes, text] of line.matchAll(/(?:\u001b\[([\d;]*)m)|([^\u001b]+)/g)) {
    if (text === undefined) {
      look = looks[codes.split(';').at(-1)];
      continue;
    }
    const start = text.length - text.trimStart().length;
    if (text.trim() !== '') parts.push({ at: at + start, text: text.trim(), look });
    at += text.length;
  }
  return parts;
}

function drawing({ above, below, columns, palette }) {
  const width = columns * CELL + 2 * EDGE;
  const heightOf = (lines) => lines.length * LINE + 2 * EDGE;
  const [top, bottom] = [heightOf(above), heightOf(below)];
  const looks = Object.entries(palette).filter(
    ([name]) => !['paper', 'screen', 'line', 'text'].includes(name),
  );
  const font = '13.2px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace';
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${top + bottom}" viewBox="0 0 ${width} ${top + bottom}" style="max-width:100%;height:auto" role="img">`,
    '<title>A construct renders a Deployment; below it, reconstruct status of a custom resource</title>',
    '<style>',
    `text{font:${font};fill:${palette.text};white-space:pre}`,
    looks.map(([name, colour]) => `.${name}{fill:${colour}}`).join(''),
    '</style>',
    `<clipPath id="c"><rect width="${width}" height="${top + bottom}" rx="10"/></clipPath>`,
    '<g clip-path="url(#c)">',
    `<rect width="${width}" height="${top}" fill="${palette.paper}"/>`,
    `<rect y="${top}" width="${width}" height="${bottom}" fill="${palette.screen}"/>`,
    `<path d="M0 ${top}H${width}" stroke="${palette.line}"/>`,
    '</g>',
    `<rect x=".5" y=".5" width="${width - 1}" height="${top + bottom - 1}" rx="10" fill="none" stroke="${palette.line}"/>`,
    ...textOf(above, EDGE),
    ...textOf(below, top + EDGE),
    '</svg>',
  ].join('\n')}\n`;
}

function textOf(lines, y) {
  return lines.flatMap((parts, index) =>
    parts.map(({ at, text, look }) => {
      const place = `x="${EDGE + at * CELL}" y="${y + index * LINE + 14}" textLength="${text.length * CELL}"`;
      return `<text ${place}${look === undefined ? '' : ` class="${look}"`}>${escaped(text)}</text>`;
    }),
  );
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
