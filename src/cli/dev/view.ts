import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { rfc3339Seconds } from '../../contract/conditions.js';
import type { Clock } from '../../engine/clock.js';
import type { Color, Paint } from '../output.js';
import { plain } from '../output.js';
import type { StatusDocument } from '../tree/model.js';
import { goneText, isEvent, linesOf, newLines, textOf } from '../tree/text.js';
import type { Change } from './follower.js';
import type { Sample } from './load.js';
import type { ControlPlane } from './stand.js';

export type Tone = 'news' | 'warning' | 'error';

/** A reason why the cluster isn't as the files say. */
export interface Trouble {
  /** As in `The configuration can't be loaded; the controller continues with what was loaded at 12:30:01`. */
  readonly title: string;
  /** With file and line, as far as known. */
  readonly lines: readonly string[];
}

/** Shows an author what happens: on a terminal news above a board that stays in place, else a line with its time for all news. */
export interface View {
  readonly report: (text: string, tone?: Tone) => void;
  /** Shows the state of the controller, as in `the controller runs what was loaded at 12:30:01`. */
  readonly controller: (text: string) => void;
  /** Shows everything that is wrong now. */
  readonly troubles: (all: readonly Trouble[]) => void;
  readonly changes: (changes: readonly Change[]) => void;
  readonly document: (document: StatusDocument) => void;
  /** Shows how to reach the cluster from another terminal. */
  readonly hints: (lines: readonly string[]) => void;
  readonly close: () => void;
}

/** The part of log-update that is used. */
interface Live {
  (text: string): void;
  clear(): void;
  done(): void;
}

const COLORS: Readonly<Record<Tone, Color | undefined>> = {
  ...{ news: undefined, warning: 'yellow', error: 'red' },
};

interface Board {
  controller: string;
  troubles: readonly Trouble[];
  hints: readonly string[];
  document: StatusDocument | undefined;
}

/** @param live draws the board; @param columns of the terminal */
export function terminalView(
  live: Live,
  {
    clock,
    write,
    paint,
    columns,
  }: {
    readonly clock: Pick<Clock, 'now'>;
    readonly write: (text: string) => void;
    readonly paint: Paint;
    readonly columns: () => number;
  },
): View & { readonly redraw: () => void } {
  const board: Board = { controller: 'starting', troubles: [], hints: [], document: undefined };
  let isClosed = false;

  /** The end of the board is always visible: a terminal that is too low cuts the trees. */
  const redraw = (): void => {
    if (isClosed) return;
    const now = new Date(clock.now());
    const none = 'There is no custom resource: write one into sample.yaml, or apply one';
    // Events that aren't warnings would fill the screen with what the tree shows.
    const { controller, troubles, hints, document } = board;
    const resources = document?.resources.map(({ events, ...resource }) => ({
      ...resource,
      events: events.filter(({ type }) => type !== 'Normal'),
    }));
    const trees = resources && { ...document, notes: document?.notes ?? [], resources };
    const parts = [
      ...(trees ? [textOf(trees, { now, paint, none, width: Math.max(columns(), 60) }).trimEnd()] : []),
      ...troubles.map(({ title, lines }) =>
        [paint('red', plain(title)), ...lines.map((line) => `  ${plain(line)}`)].join('\n'),
      ),
      [
        paint('bold', plain(`reconstruct dev: ${controller}`)),
        ...hints.map((line) => paint('dim', plain(line))),
      ].join('\n'),
    ];
    live(parts.join('\n\n'));
  };
  const report: View['report'] = (text, tone = 'news') => {
    if (isClosed) return;
    const color = COLORS[tone];
    const line = `${new Date(clock.now()).toTimeString().slice(0, 8)} ${plain(text)}`;
    live.clear();
    write(`${color === undefined ? line : paint(color, line)}\n`);
    redraw();
  };
  const put =
    <K extends keyof Board>(part: K) =>
    (value: Board[K]): void => {
      board[part] = value;
      redraw();
    };
  return {
    ...{ report, redraw, controller: put('controller'), troubles: put('troubles'), hints: put('hints') },
    document: put('document'),
    changes: (changes) => {
      for (const { text } of changes) report(text);
    },
    close: () => {
      if (isClosed) return;
      isClosed = true;
      live.clear();
      live.done();
    },
  };
}

/** For logs and pipes. */
export function lineView(clock: Pick<Clock, 'now'>, write: (text: string) => void): View {
  /** Those of the last document, and all events before: one may be out of sight for a while. */
  let known: ReadonlyMap<string, string> = new Map();
  /** All messages of statuses: the events that repeat them are left out. */
  const messages = new Set<string>();
  let troubles: readonly Trouble[] = [];
  let controller = '';
  let hints: readonly string[] = [];

  const report = (text: string): void => {
    const time = rfc3339Seconds(new Date(clock.now()));
    for (const line of text.split('\n')) write(`${time} ${plain(line)}\n`);
  };
  const textOfTrouble = ({ title, lines }: Trouble): string =>
    [title, ...lines.map((line) => `  ${line}`)].join('\n');
  return {
    report,
    controller: (text) => {
      if (text !== controller) report(text);
      controller = text;
    },
    troubles: (all) => {
      const before = new Set(troubles.map(textOfTrouble));
      for (const text of all.map(textOfTrouble)) if (!before.has(text)) report(text);
      const titles = new Set(all.map(({ title }) => title));
      for (const { title } of troubles) if (!titles.has(title)) report(`No longer so: ${title}`);
      troubles = all;
    },
    changes: (changes) => {
      // The document says what is gone.
      for (const { isGone, text } of changes) if (!isGone) report(text);
    },
    document: (document) => {
      for (const { uid, verdict } of document.resources) messages.add(`${uid} ${verdict.message}`);
      const resources = document.resources.map(({ events, ...resource }) => ({
        ...resource,
        events: events.filter(({ note }) => !messages.has(`${resource.uid} ${note}`)),
      }));
      const now = linesOf({ ...document, resources });
      for (const line of newLines(known, now, goneText(document))) report(line);
      known = new Map([...[...known].filter(([key]) => isEvent(key)), ...now]);
    },
    hints: (lines) => {
      if (lines.join() !== hints.join()) for (const line of lines) report(line);
      hints = lines;
    },
    close: () => undefined,
  };
}

/** Lines on how to reach a cluster from another terminal. @param sample one of it, as an example */
export function usage({ adminKubeconfig, kubectlPath }: ControlPlane, sample?: Sample): string[] {
  const kubectl = isOnPath('kubectl') ? 'kubectl' : kubectlPath;
  const { namespace = 'default', name = '' } = sample?.object.metadata ?? {};
  const options = namespace === 'default' ? '' : ` -n ${namespace}`;
  return [
    'Ctrl-C ends it, and leaves nothing behind. In another terminal:',
    `  export KUBECONFIG=${adminKubeconfig}`,
    ...(sample ? [`  ${kubectl} edit ${sample.type.kind.toLowerCase()}/${name}${options}`] : []),
  ];
}

export function isOnPath(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
