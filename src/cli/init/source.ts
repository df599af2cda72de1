/** A value as it is written in code. Members that are undefined are left out. */
export type Source =
  | string
  | number
  | boolean
  | undefined
  | Code
  | Call
  | Noted
  | readonly Source[]
  | { readonly [member: string]: Source };

/** An expression, which stands as it is. */
export class Code {
  constructor(readonly text: string) {}
}

/** A function that is called, with an object as its last argument. */
export class Call {
  constructor(
    readonly text: string,
    readonly last: { readonly [member: string]: Source },
  ) {}
}

/** A value with a line of comment above its member. */
export class Noted {
  constructor(
    readonly note: string,
    readonly value: Source,
  ) {}
}

export function code(text: string): Code {
  return new Code(text);
}

/** Columns that a line has at most. */
const WIDTH = 100;
/** Behind a key that is no longer, a text gains nothing on a line of its own. */
const SHORT_KEY = 4;
/** What is nested deeper than this is easier read on several lines. */
const FLAT_DEPTH = 2;

/**
 * Writes a value as code, as prettier does: on one line where that fits.
 *
 * @param indent of the line on which the value begins
 * @param used columns of that line before the value and behind it
 */
export function source(value: Source, indent = '', used = 0): string {
  if (value instanceof Noted) return source(value.value, indent, used);
  if (value instanceof Call)
    return `${value.text}${source(value.last, indent, used + value.text.length + 1)})`;
  if (typeof value !== 'object' || value instanceof Code) return word(value);
  const isFlat = depth(value) <= FLAT_DEPTH && !hasNotes(value) && !isTable(value);
  const flat = isFlat ? onOneLine(value) : undefined;
  if (flat !== undefined && indent.length + used + flat.length <= WIDTH) return flat;
  return onLines(value, indent);
}

/** As `source`, but always on several lines. */
export function onLines(
  value: readonly Source[] | { readonly [member: string]: Source },
  indent = '',
): string {
  const inner = `${indent}  `;
  if (isList(value)) {
    const items = value.map((item) => `${inner}${source(item, inner, 1)},\n`);
    return `[\n${items.join('')}${indent}]`;
  }
  const members = Object.entries(value).flatMap(([name, member]) => {
    if (member === undefined) return [];
    const note = member instanceof Noted ? `${inner}// ${member.note}\n` : '';
    return [`${note}${inner}${memberOf(name, member, inner)},\n`];
  });
  return `{\n${members.join('')}${indent}}`;
}

function memberOf(name: string, value: Source, indent: string): string {
  const key = keyOf(name);
  const text = source(value, indent, key.length + 3);
  if (value instanceof Code && standsAlone(value, key)) return value.text;
  const isLong = indent.length + key.length + 3 + text.length > WIDTH;
  const broken = typeof value === 'string' && isLong && key.length > SHORT_KEY;
  return broken ? `${key}:\n${indent}  ${text}` : `${key}: ${text}`;
}

function onOneLine(value: Source): string {
  if (value instanceof Call) return `${value.text}${onOneLine(value.last)})`;
  if (typeof value !== 'object' || value instanceof Code || value instanceof Noted) return word(value);
  if (isList(value)) return `[${value.map(onOneLine).join(', ')}]`;
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  if (members.length === 0) return '{}';
  return `{ ${members.map(([name, member]) => flatMember(name, member)).join(', ')} }`;
}

function flatMember(name: string, value: Source): string {
  const key = keyOf(name);
  return value instanceof Code && standsAlone(value, key) ? value.text : `${key}: ${onOneLine(value)}`;
}

function keyOf(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : quoted(name);
}

/** A variable of the member's name, or members of another object, which need no name. */
function standsAlone({ text }: Code, key: string): boolean {
  return text === key || text.startsWith('...');
}

function word(value: string | number | boolean | undefined | Code | Noted): string {
  if (value instanceof Noted) return onOneLine(value.value);
  if (value instanceof Code) return value.text;
  return typeof value === 'string' ? quoted(value) : String(value);
}

function quoted(text: string): string {
  const escaped = text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
  return text.includes("'") ? `"${escaped.replaceAll('"', '\\"')}"` : `'${escaped}'`;
}

function depth(value: Source): number {
  if (typeof value !== 'object' || value instanceof Code || value instanceof Noted) return 0;
  if (value instanceof Call) return depth(value.last);
  if (isList(value)) return Math.max(0, ...value.map(depth));
  return 1 + Math.max(0, ...Object.values(value).map(depth));
}

function hasNotes(value: Source): boolean {
  if (value instanceof Noted) return true;
  if (value instanceof Call) return hasNotes(value.last);
  if (typeof value !== 'object' || value instanceof Code) return false;
  return Object.values(value).some(hasNotes);
}

/** Several objects of several members, which stand below each other. */
function isTable(value: object): boolean {
  const rows: readonly unknown[] = Array.isArray(value) ? value : [];
  return (
    rows.length > 1 &&
    rows.every((row) => typeof row === 'object' && row !== null && Object.keys(row).length > 1)
  );
}

function isList(value: object): value is readonly Source[] {
  return Array.isArray(value);
}
