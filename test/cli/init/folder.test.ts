import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { CliError } from '../../../src/cli/exit.js';
import { fill, requireFree } from '../../../src/cli/init/init.js';
import { folderWith } from '../../synth/fixtures.js';

const FILES = { 'package.json': '{}', 'src/crd.ts': 'export {};', 'test/one.test.ts': '' };
const FRESH = JSON.stringify({
  ...{ name: 'shop', version: '1.0.0', description: '', main: 'index.js', keywords: [], author: 'Somebody' },
  scripts: { test: 'echo "Error: no test specified" && exit 1' },
  ...{ license: 'ISC', dependencies: { reconstruct: 'file:../reconstruct-0.1.0.tgz' } },
});

const all = (folder: string): string[] => globSync('**/*.*', { cwd: folder }).sort();

test('a new folder holds all files, and nothing stays beside it', () => {
  const parent = folderWith();
  const folder = join(parent, 'shop');
  expect(requireFree(folder)).toBeUndefined();
  fill(folder, FILES);
  expect(all(folder)).toEqual(Object.keys(FILES));
  expect(readdirSync(parent)).toEqual(['shop']);
});

test('a folder that npm has begun is filled, and its manifest taken over', () => {
  const folder = folderWith({ 'package.json': FRESH, 'package-lock.json': '{}' });
  const earlier = requireFree(folder);
  expect(earlier).toMatchObject({ author: 'Somebody' });
  fill(folder, FILES, earlier);
  expect(all(folder)).toEqual([...Object.keys(FILES), 'package-lock.json'].sort());
  expect(readFileSync(join(folder, 'package.json'), 'utf8')).toBe('{}');
});

test.each<[what: string, files: Record<string, string>, told: string]>([
  [
    'other files',
    { 'README.md': '', 'index.ts': '' },
    'README.md, index.ts are in the way, and nothing is overwritten; move them',
  ],
  [
    "a manifest of somebody's own",
    { 'package.json': JSON.stringify({ name: 'shop', scripts: { start: 'node .' } }) },
    'package.json, which has more in it than "npm init -y" writes, is in the way',
  ],
  ["a manifest that can't be read", { 'package.json': '{' }, 'mend or remove it'],
])('a folder with %s is refused', (_, files, told) => {
  const folder = folderWith(files);
  expect(() => requireFree(folder)).toThrow(CliError);
  expect(() => requireFree(folder)).toThrow(told);
});

test('a file of that name is in the way, and so is a parent that is not there', () => {
  const parent = folderWith({ shop: '' });
  expect(() => requireFree(join(parent, 'shop'))).toThrow('no folder');
  expect(() => requireFree(join(parent, 'gone/shop'))).toThrow('make it first');
});

test('what somebody else makes meanwhile stays, be it the folder or the manifest', () => {
  const parent = folderWith();
  const folder = join(parent, 'shop');
  const files = {
    'package.json': '{}',
    get 'src/crd.ts'() {
      mkdirSync(folder);
      writeFileSync(join(folder, 'theirs'), '');
      return '';
    },
  };
  expect(() => {
    fill(folder, files);
  }).toThrow('EEXIST');
  expect(readdirSync(parent)).toEqual(['shop']);
  expect(readdirSync(folder)).toEqual(['theirs']);

  const begun = folderWith({ 'package.json': FRESH });
  expect(() => {
    fill(begun, FILES);
  }).toThrow('package.json is in the way');
  expect(() => {
    fill(begun, FILES, { name: 'as it was' });
  }).toThrow('package.json is in the way');
  expect(readdirSync(begun)).toEqual(['package.json']);
  expect(readFileSync(join(begun, 'package.json'), 'utf8')).toBe(FRESH);
});

test('what fails half-way leaves everything as it was', () => {
  const folder = folderWith({ 'package.json': FRESH, test: 'a file where a folder is to be' });
  expect(() => {
    fill(folder, FILES);
  }).toThrow(`${basename(folder)}: test is in the way`);
  expect(readdirSync(folder).sort()).toEqual(['package.json', 'test']);
  expect(readFileSync(join(folder, 'package.json'), 'utf8')).toBe(FRESH);

  const parent = folderWith();
  expect(() => {
    fill(join(parent, 'shop'), { 'package.json': '', a: '', 'a/b': '' });
  }).toThrow('nothing was left there');
  expect(readdirSync(parent)).toEqual([]);
  expect(existsSync(join(parent, 'shop'))).toBe(false);
});
