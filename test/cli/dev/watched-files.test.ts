import { closeSync, mkdirSync, mkdtempSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { isOwnOutput } from '../../../src/cli/dev/session.js';
import { isIgnored, isPassing, WatchedFiles } from '../../../src/cli/dev/watched-files.js';
import { eventually } from '../../../src/testing/eventually.js';

let folder: string;
let saved: string[];
let files: WatchedFiles;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'watched-'));
  for (const name of ['src', 'node_modules/lib']) mkdirSync(join(folder, name), { recursive: true });
  saved = [];
  files = new WatchedFiles((path) => saved.push(path.slice(folder.length + 1)));
});
afterEach(() => {
  files.close();
  rmSync(folder, { recursive: true });
});

function write(name: string): void {
  writeFileSync(join(folder, name), String(saved.length));
}

async function seen(name: string): Promise<void> {
  await eventually(() => {
    expect(saved).toContain(name);
  });
}

test('a save is seen, also by putting another file in its place, again and again', async () => {
  write('src/kind.ts');
  files.follow(folder);
  for (let times = 0; times < 3; times++) {
    saved.length = 0;
    write('src/.kind.ts.swp');
    renameSync(join(folder, 'src/.kind.ts.swp'), join(folder, 'src/kind.ts'));
    await seen('src/kind.ts');
  }
  saved.length = 0;
  write('src/kind.ts');
  await seen('src/kind.ts');
  expect(saved).not.toContain('src/.kind.ts.swp');
});

test('a folder that comes later is followed, and so is one that takes the place of another', async () => {
  files.follow(folder);
  mkdirSync(join(folder, 'src/parts'));
  await seen('src/parts');
  write('src/parts/web.ts');
  await seen('src/parts/web.ts');

  mkdirSync(join(folder, 'next'));
  await seen('next');
  renameSync(join(folder, 'src'), join(folder, 'before'));
  renameSync(join(folder, 'next'), join(folder, 'src'));
  await seen('before');
  await eventually(() => {
    write('src/late.ts');
    expect(saved).toContain('src/late.ts');
  });
});

test('what an author does not write is of no interest', async () => {
  files.follow(folder);
  write('node_modules/lib/index.js');
  write('kind.ts~');
  write('last.ts');
  await seen('last.ts');
  expect(saved.every((name) => name === 'last.ts')).toBe(true);
});

test.each([
  'node_modules',
  'dist',
  '.git',
  'kind.ts~',
  '.kind.ts.swp',
  '4913',
  'dev.log',
  'kind.ts___jb_tmp___',
])('%s is ignored', (name) => {
  expect(isIgnored(name)).toBe(true);
});
test.each(['kind.ts', 'script.sh', 'nginx.conf', 'samples', 'v1.yaml'])('%s is not', (name) => {
  expect(isIgnored(name)).toBe(false);
});

test('a file of a tool that has gone again is passing, a module that was removed is not', () => {
  expect(isPassing(join(folder, 'sedAbC12'))).toBe(true);
  expect(isPassing(join(folder, 'kind.ts'))).toBe(false);
  expect(isPassing(folder)).toBe(false);
});

test('the file that the output goes to is none that is saved', () => {
  const [output, other] = [join(folder, 'out.txt'), join(folder, 'other.txt')];
  const descriptor = openSync(output, 'w');
  writeFileSync(other, '');
  expect(isOwnOutput(output, [descriptor])).toBe(true);
  expect(isOwnOutput(other, [descriptor])).toBe(false);
  expect(isOwnOutput(join(folder, 'gone.txt'), [descriptor])).toBe(false);
  closeSync(descriptor);
});
