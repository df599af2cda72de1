import { rfc3339Seconds } from '../../author/status.js';
import { describeRef } from '../../contract/object.js';
import type { Kind } from '../../contract/kind.js';
import { writeYaml } from '../../values/yaml.js';
import { plain, plainAll } from '../output.js';
import type { OperatorStatus } from '../operators.js';
import type { Color, Paint } from '../output.js';
import type { ChildStatus, EventStatus, PodStatus, ResourceStatus, StatusDocument } from './model.js';

/** Renders a document for programs. */
export function documentText(document: object, format: 'json' | 'yaml'): string {
  return format === 'json' ? `${JSON.stringify(document, undefined, 2)}\n` : writeYaml(document);
}

interface TextProps {
  readonly now: Date;
  readonly paint: Paint;
  /** Characters in a line. @default 80 */
  readonly width?: number;
  readonly none?: string;
  /** Whether the nodes of pods are shown, too. @default false */
  readonly isWide?: boolean;
}

/** Renders a document for people: a tree of each custom resource, then the operators and notes. */
export function textOf(
  document: StatusDocument,
  { now, paint, width = 80, none, isWide = false }: TextProps,
): string {
  const { operators, resources, notes } = plainAll(document);
  const painted = (color: Color | undefined, lines: readonly string[]): readonly string[] =>
    color === undefined ? lines : lines.map((line) => paint(color, line));
  const trees = resources.map((resource) => rowsOf(resourceNode(resource, now, isWide)));
  const first = nameWidth(trees.flat(), width);
  const parts = resources.map(({ events, notes: own }, index) => [
    ...(trees[index] ?? []).flatMap((row) => painted(row.color, rowLines(row, now, first, width))),
    ...(events.length > 0 ? [paint('dim', '  Events')] : []),
    ...events.flatMap((event) =>
      painted(event.type === 'Warning' ? 'yellow' : undefined, eventLines(event, now, width)),
    ),
    ...painted(
      'yellow',
      own.flatMap((note) => wrap(note, width - 2, '  ')).map((line) => `  ${line}`),
    ),
  ]);
  const all = [
    ...parts,
    ...(resources.length === 0 && none !== undefined ? [wrap(none, width)] : []),
    operatorLines(operators).flatMap(([, line]) => wrap(line, width, '  ')),
    ...notes.map((note) => painted('yellow', wrap(note, width))),
  ];
  const shown = all.filter((lines) => lines.length > 0);
  return shown.map((lines) => `${lines.join('\n')}\n`).join('\n');
}

/**
 * Returns the sentence for a document without custom resources.
 * @param where namespace; undefined for all
 */
export function noneOf(
  { notInstalled = [] }: Pick<StatusDocument, 'notInstalled'>,
  kinds: readonly Kind[],
  where: string | undefined,
): string {
  const list = (names: readonly string[], type: 'conjunction' | 'disjunction'): string =>
    new Intl.ListFormat('en-GB', { type }).format(names);
  const names = kinds.map(({ type }) => type.kind).filter((name) => !notInstalled.includes(name));
  const none = `There is no ${list(names, 'disjunction')} ${where === undefined ? 'anywhere' : `in ${where}`}`;
  if (notInstalled.length === 0) return none;
  return `${none}; ${list(notInstalled, 'conjunction')} ${notInstalled.length === 1 ? "isn't" : "aren't"} installed`;
}

/** Object of the tree: name, age and state in three columns, with sentences below. */
interface Node {
  readonly name: string;
  readonly created?: string | undefined;
  readonly state: string;
  readonly details: readonly string[];
  readonly color: Color | undefined;
  readonly nodes: readonly Node[];
  /** State by which many of a kind are summed up. @default - none: each is shown */
  readonly sharedState?: string | undefined;
}

/** Maximum number of objects in the same state that are each shown, and how many are shown of more. */
const MAX_ALIKE = 10;
const EXAMPLES = 3;

/** Groups objects by their state, so that thousands in the same one need no line each. */
function alike<T>(all: readonly T[], stateOf: (one: T) => string): { shown: T[]; rest: T[] }[] {
  return [...Map.groupBy(all, stateOf).values()].map((group) => {
    const count = group.length > MAX_ALIKE ? EXAMPLES : group.length;
    return { shown: group.slice(0, count), rest: group.slice(count) };
  });
}

function summedUp(all: readonly Node[]): readonly Node[] {
  const kindOf = ({ name }: Node): string => name.split(' ', 1).join();
  const groups = alike(all, (node) => `${kindOf(node)} ${node.sharedState ?? node.name}`);
  if (groups.every(({ rest }) => rest.length === 0)) return all;
  return groups.flatMap(({ shown, rest: [first, ...others] }) => {
    if (!first) return shown;
    const name = `${(others.length + 1).toLocaleString('en')} more ${kindOf(first)}`;
    return [...shown, { ...first, name, created: undefined, state: first.sharedState ?? '', details: [] }];
  });
}

function resourceNode(resource: ResourceStatus, now: Date, isWide: boolean): Node {
  const { verdict, facts, children, created } = resource;
  const since = age(verdict.since, now);
  const isReady = verdict.word === 'Ready' && verdict.current;
  return {
    ...{ name: describeRef(resource), created },
    nodes: summedUp(children.map((child) => childNode(child, resource, isWide))),
    state: `${verdictText(resource)}${since && `, for ${since}`}`,
    details: [
      ...(isReady && verdict.reason !== 'ByChildren' ? [] : [verdict.message]),
      ...facts.map(({ name, text }) => `${name}: ${text}`),
    ],
    color: isReady ? 'green' : verdict.word === 'Stalled' ? 'red' : 'yellow',
  };
}

const PHASES = {
  ready: { name: 'Ready', color: undefined },
  progressing: { name: 'Progressing', color: 'yellow' },
  failing: { name: 'Failing', color: 'red' },
  stalled: { name: 'Stalled', color: 'red' },
} as const;

function childNode(child: ChildStatus, { namespace }: ResourceStatus, isWide: boolean): Node {
  const { pods, phase, kind, created } = child;
  const text = childText(child);
  const name = namespace === child.namespace ? `${kind} ${child.name}` : describeRef(child);
  const state = phase === 'ready' && text === 'is applied' ? 'Ready' : `${PHASES[phase].name}, ${text}`;
  return {
    ...{ name, created, state, details: [], nodes: summedUp(pods.map((pod) => podNode(pod, isWide))) },
    color: PHASES[phase].color,
    sharedState: isWide || pods.length > 0 ? undefined : state,
  };
}

function podNode(pod: PodStatus, isWide: boolean): Node {
  const { name, created, ready, message, node } = pod;
  const where = isWide && node !== undefined ? `, on ${node}` : '';
  return {
    ...{ name: `Pod ${name}`, created, state: podText(pod) + where, nodes: [] },
    details: message === undefined ? [] : [message],
    color: ready ? undefined : message === undefined ? 'yellow' : 'red',
    sharedState: isWide ? undefined : podState(pod),
  };
}

interface Row extends Node {
  /** The branches of the tree before the name, and below it. */
  readonly branch: string;
  readonly below: string;
}

function rowsOf(node: Node, branch = '', indent = ''): Row[] {
  const { nodes } = node;
  const below = nodes.length > 0 ? `${indent}│` : indent;
  return [
    { ...node, branch, below: below.padEnd(2) },
    ...nodes.flatMap((each, index) => {
      const isLast = index === nodes.length - 1;
      return rowsOf(each, `${indent}${isLast ? '└─ ' : '├─ '}`, `${indent}${isLast ? '   ' : '│  '}`);
    }),
  ];
}

function eventLines({ at, count, reason, regarding, note }: EventStatus, now: Date, width: number): string[] {
  const text = `${reason}${times(count)}: ${regarding.kind} ${regarding.name}`;
  const [head = '', ...rest] = wrap(text, width - 8, '  ');
  return [
    `${age(at, now).padStart(6)}  ${head}`,
    ...[...rest, ...wrap(note, width - 10).map((line) => `  ${line}`)].map((line) => `        ${line}`),
  ];
}

const AGE_WIDTH = 5;
/** Minimum width of the last column: `0/1 CrashLoopBackOff` fits. */
const STATE_WIDTH = 22;

/** Returns the width of the first column. A name that is longer fills a line alone. */
function nameWidth(rows: readonly Row[], width: number): number {
  const widths = rows.map(({ branch, name }) => branch.length + name.length);
  const fitting = widths.filter((each) => each <= width - AGE_WIDTH - STATE_WIDTH - 3);
  return fitting.reduce((widest, each) => Math.max(widest, each), 12);
}

function rowLines(row: Row, now: Date, first: number, width: number): string[] {
  const { branch, name, created, state, details, below } = row;
  const label = branch + name;
  const isShort = label.length <= first;
  const middle = `${age(created, now).padStart(AGE_WIDTH)}  `;
  const states = wrap(state, width - first - middle.length - 1).map((text, index) =>
    index === 0
      ? `${(isShort ? label : below).padEnd(first)} ${middle}${text}`
      : `${below.padEnd(first)} ${' '.repeat(middle.length)}${text}`,
  );
  const lines = details.flatMap((detail) => wrap(detail, width - below.length - 2, '  '));
  return [...(isShort ? [] : [label]), ...states, ...lines.map((text) => `${below}  ${text}`)];
}

/** Breaks a text at spaces; a word that is longer than a line stays whole. @param indent stands before the lines after the first */
function wrap(text: string, width: number, indent = ''): string[] {
  const [first = '', ...words] = text.trim().split(/\s+/);
  const lines: string[] = [];
  let line = first;
  for (const word of words) {
    const isFull = line.length + 1 + word.length > width;
    if (isFull) lines.push(line);
    line = isFull ? indent + word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** Returns how long ago a time is, as `45s`, `3m`, `2h` or `4d`; empty where it is unknown. */
export function age(time: string | undefined, now: Date): string {
  const seconds = Math.max(0, Math.round((now.getTime() - Date.parse(time ?? '')) / 1000));
  if (Number.isNaN(seconds)) return '';
  const units = Object.entries({ d: 86_400, h: 3_600, m: 60, s: 1 });
  const [unit, size] = units.find(([, each]) => seconds >= 2 * each) ?? ['s', 1];
  return `${Math.floor(seconds / size)}${unit}`;
}

/**
 * Line for a log, under a key that stays the same, or an empty text for what has none: two sets of lines compared show what
 * has changed.
 */
export type Line = readonly [key: string, text: string];

const RESOURCE = 'resource ';
const OBJECT = 'object ';
const EVENT = 'event ';

export function linesOf({ operators, notes, resources }: StatusDocument): Map<string, string> {
  return new Map([
    ...operatorLines(operators),
    ...notes.map((note): Line => [note, note]),
    ...resources.flatMap(resourceLines),
  ]);
}

function times(count: number): string {
  return count > 1 ? ` (${count} times)` : '';
}

/** Returns how often a count has doubled: what recurs is shown again for its second time, the fourth, the eighth. */
function doublings(count: number): number {
  return Math.floor(Math.log2(Math.max(count, 1)));
}

function resourceLines(resource: ResourceStatus): Line[] {
  const { facts, children, events, notes, uid } = resource;
  const name = describeRef(resource);
  const byTime = [...events].sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
  return [
    resourceLine(resource),
    ...facts.map(({ name: fact, text }): Line => [`fact ${uid} ${fact}`, `${name}: ${fact}: ${text}`]),
    ...children.flatMap((child) => [childLine(child), ...podLines(child)]),
    ...byTime.map(({ regarding, type, reason, note, count }): Line => {
      const subject = `${regarding.kind} ${regarding.name}`;
      const text = `Event of ${subject}: ${type} ${reason}${times(count)}: ${note}`;
      return [`${EVENT}${subject} ${reason} ${doublings(count)} ${note}`, text];
    }),
    ...notes.map((note): Line => [`note ${uid} ${note}`, `${name}: ${note}`]),
  ];
}

/** Returns a line for each operator. */
function operatorLines(operators: readonly OperatorStatus[] = []): Line[] {
  return operators.map(({ namespace, available, replicas, leader, restraints }) => {
    const state = `${available > 0 ? 'ready' : 'not ready'}, ${available} of ${replicas}`;
    const leads = leader === undefined ? '' : `, leader ${leader}`;
    const held = restraints ? `, with ${restraints.join(' ')}` : '';
    return [`operator ${namespace}`, `Operator in ${namespace}: ${state}${leads}${held}`];
  });
}

export function resourceLine(resource: ResourceStatus): Line {
  const text = `${describeRef(resource)}: ${verdictText(resource)}: ${resource.verdict.message}`;
  return [`${RESOURCE}${resource.uid}`, text];
}

export function childLine(child: ChildStatus): Line {
  const text = `${describeRef(child)}: ${PHASES[child.phase].name}: ${childText(child)}`;
  return [`${OBJECT}${child.uid}`, text];
}

/** Returns lines of a child's pods: of many in the same state the first, and their number where it has doubled. */
export function podLines(child: ChildStatus, pods = child.pods): Line[] {
  return alike(pods, podState).flatMap(({ shown, rest }): Line[] => {
    const lines = shown.map((pod): Line => {
      const why = pod.message === undefined ? '' : `: ${pod.message}`;
      return [OBJECT + pod.uid, `${describeRef(pod)}: ${podText(pod)}${why}`];
    });
    const [first] = rest;
    if (!first) return lines;
    const text = `${describeRef(child)}: ${rest.length.toLocaleString('en')} more Pod: ${podState(first)}`;
    const key = `${EVENT}pods of ${child.uid} ${podState(first)} ${doublings(rest.length)}`;
    const silent = rest.map((pod): Line => [OBJECT + pod.uid, '']);
    return [...lines, [key, text], ...silent];
  });
}

const GONE = 'is gone';

/** Returns a function that takes each document, and returns the lines that are new in it. */
export function lineNews(): (document: StatusDocument) => string[] {
  let known: ReadonlyMap<string, string> = new Map();
  return (document) => {
    const lines = linesOf(document);
    const isWhole = document.resources.every(({ unseen }) => unseen === undefined);
    // What a document no longer has may exist where a type can't be listed.
    const news = newLines(known, lines, isWhole ? GONE : 'is not seen any more');
    // An event may be out of sight for a while.
    known = new Map([...[...known].filter(([key]) => key.startsWith(EVENT)), ...lines]);
    return news;
  };
}

/**
 * Returns the lines that are new or changed, and one for each object that is gone.
 * @param gone reported of children and pods that are gone
 */
export function newLines(
  before: ReadonlyMap<string, string>,
  now: ReadonlyMap<string, string>,
  gone = GONE,
): string[] {
  const isNews = ([key, text]: Line): boolean =>
    text !== '' && (key.startsWith(EVENT) ? !before.has(key) : before.get(key) !== text);
  const changed = [...now].filter(isNews).map(([, text]) => text);
  const lost = [...before].flatMap(([key, text]) => {
    const isResource = key.startsWith(RESOURCE);
    if (text === '' || now.has(key) || !(isResource || key.startsWith(OBJECT))) return [];
    return [`${text.replace(/: .*$/s, '')}: ${isResource ? GONE : gone}`];
  });
  return [...changed, ...lost];
}

/** Returns a state such as `Ready Available`, or that of an earlier generation. */
function verdictText({ verdict }: Pick<ResourceStatus, 'verdict'>): string {
  const { word, reason, current } = verdict;
  if (reason === 'ByChildren') return `${word}, by its children`;
  const state = `${word} ${reason}`.trim();
  return current || word === 'Unknown' ? state : `${state}, of an earlier generation`;
}

/** Returns the message without the name, which stands before it. */
function childText(child: ChildStatus): string {
  const name = describeRef(child);
  const { message } = child;
  return message.startsWith(name) ? message.slice(name.length).replace(/^:? /, '') : message;
}

/** Returns a state such as `0/1 CrashLoopBackOff`. */
function podState({ readyContainers, containers, state }: PodStatus): string {
  return `${readyContainers}/${containers} ${state}`;
}

/** Returns a state such as `0/1 CrashLoopBackOff, 5 restarts`. */
function podText(pod: PodStatus): string {
  const { restarts } = pod;
  return `${podState(pod)}${restarts > 0 ? `, ${restarts} ${restarts === 1 ? 'restart' : 'restarts'}` : ''}`;
}

interface WatchProps {
  readonly isJson: boolean;
  /** Whether the nodes of pods are shown, too. @default false */
  readonly isWide?: boolean;
  /** Returns the present size of the terminal. @default - the output is no terminal */
  readonly size?: () => { readonly columns: number; readonly rows: number };
  readonly paint: Paint;
}

/** Moves the cursor to the first line, and clears all below. */
const HOME = '\u001b[H\u001b[J';

/**
 * Returns a function that renders what is new in each document: on a terminal the trees in place, elsewhere lines; as JSON, a
 * line for each document that differs.
 */
export function watchText({ isJson, isWide = false, size, paint }: WatchProps) {
  let last: string | undefined;
  const newsOf = lineNews();
  return (document: StatusDocument, now: Date): string => {
    const before = last;
    last = `${JSON.stringify(document)}\n`;
    if (isJson) return last === before ? '' : last;
    if (size)
      return HOME + fitted(textOf(document, { now, paint, width: size().columns, isWide }), size().rows);
    const news = newsOf(document);
    if (before === undefined) return textOf(document, { now, paint, isWide });
    return news.map((line) => `${rfc3339Seconds(now)} ${plain(line)}\n`).join('');
  };
}

/** Cuts what doesn't fit on the screen: scrolled, it couldn't be written over. */
function fitted(text: string, rows: number): string {
  const lines = text.trimEnd().split('\n');
  if (lines.length < rows) return text;
  const left = lines.length - rows + 1;
  return [...lines.slice(0, rows - 1), `... and ${left} more lines, for which the window is too low`].join(
    '\n',
  );
}
