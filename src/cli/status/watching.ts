import type { Api } from '../../engine/api.js';
import type { Clock } from '../../engine/clock.js';
import { rfc3339Seconds } from '../../contract/conditions.js';
import type { Paint } from '../paint.js';
import { plain } from '../plain.js';
import type { StatusDocument } from './document.js';
import { follow } from './follow.js';
import type { Look } from './look.js';
import { goneText, newsIn, sentencesOf } from './sentences.js';
import { textOf } from './text.js';

export interface WatchingProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Where it is shown, as far as its form counts. */
  readonly output: { readonly isTTY?: boolean; readonly columns?: number };
  readonly write: (text: string) => Promise<void>;
  readonly paint: Paint;
  /** A document for each change, in a line, in place of text. */
  readonly json: boolean;
}

/** The cursor goes home, and what is below it is cleared. */
const HOME = '\u001b[H\u001b[J';

/** Shows how custom resources fare, and then what changes, until the signal aborts. */
export async function watching(look: Look, props: WatchingProps): Promise<void> {
  const { api, clock, signal, write, json, output } = props;
  const show = json ? jsonShow(write) : output.isTTY ? drawn(props) : appended(props);
  let isFirst = true;
  await follow({
    ...{ api, clock, signal, collect: (source) => look.at(source) },
    onDocument: async (document) => {
      if (isFirst) await look.refuseMissing(document, api);
      isFirst = false;
      await show(document);
      return false;
    },
  });
}

type Show = (document: StatusDocument) => Promise<void>;

function jsonShow(write: WatchingProps['write']): Show {
  let last = '';
  return async (document) => {
    const text = `${JSON.stringify(document)}\n`;
    if (text !== last) await write(text);
    last = text;
  };
}

/** In place of what was shown before. */
function drawn({ write, clock, paint, output }: WatchingProps): Show {
  return async (document) => {
    const now = new Date(clock.now());
    await write(HOME + textOf(document, { now, paint, width: Math.max(output.columns ?? 80, 60) }));
  };
}

/** The whole once, and then what is new, with its time. */
function appended({ write, clock, paint }: WatchingProps): Show {
  let before: Map<string, string> | undefined;
  return async (document) => {
    const now = new Date(clock.now());
    const sentences = sentencesOf(document);
    const text = before
      ? newsIn(before, sentences, goneText(document))
          .map((line) => `${rfc3339Seconds(now)} ${plain(line)}\n`)
          .join('')
      : textOf(document, { now, paint });
    before = sentences;
    if (text !== '') await write(text);
  };
}
