import { rfc3339Seconds } from '../../contract/conditions.js';
import { describeRef } from '../../contract/object.js';
import type { Kind } from '../../contract/kind.js';
import { plain, plainAll } from '../output.js';
import type { Color, Paint } from '../output.js';
import type {
  ChildStatus,
  EventStatus,
  OperatorStatus,
  PodStatus,
  ResourceStatus,
  StatusDocument,
} from './model.js';

export interface TextProps {
  readonly now: Date;
  readonly paint: Paint;
  /** Characters in a line. @default 80 */
  readonly width?: number;
  /** Printed where there is no custom resource. @default - nothing */
  readonly none?: string;
}

/** Renders a document for people: a tree of each custom resource, then the operators and notes. */
export function textOf(document: StatusDocument, { now, paint, width = 80, none }: TextProps): string {
  const { operators, resources, notes } = plainAll(document);
  const trees = resources.map((resource) => rowsOf(resource, now));
  const first = nameWidth(trees.flat(), width);
  const parts = resources.map((resource, index) => [
    ...(trees[index] ?? []).flatMap((row) => {
      const lines = rowLines(row, first, width);
      return row.color === undefined ? lines : painted(row.color, lines);
    }),
    ...eventLines(resource.events, now, width, paint),
    ...resource.notes.flatMap((note) =>
      painted(
        'yellow',
        wrap(note, width - 2).map((line) => `  ${line}`),
      ),
    ),
  ]);
  const states = operatorLines(operators).flatMap(([, line]) => wrap(line, width));
  const all = [
    ...parts,
    ...(resources.length === 0 && none !== undefined ? [wrap(none, width)] : []),
    ...(states.length > 0 ? [states] : []),
    ...notes.map((note) => painted('yellow', wrap(note, width))),
  ];
  return all.map((lines) => `${lines.join('\n')}\n`).join('\n');

  function painted(color: Color, lines: readonly string[]): string[] {
    return lines.map((line) => paint(color, line));
  }
}

/**
 * Returns the sentence for a document without custom resources.
 * @param where the namespace; undefined for all
 */
export function noneOf(
  { notInstalled = [] }: Pick<StatusDocument, 'notInstalled'>,
  kinds: readonly Kind[],
  where: string | undefined,
): string {
  const joined = (names: readonly string[], last: 'and' | 'nor'): string =>
    [names.slice(0, -1).join(', '), ...names.slice(-1)].filter(Boolean).join(` ${last} `);
  const names = kinds.map(({ type }) => type.kind).filter((name) => !notInstalled.includes(name));
  const none = `There is no ${joined(names, 'nor')} ${where === undefined ? 'anywhere' : `in ${where}`}`;
  if (notInstalled.length === 0) return none;
  return `${none}; ${joined(notInstalled, 'and')} ${notInstalled.length === 1 ? "isn't" : "aren't"} installed`;
}

/** A row of three columns, name, age and state, with details below it. */
interface Row {
  /** The branches of the tree before the name. */
  readonly branch: string;
  readonly name: string;
  readonly age: string;
  readonly state: string;
  /** Sentences below. @default - none */
  readonly details?: readonly string[];
  /** Before the details: the tree continues there. */
  readonly below: string;
  /** @default - none */
  readonly color?: Color | undefined;
}

function rowsOf(resource: ResourceStatus, now: Date): Row[] {
  const { verdict, facts, children, created } = resource;
  const since = age(verdict.since, now);
  const isReady = verdict.word === 'Ready' && verdict.current;
  const row: Row = {
    ...{ branch: '', name: describeRef(resource), age: age(created, now) },
    state: `${verdictText(resource)}${since && `, for ${since}`}`,
    details: [
      ...(isReady && !verdict.byChildren ? [] : [verdict.message]),
      ...facts.map(({ name, text }) => `${name}: ${text}`),
    ],
    below: children.length > 0 ? '│ ' : '  ',
    color: isReady ? 'green' : verdict.word === 'Stalled' ? 'red' : 'yellow',
  };
  return [row, ...children.flatMap((child, index) => childRows(child, index === children.length - 1, now))];
}

const PHASES = {
  ready: { name: 'Ready', color: undefined },
  progressing: { name: 'Progressing', color: 'yellow' },
  failing: { name: 'Failing', color: 'red' },
  stalled: { name: 'Stalled', color: 'red' },
} as const;

function childRows(child: ChildStatus, isLast: boolean, now: Date): Row[] {
  const { pods, phase, kind, name, created } = child;
  const below = isLast ? '   ' : '│  ';
  const text = childText(child);
  const row: Row = {
    ...{ branch: isLast ? '└─ ' : '├─ ', name: `${kind} ${name}`, age: age(created, now) },
    state: phase === 'ready' && text === 'is applied' ? 'Ready' : `${PHASES[phase].name}, ${text}`,
    below: pods.length > 0 ? `${below}│` : below,
    color: PHASES[phase].color,
  };
  const podRow = ({ message, ...pod }: PodStatus, index: number): Row => ({
    branch: `${below}${index === pods.length - 1 ? '└─ ' : '├─ '}`,
    ...{ name: `Pod ${pod.name}`, age: age(pod.created, now), state: podText(pod) },
    ...(message !== undefined && { details: [message] }),
    below: `${below}${index === pods.length - 1 ? '   ' : '│  '}`,
    color: pod.ready ? undefined : message === undefined ? 'yellow' : 'red',
  });
  return [row, ...pods.map(podRow)];
}

function eventLines(events: readonly EventStatus[], now: Date, width: number, paint: Paint): string[] {
  if (events.length === 0) return [];
  const lines = events.flatMap(({ at, count, type, reason, regarding, note }) => {
    const often = count > 1 ? ` (${count} times)` : '';
    const head = `${age(at, now).padStart(6)}  ${reason}${often}: ${regarding.kind} ${regarding.name}`;
    const all = [head, ...wrap(note, width - 10).map((line) => `          ${line}`)];
    return type === 'Warning' ? all.map((line) => paint('yellow', line)) : all;
  });
  return [paint('dim', '  Events'), ...lines];
}

const AGE_WIDTH = 5;
/** Left to the last column at least: `0/1 CrashLoopBackOff` fits. */
const STATE_WIDTH = 22;

/** Returns the width of the first column. A name that is longer fills a line alone. */
function nameWidth(rows: readonly Row[], width: number): number {
  const widest = width - AGE_WIDTH - STATE_WIDTH - 3;
  const widths = rows.map(({ branch, name }) => branch.length + name.length);
  return Math.max(...widths.filter((each) => each <= widest), 12);
}

function rowLines(row: Row, first: number, width: number): string[] {
  const { branch, name, age, state, details = [], below } = row;
  const label = branch + name;
  const middle = `${age.padStart(AGE_WIDTH)}  `;
  const isShort = label.length <= first;
  const states = wrap(state, width - first - middle.length - 1).map((text, index) =>
    index === 0
      ? `${(isShort ? label : below).padEnd(first)} ${middle}${text}`
      : `${below.padEnd(first)} ${' '.repeat(middle.length)}${text}`,
  );
  const lines = details.flatMap((detail) => wrap(detail, width - below.length - 2));
  return [...(isShort ? [] : [label]), ...states, ...lines.map((text) => `${below}  ${text}`)];
}

/** Breaks a text at spaces; a word that is longer than a line stays whole. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
] as const;

/** Returns how long ago a time is, as `45s`, `3m`, `2h` or `4d`; empty where it is unknown. */
export function age(time: string | undefined, now: Date): string {
  const seconds = Math.max(0, Math.round((now.getTime() - Date.parse(time ?? '')) / 1000));
  if (Number.isNaN(seconds)) return '';
  for (const [unit, size] of UNITS) if (seconds >= 2 * size) return `${Math.floor(seconds / size)}${unit}`;
  return `${seconds}s`;
}

/** A line for a log, under a key that stays the same: two sets of lines compared show what has changed. */
export type Line = readonly [key: string, text: string];

const RESOURCE = 'resource ';
const OBJECT = 'object ';
const EVENT = 'event ';

/** Returns a document as lines, which don't depend on the time of day. */
export function linesOf({ operators, notes, resources }: StatusDocument): Map<string, string> {
  return new Map([
    ...operatorLines(operators),
    ...notes.map((note): Line => [note, note]),
    ...resources.flatMap(resourceLines),
  ]);
}

function resourceLines(resource: ResourceStatus): Line[] {
  const { facts, children, events, notes, uid } = resource;
  const name = describeRef(resource);
  const byTime = [...events].sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
  return [
    resourceLine(resource),
    ...facts.map(({ name: fact, text }): Line => [`fact ${uid} ${fact}`, `${name}: ${fact}: ${text}`]),
    ...children.flatMap((child) => [childLine(child), ...child.pods.map(podLine)]),
    ...byTime.map(({ regarding, type, reason, note, at }): Line => {
      const subject = `${regarding.kind} ${regarding.name}`;
      // By its time, one that came again is new.
      const key = `${EVENT}${subject} ${reason} ${note} ${at}`;
      return [key, `Event of ${subject}: ${type} ${reason}: ${note}`];
    }),
    ...notes.map((note): Line => [`note ${uid} ${note}`, `${name}: ${note}`]),
  ];
}

/** Returns a line for each operator, or one that there is none; nothing where operators may not be read. */
function operatorLines(operators: readonly OperatorStatus[] | undefined): Line[] {
  if (operators?.length === 0) return [['operator', 'Operator: not installed']];
  return (operators ?? []).map(({ namespace, available, replicas, leader }) => {
    const state = `${available > 0 ? 'ready' : 'not ready'}, ${available} of ${replicas}`;
    const leads = leader === undefined ? '' : `, leader ${leader}`;
    return [`operator ${namespace}`, `Operator in ${namespace}: ${state}${leads}`];
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

export function podLine(pod: PodStatus): Line {
  const why = pod.message === undefined ? '' : `: ${pod.message}`;
  return [`${OBJECT}${pod.uid}`, `${describeRef(pod)}: ${podText(pod)}${why}`];
}

/** Reports whether a key is of the line of an event. */
export function isEvent(key: string): boolean {
  return key.startsWith(EVENT);
}

const GONE = 'is gone';

/** Returns what is reported of an object that a document no longer has: it may exist where a type can't be listed. */
export function goneText({ resources }: StatusDocument): string {
  const isWhole = resources.every(
    ({ notServed = [], unseen = [] }) => notServed.length + unseen.length === 0,
  );
  return isWhole ? GONE : 'is not seen any more';
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
  const changed = [...now].filter(([key, text]) => before.get(key) !== text).map(([, text]) => text);
  const lost = [...before].flatMap(([key, text]) => {
    const isResource = key.startsWith(RESOURCE);
    if (now.has(key) || !(isResource || key.startsWith(OBJECT))) return [];
    return [`${text.replace(/: .*$/s, '')}: ${isResource ? GONE : gone}`];
  });
  return [...changed, ...lost];
}

/** As in `Ready Available`, or the state of an earlier generation. */
function verdictText({ verdict }: Pick<ResourceStatus, 'verdict'>): string {
  const { word, reason, current, byChildren = false } = verdict;
  if (byChildren) return `${word}, by its children`;
  const state = `${word} ${reason}`.trim();
  return current || word === 'Unknown' ? state : `${state}, of an earlier generation`;
}

/** Returns the message without the name, which stands before it. */
function childText(child: ChildStatus): string {
  const name = describeRef(child);
  const { message } = child;
  return message.startsWith(name) ? message.slice(name.length).replace(/^:? /, '') : message;
}

/** As in `0/1 CrashLoopBackOff, 5 restarts`. */
function podText({ readyContainers, containers, state, restarts }: Omit<PodStatus, 'message'>): string {
  const again = restarts === 0 ? '' : `, ${restarts} ${restarts === 1 ? 'restart' : 'restarts'}`;
  return `${readyContainers}/${containers} ${state}${again}`;
}

/** Moves the cursor to the first line, and clears all below. */
const HOME = '\u001b[H\u001b[J';

/**
 * Returns a function that renders what is new in each document: on a terminal the trees in place, elsewhere lines, as JSON a
 * line for each document that differs.
 */
export function watchText({
  isJson,
  isTTY,
  width,
  paint,
}: {
  readonly isJson: boolean;
  readonly isTTY: boolean;
  readonly width: number;
  readonly paint: Paint;
}): (document: StatusDocument, now: Date) => string {
  let last: { readonly json: string; readonly lines: ReadonlyMap<string, string> } | undefined;
  return (document, now) => {
    const before = last;
    last = { json: `${JSON.stringify(document)}\n`, lines: linesOf(document) };
    if (isJson) return last.json === before?.json ? '' : last.json;
    if (isTTY) return HOME + textOf(document, { now, paint, width });
    if (!before) return textOf(document, { now, paint });
    return newLines(before.lines, last.lines, goneText(document))
      .map((line) => `${rfc3339Seconds(now)} ${plain(line)}\n`)
      .join('');
  };
}
