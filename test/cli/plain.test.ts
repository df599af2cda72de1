import { expect, test } from 'vitest';
import { textOf as diffText } from '../../src/cli/diff/text.js';
import { plain, plainAll } from '../../src/cli/plain.js';
import { textOf as statusText } from '../../src/cli/status/text.js';
import type { StatusDocument } from '../../src/cli/status/document.js';
import { watching } from '../../src/cli/status/watching.js';
import type { Look } from '../../src/cli/status/look.js';
import { OperatorError } from '../../src/contract/error.js';
import { Api } from '../../src/engine/api.js';
import { VirtualClock } from '../engine/support/virtual-clock.js';
import { WatchedServer } from './support/watched-server.js';

const evil = '\u001b]0;owned\u0007\u009b2J\r';
const said = String.raw`\x1b]0;owned\x07\x9b2J\x0d`;
const paint = (_: unknown, text: string): string => text;

test('controls are shown, and what is text stays', () => {
  expect(plain(`a\n${evil}ü→`)).toBe(`a\n${said}ü→`);
  expect(plainAll({ [evil]: [evil, 1, null] })).toEqual({ [said]: [said, 1, null] });
});

const ref = { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'web' };
const pod = {
  ...{ ready: false, readyContainers: 0, containers: 1, restarts: 0 },
  state: evil,
  message: evil,
};
const document: StatusDocument = {
  ...{ operators: [], notes: [evil] },
  resources: [
    {
      ...ref,
      uid: 'u',
      verdict: { word: 'Stalled', reason: evil, message: evil, current: true },
      facts: [{ name: 'fact', text: evil }],
      children: [{ ...ref, uid: 'c', phase: 'failing', message: evil, pods: [{ ...ref, uid: 'p', ...pod }] }],
      events: [{ type: 'Warning', reason: evil, note: evil, count: 1, at: '', regarding: ref }],
      notes: [evil],
    },
  ],
};

test.each([true, false])('nothing that status tells commands the terminal (%s)', async (isTTY) => {
  const expected = expect.not.stringMatching(/[\u0007\r\u001b\u009b]/) as string;
  expect(statusText(document, { now: new Date(0), paint })).toEqual(expected);
  const interrupted = new AbortController();
  const written: string[] = [];
  let looks = 0;
  const changed = { ...document, notes: [`again ${evil}`] };
  const look = {
    at: () => Promise.resolve(++looks === 1 ? document : changed),
    refuseMissing: () => Promise.resolve(),
  } as unknown as Look;
  const clock = new VirtualClock();
  const over = watching(look, {
    ...{ api: new Api(new WatchedServer({})), clock, signal: interrupted.signal, output: { isTTY } },
    ...{ json: false, paint },
    write: (text) => {
      written.push(isTTY ? text.replace('\u001b[H\u001b[J', '') : text);
      if (written.length === 2) interrupted.abort();
      return Promise.resolve();
    },
  });
  await clock.advance(6000);
  await over;
  expect(written).toEqual([expected, expected]);
  expect(written[1]).toContain(said);
});

test('nothing that diff tells commands the terminal', () => {
  const object = (value: string) => ({ ...ref, metadata: { name: 'web' }, spec: { [evil]: value } });
  const error = new OperatorError({ reason: 'Invalid', message: evil });
  const conflict = { field: evil, manager: evil };
  const base = { ref, takes: [conflict], leaves: [conflict] };
  const text = diffText(
    {
      objects: [
        { ...base, action: 'failed', error },
        { ...base, action: 'created', after: object(evil) },
        { ...base, action: 'changed', before: object('a'), after: object(evil) },
      ],
      explanations: [],
    },
    paint,
  );
  expect(text).toEqual(expect.not.stringMatching(/[\u0007\r\u001b\u009b]/) as string);
});
