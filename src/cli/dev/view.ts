import { dirname } from 'node:path';
import { rfc3339Seconds } from '../../author/status.js';
import { plain } from '../output.js';
import type { Color, Paint } from '../output.js';
import type { EventStatus, ResourceStatus, StatusDocument } from '../tree/model.js';
import { lineNews, textOf } from '../tree/text.js';
import type { ControlPlane, Sample } from './stand.js';

export type Tone = 'news' | 'warning' | 'error';

export interface Trouble {
  /** Sentence such as `The configuration can't be loaded; the controller continues with what was loaded at 12:30:01`. */
  readonly title: string;
  readonly lines: readonly string[];
}

interface Board {
  /** State of the controller, as in `the controller runs what was loaded at 12:30:01`. */
  readonly controller: string;
  readonly troubles: readonly Trouble[];
  readonly hints: readonly string[];
  readonly document?: StatusDocument;
}

/** Shows an author what happens: on a terminal news above a board that stays in place, else a line with its time for all news. */
export interface View {
  readonly report: (text: string, tone?: Tone) => void;
  readonly show: (part: Partial<Board>) => void;
  readonly close: () => void;
}

const START: Board = { controller: 'starting', troubles: [], hints: [] };

interface TerminalProps {
  readonly now: () => Date;
  readonly write: (text: string) => void;
  readonly paint: Paint;
  readonly columns: () => number;
}

/** @param live draws the board: the part of log-update that is used */
export function terminalView(
  live: { (text: string): void; clear(): void; done(): void },
  { now, write, paint, columns }: TerminalProps,
): View & { readonly redraw: () => void } {
  let board = START;
  let isClosed = false;
  const redraw = (): void => {
    if (!isClosed) live(boardText(board, now(), paint, Math.max(columns(), 60)));
  };
  const report: View['report'] = (text, tone = 'news') => {
    if (isClosed) return;
    const line = `${now().toTimeString().slice(0, 8)} ${plain(text)}`;
    live.clear();
    write(`${tone === 'news' ? line : paint(tone === 'error' ? 'red' : 'yellow', line)}\n`);
    redraw();
  };
  return {
    ...{ report, redraw },
    show: (part) => {
      board = { ...board, ...part };
      redraw();
    },
    close: () => {
      if (isClosed) return;
      isClosed = true;
      live.clear();
      live.done();
    },
  };
}

/** Reports whether an event is of what has been corrected since: events stay in the cluster for an hour. */
function isResolved(event: EventStatus, { kind, name, verdict }: ResourceStatus): boolean {
  const { at, reason, regarding } = event;
  const isOwn = regarding.kind === kind && regarding.name === name;
  if (verdict.word !== 'Ready') return isOwn && reason !== verdict.reason;
  return verdict.since !== undefined && Date.parse(at) <= Date.parse(verdict.since);
}

/** The end is always visible: a terminal that is too low cuts the trees. */
function boardText({ document, troubles, controller, hints }: Board, now: Date, paint: Paint, width: number) {
  const painted = (color: Color, line: string): string => paint(color, plain(line));
  const none = 'There is no custom resource: write one into sample.yaml, or apply one';
  // Events that aren't warnings would fill the screen with what the tree shows.
  const resources = document?.resources.map((resource) => ({
    ...resource,
    events: resource.events.filter((event) => event.type !== 'Normal' && !isResolved(event, resource)),
  }));
  return [
    ...(document && resources
      ? [textOf({ ...document, resources }, { now, paint, none, width }).trimEnd()]
      : []),
    ...troubles.map(({ title, lines }) =>
      [painted('red', title), ...lines.map((line) => `  ${plain(line)}`)].join('\n'),
    ),
    [painted('bold', `reconstruct dev: ${controller}`), ...hints.map((line) => painted('dim', line))].join(
      '\n',
    ),
  ].join('\n\n');
}

export function lineView(now: () => Date, write: (text: string) => void): View {
  let board = START;
  const newsOf = lineNews();
  const report = (text: string): void => {
    for (const line of text.split('\n')) write(`${rfc3339Seconds(now())} ${plain(line)}\n`);
  };
  const linesOfTrouble = ({ title, lines }: Trouble): string =>
    [title, ...lines.map((line) => `  ${line}`)].join('\n');
  return {
    report,
    show: (part) => {
      const before = board;
      board = { ...board, ...part };
      const { controller, hints, troubles, document } = board;
      if (controller !== before.controller) report(controller);
      if (hints.join() !== before.hints.join()) hints.forEach(report);
      const reported = before.troubles.map(linesOfTrouble);
      for (const text of troubles.map(linesOfTrouble)) if (!reported.includes(text)) report(text);
      for (const { title } of before.troubles)
        if (!troubles.some((trouble) => trouble.title === title)) report(`No longer so: ${title}`);
      if (document && document !== before.document) newsOf(document).forEach(report);
    },
    close: () => undefined,
  };
}

/** Lines on how to reach a cluster from another terminal. @param sample one of it, as an example */
export function usage({ adminKubeconfig, kubectlPath }: ControlPlane, sample?: Sample): string[] {
  const { namespace = 'default', name = '' } = sample?.object.metadata ?? {};
  const options = namespace === 'default' ? '' : ` -n ${namespace}`;
  return [
    'Ctrl-C ends it, and leaves nothing behind. In another terminal:',
    `  export KUBECONFIG=${adminKubeconfig}`,
    // A kubectl of the user comes first.
    `  export PATH=$PATH:${dirname(kubectlPath)}`,
    ...(sample ? [`  kubectl edit ${sample.type.kind.toLowerCase()}/${name}${options}`] : []),
  ];
}
