import { expect, test } from 'vitest';
import { describeRequests } from '../../sandbox/demo/clusters.js';
import { CleanUp } from '../../sandbox/demo/stage.js';
import { until } from '../../sandbox/demo/observe.js';
import { formatTime, readableLogLine, shellCommand, Show, table, wrap } from '../../sandbox/demo/show.js';
import { History } from '../../sandbox/demo/steps.js';

test.each([
  [0, 'less than 1 ms'],
  [999, '999 ms'],
  [999.7, '1.0 s'],
  [5_240, '5.2 s'],
  [59_960, '1 min 0 s'],
  [125_000, '2 min 5 s'],
])('%d ms are %s', (milliseconds, text) => {
  expect(formatTime(milliseconds)).toBe(text);
});

test('text is wrapped, aligned and quoted', () => {
  expect(wrap('a bb  ccc dddddddd e', 6)).toEqual(['a bb', 'ccc', 'dddddddd', 'e']);
  expect(
    table([
      ['A', 'B'],
      ['long', 'b'],
    ]),
  ).toBe('A      B\nlong   b');
  expect(shellCommand(['kubectl', 'patch', '-p', `{"a":"it's"}`])).toBe(
    `kubectl patch -p '{"a":"it'\\''s"}'`,
  );
});

test('styled output is the plain one with escape sequences', () => {
  const written = (styled: boolean): string => {
    let text = '';
    const show = new Show({ write: (piece) => (text += piece), styled, width: 40 });
    show.heading('Title');
    show.command('kubectl get x');
    show.output('a\n\nb\n');
    show.seen('done');
    return text;
  };
  expect(written(false)).toBe('\nTitle\n\n  $ kubectl get x\n    a\n\n    b\n\n  ✓ done\n');
  expect(written(true).replaceAll(/\x1b\[\d+m/g, '')).toBe(written(false));
  expect(written(true)).toContain('\x1b[32m✓\x1b[39m');
});

test('a line of the log is made readable, any other is left alone', () => {
  const line =
    '{"level":"warn","time":"2026-01-02T03:04:05.678Z","resource":"pods","x":1,"msg":"Watch failed"}';
  expect(readableLogLine(line)).toBe('03:04:05.678 warn Watch failed (resource=pods)');
  for (const other of ['not JSON', 'null', '{"a":1}']) expect(readableLogLine(other)).toBe(other);
});

test('a watch counts once among the requests', () => {
  const verbs = { 1: 'watch', 2: 'patch', 3: 'patch' };
  const entries = [...Object.entries(verbs), ['1', 'watch'] as const];
  expect(describeRequests(entries.map(([auditID, verb]) => ({ auditID, verb })))).toBe(
    '3 requests: 2 patch, 1 watch',
  );
});

test('the history of a Deployment knows when an edit was corrected', () => {
  const history = new History();
  const lines = ['1 3 a <none>', '1 3 a <none>', '2 3 b <none>', '3 3 a <none>'];
  for (const [index, line] of ['GENERATION REPLICAS IMAGE TEAM', ...lines].entries()) {
    if (index === 4) expect(history.repair('IMAGE', 'b', 'a')).toBeUndefined();
    history.add(line, index * 10);
  }
  expect(history.repair('IMAGE', 'b', 'a')?.map(({ at }) => at)).toEqual([20, 30]);
  expect(history.repair('REPLICAS', '5', '3')).toBeUndefined();
  expect(history.table().split('\n')).toHaveLength(4);
});

test('waiting ends with what was found, at the deadline with what there was instead, and when interrupted', async () => {
  const { signal } = new AbortController();
  const looks = [() => ({ seen: 'none' }), () => Promise.reject(new Error('x')), () => ({ found: 7 })];
  expect(await until('a number', () => looks.shift()!(), { deadlineMilliseconds: 10_000, signal })).toBe(7);

  const look = (): { seen: string } => ({ seen: 'a word' });
  await expect(until('a number', look, { deadlineMilliseconds: 1, signal })).rejects.toMatchObject({
    ...{ expected: 'a number, within 0 s', seen: 'a word' },
  });
  await expect(
    until('a number', look, { deadlineMilliseconds: 10_000, signal: AbortSignal.abort() }),
  ).rejects.toThrow(/abort/);
});

test('cleaning up goes backwards and does not stop at a failure', async () => {
  const done: string[] = [];
  const cleanUp = new CleanUp();
  cleanUp.add('end a', () => Promise.resolve(void done.push('a')));
  cleanUp.add('end b', () => Promise.reject(new Error('it is stuck')));
  cleanUp.add('end c', () => Promise.resolve(void done.push('c')));
  expect(await cleanUp.run()).toEqual(['Could not end b: it is stuck']);
  expect(done).toEqual(['c', 'a']);
  expect(await cleanUp.run()).toEqual([]);
});
