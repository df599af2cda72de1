import { expect, test, vi } from 'vitest';
import { textOf as diffText } from '../../src/cli/diff/text.js';
import { plain, plainAll, print, showProgress, warn } from '../../src/cli/output.js';
import { textOf as statusText, watchText } from '../../src/cli/tree/text.js';
import type { StatusDocument } from '../../src/cli/tree/model.js';
import { OperatorError } from '../../src/contract/error.js';

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

const size = () => ({ columns: 80, rows: 24 });
const harmless = expect.not.stringMatching(/[\u0007\r\u001b\u009b]/) as string;

test('nothing that status prints commands the terminal', () => {
  const now = new Date(0);
  expect(statusText(document, { now, paint })).toEqual(harmless);
  for (const screen of [{}, { size }]) {
    const show = watchText({ isJson: false, paint, ...screen });
    const texts = [show(document, now), show({ ...document, notes: [`again ${evil}`] }, now)];
    expect(texts.map((text) => text.replace('\u001b[H\u001b[J', ''))).toEqual([harmless, harmless]);
    expect(texts[1]).toContain(said);
  }
});

test('status --watch draws in place on a terminal, appends elsewhere, and has a document in a line for programs', () => {
  const calm: StatusDocument = { operators: [], notes: ['A note', 'Another'], resources: [] };
  const text = 'A note\n\nAnother\n';
  const shown = (isJson: boolean, rows?: number): string[] => {
    const screen = rows === undefined ? {} : { size: () => ({ columns: 80, rows }) };
    const show = watchText({ isJson, paint, ...screen });
    return [show(calm, new Date(0)), show(calm, new Date(0))];
  };
  expect(shown(false, 24)).toEqual([`\u001b[H\u001b[J${text}`, `\u001b[H\u001b[J${text}`]);
  const cut = 'A note\n... and 2 more lines, for which the window is too low';
  expect(shown(false, 2)[1]).toBe(`\u001b[H\u001b[J${cut}`);
  expect(shown(false)).toEqual([text, '']);
  expect(shown(true, 24)).toEqual(['{"operators":[],"notes":["A note","Another"],"resources":[]}\n', '']);
});

test('nothing that diff prints commands the terminal', () => {
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
  expect(text).toEqual(harmless);
});

test('progress is shown on a terminal once it takes more than two seconds, at most twice a second, and goes at the end', () => {
  let now = 0;
  const shownOn = (isTTY: boolean): string => {
    let written = '';
    now = 0;
    const { update, end } = showProgress({ isTTY, write: (text) => void (written += text) }, () => now);
    for (now of [0, 1_999, 2_000, 2_400, 2_500]) update(now, now < 2_500 ? 10_000 : undefined);
    end();
    return written;
  };
  expect(shownOn(false)).toBe('');
  expect(shownOn(true)).toBe('\r2,000 of 10,000 compared\u001b[K\r2,500 compared\u001b[K\r\u001b[K');
});

test('a warning is printed once', () => {
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  for (const line of ['a', 'b', 'a']) warn(line);
  expect(write.mock.calls.map(([text]) => text)).toEqual(['warning: a\n', 'warning: b\n']);
  write.mockRestore();
});

test('lines that are printed leave no listener behind', async () => {
  const listeners = (): number => process.stdout.listenerCount('error');
  const before = listeners();
  for (let n = 0; n < 12; n++) await print('');
  expect(listeners()).toBe(before);
});
