import type { Clock, Timer } from '../../engine/clock.js';
import type { Paint } from '../paint.js';
import type { StatusDocument } from '../status/document.js';
import type { Change } from './changes.js';
import { frameOf } from './frame.js';
import type { Board } from './frame.js';
import type { Screen } from './screen.js';
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
