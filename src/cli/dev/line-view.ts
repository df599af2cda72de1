import { rfc3339Seconds } from '../../contract/conditions.js';
import type { Clock } from '../../engine/clock.js';
import { plain } from '../plain.js';
import type { ResourceStatus, StatusDocument } from '../status/document.js';
import { goneText, isEvent, newsIn, sentencesOf } from '../status/sentences.js';
import type { Change } from './changes.js';
import { hintLines } from './view.js';
import type { Hints, Trouble, View } from './view.js';

export interface LineViewProps {
  readonly clock: Pick<Clock, 'now'>;
  readonly write: (text: string) => void;
}

/** For logs and pipes: a line with its time for each thing that is new. */
export class LineView implements View {
  /** Those of the last document, and all events before. */
  private sentences: ReadonlyMap<string, string> = new Map();
  /** All that statuses have said. */
  private readonly messages = new Set<string>();
  private known: readonly Trouble[] = [];
  private last = '';
  private hinted = '';

  constructor(private readonly props: LineViewProps) {}

  told(text: string): void {
    const time = rfc3339Seconds(new Date(this.props.clock.now()));
    for (const line of text.split('\n')) this.props.write(`${time} ${plain(line)}\n`);
  }

  controller(text: string): void {
    if (text !== this.last) this.told(text);
    this.last = text;
  }

  troubles(all: readonly Trouble[]): void {
    const before = new Set(this.known.map(textOf));
    for (const trouble of all) if (!before.has(textOf(trouble))) this.told(textOf(trouble));
    const titles = new Set(all.map(({ title }) => title));
    for (const { title } of this.known) if (!titles.has(title)) this.told(`No longer so: ${title}`);
    this.known = all;
  }

  /** What has gone is told by the document. */
  changed(changes: readonly Change[]): void {
    for (const { what, text } of changes) if (what !== 'gone') this.told(text);
  }

  document(document: StatusDocument): void {
    for (const { uid, verdict } of document.resources) this.messages.add(messageId(uid, verdict.message));
    const resources = document.resources.map((resource) => this.withoutEchoes(resource));
    const sentences = sentencesOf({ ...document, resources });
    for (const line of newsIn(this.sentences, sentences, goneText(document))) this.told(line);
    // One may be out of sight for a while.
    const events = [...this.sentences].filter(([key]) => isEvent(key));
    this.sentences = new Map([...events, ...sentences]);
  }

  hints(hints: Hints): void {
    const lines = hintLines(hints);
    if (lines.join() !== this.hinted) for (const line of lines) this.told(line);
    this.hinted = lines.join();
  }

  close(): void {
    // Nothing has been changed of the terminal.
  }

  /** Without events that say what the status says or has said. */
  private withoutEchoes(resource: ResourceStatus): ResourceStatus {
    const events = resource.events.filter(({ note }) => !this.messages.has(messageId(resource.uid, note)));
    return { ...resource, events };
  }
}

function messageId(uid: string, message: string): string {
  return `${uid} ${message}`;
}

function textOf({ title, lines }: Trouble): string {
  return [title, ...lines.map((line) => `  ${line}`)].join('\n');
}
