import type { Clock, Timer } from '../../engine/clock.js';
import type { Color, Paint } from '../paint.js';
import { plain } from '../plain.js';
import type { StatusDocument } from '../status/document.js';
import { age, wrap } from '../status/layout.js';
import { textOf } from '../status/text.js';
import type { Change } from './changes.js';
import type { Screen } from './screen.js';
import { hintLines } from './view.js';
import type { Hints, Tone, Trouble, View } from './view.js';

/** What follows each other so closely is one change to the eye. */
const TOGETHER_MILLISECONDS = 1_000;
const REMEMBERED = 50;

export interface LiveViewProps {
  readonly clock: Clock;
  readonly screen: Screen;
  readonly paint: Paint;
}

/** For a terminal: everything at once, drawn anew where something has changed. */
export class LiveView implements View {
  private board: Board = { controller: 'starting', troubles: [], changes: { at: 0, all: [] }, told: [] };
  private timer: Timer | undefined;
  private isClosed = false;

  constructor(private readonly props: LiveViewProps) {}

  told(text: string, tone: Tone = 'news'): void {
    const at = this.props.clock.now();
    const told = [...this.board.told, { at, text, tone }].slice(-REMEMBERED);
    this.put({ told });
  }

  controller(text: string): void {
    this.put({ controller: text });
  }

  troubles(all: readonly Trouble[]): void {
    this.put({ troubles: all });
  }

  changed(changes: readonly Change[]): void {
    if (changes.length === 0) return;
    const at = this.props.clock.now();
    const { changes: last } = this.board;
    const before = at - last.at <= TOGETHER_MILLISECONDS ? last.all : [];
    this.put({ changes: { at, all: [...before, ...changes] } });
  }

  document(document: StatusDocument): void {
    this.put({ document });
  }

  hints(hints: Hints): void {
    this.put({ hints });
  }

  /** The terminal has another size, or shows something else. */
  redraw(): void {
    this.props.screen.forget();
    this.put({});
  }

  close(): void {
    this.isClosed = true;
    this.timer?.cancel();
    this.props.screen.close();
  }

  /** Several in a moment are drawn once. */
  private put(part: Partial<Board>): void {
    this.board = { ...this.board, ...part };
    this.timer ??= this.props.clock.setTimer(20, () => {
      this.timer = undefined;
      this.draw();
    });
  }

  private draw(): void {
    if (this.isClosed) return;
    const { screen, clock, paint } = this.props;
    screen.draw(frameOf(this.board, { now: new Date(clock.now()), width: screen.width, paint }));
  }
}

/** Something that was told, and when; milliseconds since the epoch. */
interface Told {
  readonly at: number;
  readonly text: string;
  readonly tone: Tone;
}

/** All that is on the screen. */
export interface Board {
  readonly controller: string;
  /** @default - there is no cluster yet */
  readonly hints?: Hints;
  readonly troubles: readonly Trouble[];
  /** @default - nothing has been looked at yet */
  readonly document?: StatusDocument;
  /** The last ones that happened together, and when. */
  readonly changes: { readonly at: number; readonly all: readonly Change[] };
  readonly told: readonly Told[];
}

interface FrameProps {
  readonly now: Date;
  /** Of the terminal, in characters. */
  readonly width: number;
  readonly paint: Paint;
}

/** More of them are only counted. */
const MOST_CHANGES = 12;
const MOST_TOLD = 6;
const NEWS_MILLISECONDS = 30_000;

/**
 * The lines of the screen, from the top: what is wrong, what changed last, what was told last, and the trees, of which the
 * end may have no room.
 */
export function frameOf(board: Board, props: FrameProps): string[] {
  const { controller, hints, troubles, document, changes, told } = board;
  const { now, width, paint } = props;
  const said: Said = (color, text, indent = '') =>
    wrap(plain(text), Math.max(width - indent.length, 20)).map((line) =>
      color === undefined ? indent + line : paint(color, indent + line),
    );
  const parts: string[][] = [
    [
      ...said('bold', `reconstruct dev: ${controller}`),
      ...(hints ? hintLines(hints).flatMap((line) => pieces(plain(line), width)) : []).map((line) =>
        paint('dim', line),
      ),
    ],
    ...troubles.map(({ title, lines }) => [
      ...said('red', title),
      ...lines.flatMap((line) => said(undefined, line, '  ')),
    ]),
    changeLines(changes, now, said),
    toldLines(told, now, said),
    ...(document ? [treeLines(document, props)] : []),
  ];
  return parts
    .filter((part) => part.length > 0)
    .flatMap((part, index) => (index === 0 ? part : ['', ...part]));
}

/** Whole, to be copied: broken anywhere. */
function pieces(line: string, width: number): string[] {
  const count = Math.max(1, Math.ceil(line.length / width));
  return Array.from({ length: count }, (_, index) => line.slice(index * width, (index + 1) * width));
}

type Said = (color: Color | undefined, text: string, indent?: string) => string[];

const COLORS: Readonly<Record<Tone, Color | undefined>> = {
  ...{ news: undefined, warning: 'yellow', error: 'red' },
};

/** News are soon none; what is wrong stays until something else is. */
function toldLines(told: readonly Told[], now: Date, said: Said): string[] {
  return told
    .filter(({ at, tone }) => tone !== 'news' || now.getTime() - at < NEWS_MILLISECONDS)
    .slice(-MOST_TOLD)
    .flatMap(({ at, text, tone }) => said(COLORS[tone], `${since(at, now)} ago: ${text}`));
}

/** Events that warn of nothing would fill the screen: they say what the tree shows. */
function treeLines({ resources, ...document }: StatusDocument, { now, width, paint }: FrameProps): string[] {
  const none = 'There is no custom resource: write one into sample.yaml, or apply one';
  const quiet = resources.map(({ events, ...resource }) => ({
    ...resource,
    events: events.filter(({ type }) => type !== 'Normal'),
  }));
  return textOf({ ...document, resources: quiet }, { now, paint, none, width: Math.max(width, 60) })
    .trimEnd()
    .split('\n');
}

function changeLines({ at, all }: Board['changes'], now: Date, said: Said): string[] {
  if (all.length === 0) return [];
  const rest = all.length - MOST_CHANGES;
  return [
    ...said('bold', `Changed last, ${since(at, now)} ago`),
    ...all.slice(0, MOST_CHANGES).flatMap(({ text }) => said(undefined, text, '  ')),
    ...(rest > 0 ? said('dim', `... and ${rest} more`, '  ') : []),
  ];
}

function since(at: number, now: Date): string {
  return age(new Date(at).toISOString(), now);
}
