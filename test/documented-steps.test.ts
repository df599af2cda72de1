import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { edited } from './scenarios/support/page/edit.js';
import { missingLines } from './scenarios/support/page/shown.js';
import { stepsOf } from './scenarios/support/page/steps.js';
import { Terminal } from './scenarios/support/page/terminal.js';

const page = (...lines: string[]): string => [...lines, ''].join('\n');

describe('what a page has its reader do', () => {
  test('commands, and what they print', () => {
    const text = page(
      ...['```sh', 'npm install', 'reconstruct synth x # refused: exit code 2', '```'],
      ...['```console', '$ npm test', 'pass 2', '...', 'fail 0', '$ ls', 'src', '```'],
    );

    expect(stepsOf(text)).toEqual([
      { do: 'command', text: 'npm install', exitCode: 0, shown: [] },
      { do: 'command', text: 'reconstruct synth x', exitCode: 2, shown: [] },
      { do: 'command', text: 'npm test', exitCode: 0, shown: ['pass 2', '...', 'fail 0'] },
      { do: 'command', text: 'ls', exitCode: 0, shown: ['src'] },
    ]);
  });

  test('changes of files, of which the added lines are the reader’s own', () => {
    const diff = [
      '@@ src/a.ts @@',
      ' one',
      '-two',
      '+2',
      '+',
      '+3',
      '@@',
      ' nine',
      '+ten',
      '@@ b.ts @@',
      '+x',
    ];

    expect(stepsOf(page('```diff', ...diff, '```'))).toEqual([
      {
        ...{ do: 'edit', file: 'src/a.ts' },
        hunks: [
          { before: ['one', 'two'], after: ['one', '2', '', '3'], added: ['2', '3'] },
          { before: ['nine'], after: ['nine', 'ten'], added: ['ten'] },
        ],
      },
      { do: 'edit', file: 'b.ts', hunks: [{ before: [], after: ['x'], added: ['x'] }] },
    ]);
  });

  test('files as they are, what a program prints that goes on, and its end', () => {
    const text = page(
      '```ts',
      '// src/a.ts',
      'one();',
      '```',
      '```text',
      'ready',
      '```',
      '**Ctrl-C** ends it.',
    );

    expect(stepsOf(text)).toEqual([
      { do: 'compare', file: 'src/a.ts', text: 'one();\n' },
      { do: 'await', lines: ['ready'] },
      { do: 'interrupt' },
    ]);
  });

  test.each([
    ['a block without a language', ['```', 'npm test', '```']],
    ['a file without a name', ['```ts', 'one();', '```']],
    ['a change of no file', ['```diff', '+one', '```']],
    ['what nobody asked for', ['```console', 'pass 2', '```']],
  ])('not %s', (_, lines) => {
    expect(() => stepsOf(page(...lines))).toThrow();
  });
});

describe('a change of a file', () => {
  const hunk = { before: ['b', 'c'], after: ['b', 'C', 'd'], added: ['C', 'd'] };

  test('is made where its lines stand', () => {
    expect(edited('a\nb\nc\n', [hunk])).toBe('a\nb\nC\nd\n');
  });

  test.each([
    ['are not there', 'a\nb\n'],
    ['are there 2 times', 'b\nc\nb\nc\n'],
  ])('is refused where its lines %s', (why, text) => {
    expect(() => edited(text, [hunk])).toThrow(why);
  });
});

test('what a page shows has to be printed, in its order, but for what is another each time', () => {
  const printed =
    'pass 2\nfail 0\nkills   held  12.4 s  9 writes\n2026-01-02T03:04:05Z web-75876bf9f-fqkls up\n';

  expect(missingLines(['pass 2', '...', 'kills held 9.0 s 9 writes'], printed)).toEqual([]);
  expect(missingLines(['kills held ...', 'web-5f8c7bf9f-abcde up'], printed)).toEqual([]);
  expect(missingLines(['fail 0', 'pass 2'], printed)).toEqual(['pass 2']);
  expect(missingLines(['pass', 'kills held 9.0 s 8 writes', 'drift held ...'], printed)).toEqual([
    'pass',
    'kills held 9.0 s 8 writes',
    'drift held ...',
  ]);
});

test('whoever follows a page changes folders, pastes what is printed, and ends with Ctrl-C what goes on', async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'terminal-')));
  try {
    await using terminal = await Terminal.open(folder, { PATH: process.env.PATH });

    expect(await terminal.type('mkdir a && cd a && echo there')).toEqual({ code: 0, output: 'there\n' });
    expect(terminal.currentFolder).toBe(join(folder, 'a'));
    expect(await terminal.type('export PLACE=here')).toEqual({ code: 0, output: '' });
    expect(await terminal.type('echo $PLACE')).toEqual({ code: 0, output: 'here\n' });
    expect(await terminal.type('pwd; exit 3')).toEqual({ code: 3, output: `${join(folder, 'a')}\n` });

    const program = `
      process.on('SIGINT', () => { console.log('bye'); process.exit(); });
      console.log('export KUBECONFIG=/k\\nup');
      setInterval(() => {}, 1_000);`;
    terminal.goOn(`${process.execPath} -e "${program}"`);
    await terminal.printed(['up']);
    expect(await terminal.type('echo $KUBECONFIG')).toEqual({ code: 0, output: '/k\n' });
    expect(terminal.kubeconfigs).toEqual(['/k']);
    expect(await terminal.interrupt()).toMatchObject({
      end: 0,
      output: expect.stringContaining('bye') as string,
    });
    await expect(terminal.interrupt()).rejects.toThrow('No program goes on');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
