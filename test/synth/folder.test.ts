import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LEDGER_NAME, writeFolder } from '../../src/cli/synth/folder.js';
import { folderWith } from './fixtures.js';

const A = { name: 'a.yaml', text: '---\na: 1\n' };
const B = { name: 'b.yaml', text: '---\nb: 1\n' };

test('a folder is made, and each file is in it once', () => {
  const folder = join(folderWith(), 'deep', 'er');
  expect(writeFolder(folder, [A, B])).toEqual({ written: 2, unchanged: 0, removed: 0 });
  expect(readdirSync(folder).sort()).toEqual([LEDGER_NAME, 'a.yaml', 'b.yaml']);
  expect(readFileSync(join(folder, 'a.yaml'), 'utf8')).toBe(A.text);
});

test('what synth wrote earlier and no longer renders is removed, and nothing else', () => {
  const folder = folderWith({ 'mine.yaml': 'hands off', 'README.md': 'hands off' });
  writeFolder(folder, [A, B]);
  expect(writeFolder(folder, [B])).toEqual({ written: 0, unchanged: 1, removed: 1 });
  expect(readdirSync(folder).sort()).toEqual([LEDGER_NAME, 'README.md', 'b.yaml', 'mine.yaml']);
  expect(writeFolder(folder, [A])).toEqual({ written: 1, unchanged: 0, removed: 1 });
  expect(readFileSync(join(folder, 'mine.yaml'), 'utf8')).toBe('hands off');
});

test('a file of another writer is a conflict, and then nothing is written', () => {
  const folder = folderWith({ 'b.yaml': 'mine' });
  expect(() => writeFolder(folder, [A, B])).toThrow(
    `${join(folder, 'b.yaml')}: is there and wasn't written by synth; move it away, or choose another folder`,
  );
  expect(readdirSync(folder)).toEqual(['b.yaml']);
  expect(readFileSync(join(folder, 'b.yaml'), 'utf8')).toBe('mine');
});

test('a chart has files in its folder of templates', () => {
  const folder = folderWith();
  const chart = { name: 'Chart.yaml', text: 'c' };
  const file = { name: 'templates/_a.tpl', text: 'a' };
  writeFolder(folder, [chart, file]);
  expect(readFileSync(join(folder, file.name), 'utf8')).toBe('a');
  expect(writeFolder(folder, [chart])).toEqual({ written: 0, unchanged: 1, removed: 1 });
  expect(readdirSync(join(folder, 'templates'))).toEqual([]);
});

test.each([
  '{"files":["../outside.yaml"]}',
  '{"files":["templates/../../a.yaml"]}',
  '{"files":["other/a.yaml"]}',
  '{"files":["notes.txt"]}',
  '{"files":["package.json"]}',
  '[]',
  'garbage',
])('the list %s is not trusted', (text) => {
  const folder = folderWith({ [LEDGER_NAME]: text });
  expect(() => writeFolder(folder, [A])).toThrow('is not a list of files that synth wrote');
  expect(readdirSync(folder)).toEqual([LEDGER_NAME]);
});

test('a folder that is a file, and a name that is too long, are refused without a trace', () => {
  const folder = folderWith();
  writeFileSync(join(folder, 'file'), '');
  expect(() => writeFolder(join(folder, 'file'), [A])).toThrow('is a file; name a folder');
  const out = join(folder, 'out');
  expect(() => writeFolder(out, [A, { ...B, name: `${'b'.repeat(300)}.yaml` }])).toThrow("can't be written");
  expect(readdirSync(out).filter((name) => name.endsWith('.tmp'))).toEqual([]);
});
