import { describeRef } from '../../contract/object.js';
import type { Color, Paint } from '../paint.js';
import { plainAll } from '../plain.js';
import type {
  ChildStatus,
  EventStatus,
  Fact,
  PodStatus,
  ResourceStatus,
  StatusDocument,
} from './document.js';
import { age, nameWidth, rowLines, wrap } from './layout.js';
import type { Row } from './layout.js';
import { childText, operatorSentences, PHASES, podText, verdictText } from './sentences.js';

export interface TextProps {
  readonly now: Date;
  readonly paint: Paint;
  /** Of a line, in characters. @default 80 */
  readonly width?: number;
  /** What is said where there is no custom resource. @default - nothing */
  readonly none?: string;
}

interface Painted extends Row {
  readonly color: Color | undefined;
}

/** For people: a tree of each custom resource, and what is wrong with the whole. */
export function textOf(document: StatusDocument, { now, paint, width = 80, none }: TextProps): string {
  const { operators, resources, notes } = plainAll(document);
  const trees = resources.map((resource) => rowsOf(resource, now));
  const first = nameWidth(trees.flat(), width);
  const parts = resources.map((resource, index) =>
    [
      ...(trees[index] ?? []).flatMap((row) => painted(row, first, width, paint)),
      ...eventLines(resource.events, now, width, paint),
      ...resource.notes.flatMap((note) => wrap(note, width - 2).map((line) => paint('yellow', `  ${line}`))),
    ].join('\n'),
  );
  const told = notes.map((note) =>
    wrap(note, width)
      .map((line) => paint('yellow', line))
      .join('\n'),
  );
  const states = operatorSentences(operators).map(([, sentence]) => wrap(sentence, width).join('\n'));
  const nothing = resources.length === 0 && none !== undefined ? [wrap(none, width).join('\n')] : [];
  const operator = states.length > 0 ? [states.join('\n')] : [];
  return [...parts, ...nothing, ...operator, ...told].map((part) => `${part}\n`).join('\n');
}

function painted(row: Painted, first: number, width: number, paint: Paint): string[] {
  const { color } = row;
  const lines = rowLines(row, first, width);
  return color === undefined ? lines : lines.map((line) => paint(color, line));
}

function rowsOf(resource: ResourceStatus, now: Date): Painted[] {
  const { verdict, facts, children, created } = resource;
  const since = age(verdict.since, now);
  const isReady = verdict.word === 'Ready' && verdict.current;
  const below = children.length > 0 ? '│ ' : '  ';
  const row: Painted = {
    ...{ branch: '', name: describeRef(resource), age: age(created, now), below },
    state: `${verdictText(resource)}${since && `, for ${since}`}`,
    details: [...(isReady && !verdict.byChildren ? [] : [verdict.message]), ...facts.map(factText)],
    color: isReady ? 'green' : verdict.word === 'Stalled' ? 'red' : 'yellow',
  };
  return [row, ...children.flatMap((child, index) => childRows(child, index === children.length - 1, now))];
}

function factText({ name, text }: Fact): string {
  return `${name}: ${text}`;
}

const COLORS = { ready: undefined, progressing: 'yellow', failing: 'red', stalled: 'red' } as const;

function childRows(child: ChildStatus, isLast: boolean, now: Date): Painted[] {
  const { pods, phase, kind, name, created } = child;
  const below = isLast ? '   ' : '│  ';
  const text = childText(child);
  const isPlain = phase === 'ready' && text === 'is applied';
  const row: Painted = {
    ...{ branch: isLast ? '└─ ' : '├─ ', name: `${kind} ${name}`, age: age(created, now) },
    state: isPlain ? PHASES[phase] : `${PHASES[phase]}, ${text}`,
    below: pods.length > 0 ? `${below}│` : below,
    color: COLORS[phase],
  };
  return [row, ...pods.map((pod, index) => podRow(pod, below, index === pods.length - 1, now))];
}

function podRow(pod: PodStatus, above: string, isLast: boolean, now: Date): Painted {
  const { name, created, ready, message } = pod;
  return {
    ...{ branch: `${above}${isLast ? '└─ ' : '├─ '}`, name: `Pod ${name}`, age: age(created, now) },
    ...{ state: podText(pod), below: `${above}${isLast ? '   ' : '│  '}` },
    ...(message !== undefined && { details: [message] }),
    color: ready ? undefined : message === undefined ? 'yellow' : 'red',
  };
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
