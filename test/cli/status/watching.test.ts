import { expect, test } from 'vitest';
import type { StatusDocument } from '../../../src/cli/status/document.js';
import type { Look } from '../../../src/cli/status/look.js';
import { watching } from '../../../src/cli/status/watching.js';
import { Api } from '../../../src/engine/api.js';
import { systemClock } from '../../../src/engine/clock.js';
import type { Transport } from '../../../src/engine/transport.js';

const transport: Transport = {
  host: 'api.test',
  request: () => Promise.reject(new Error('nothing is asked for')),
  stream: () => Promise.reject(new Error('nothing is watched')),
  close: () => Promise.resolve(),
};

/** What is written of the first look, after which it is interrupted. */
async function shown(output: { readonly isTTY?: boolean; readonly columns?: number }, json = false) {
  const interrupted = new AbortController();
  const document: StatusDocument = { operators: [], notes: ['A note'], resources: [] };
  const look = { at: () => Promise.resolve(document), refuseMissing: () => Promise.resolve() };
  let written = '';
  await watching(look as unknown as Look, {
    ...{ api: new Api(transport), clock: systemClock, signal: interrupted.signal, output, json },
    paint: (_, text) => text,
    write: (text) => {
      written += text;
      interrupted.abort();
      return Promise.resolve();
    },
  });
  return written;
}

test('on a terminal it is drawn in place, elsewhere appended, for programs a document in a line', async () => {
  expect(await shown({ isTTY: true, columns: 100 })).toBe(
    '\u001b[H\u001b[JOperator: not installed\n\nA note\n',
  );
  expect(await shown({})).toBe('Operator: not installed\n\nA note\n');
  expect(await shown({ isTTY: true }, true)).toBe('{"operators":[],"notes":["A note"],"resources":[]}\n');
});
