import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { CliError } from '../../../src/cli/exit.js';
import { ownDependency } from '../../../src/cli/init/dependency.js';
import { folderWith } from '../../synth/fixtures.js';

const CONTENT = 'packed';
const INTEGRITY = `sha512-${createHash('sha512').update(CONTENT).digest('base64')}`;

let top: string;
beforeEach(() => {
  top = folderWith({ 'reconstruct-0.1.0.tgz': CONTENT });
});

/** A package below `project/node_modules`, with what npm has noted of it. */
function installed(noted: object | undefined, name = 'reconstruct'): string {
  const modules = join(top, 'project/node_modules');
  write(join(modules, name, 'package.json'), { name, version: '0.1.0' });
  if (noted) write(join(modules, '.package-lock.json'), { packages: { [`node_modules/${name}`]: noted } });
  return join(modules, name);
}

function write(file: string, content: object): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(content));
}

test('a packed file that it was installed from becomes part of the project', () => {
  const folder = installed({
    ...{ version: '0.1.0', resolved: 'file:../reconstruct-0.1.0.tgz', integrity: INTEGRITY },
  });
  expect(ownDependency(undefined, folder)).toEqual({
    ...{ name: 'reconstruct', spec: 'file:vendor/reconstruct-0.1.0.tgz' },
    tarball: { name: 'reconstruct-0.1.0.tgz', content: Buffer.from(CONTENT) },
  });
});

test('from a registry it is the exact version, under its own name', () => {
  const folder = installed(
    {
      version: '0.2.1',
      resolved: 'https://registry.example.com/@example/reconstruct/-/reconstruct-0.2.1.tgz',
    },
    '@example/reconstruct',
  );
  expect(ownDependency(undefined, folder)).toEqual({ name: '@example/reconstruct', spec: '0.2.1' });
});

test.each<[what: string, noted: object | undefined, told: string]>([
  [
    'has changed',
    { resolved: 'file:../reconstruct-0.1.0.tgz', integrity: 'sha512-AA==' },
    'has changed since',
  ],
  ['is gone', { resolved: 'file:../gone.tgz', integrity: INTEGRITY }, 'is gone: give it with --package FILE'],
  ['is not noted', undefined, 'Nothing tells where'],
])('a source that %s is told', (_, noted, told) => {
  const folder = installed(noted);
  expect(() => ownDependency(undefined, folder)).toThrow(CliError);
  expect(() => ownDependency(undefined, folder)).toThrow(told);
});

test('a clone has to be packed', () => {
  const clone = folderWith({ 'package.json': '{ "name": "reconstruct" }' });
  expect(() => ownDependency(undefined, clone)).toThrow('pack it with "npm pack" there');
});

test('what is given goes before what is noted', () => {
  const folder = installed(undefined);
  const file = join(top, 'reconstruct-0.1.0.tgz');
  expect(ownDependency(file, folder)).toMatchObject({ spec: 'file:vendor/reconstruct-0.1.0.tgz' });
  expect(ownDependency(`file:${file}`, folder)).toMatchObject({ spec: 'file:vendor/reconstruct-0.1.0.tgz' });
  for (const given of ['npm:@example/reconstruct@1.0.0', 'https://example.com/reconstruct.tgz'])
    expect(ownDependency(given, folder)).toEqual({ name: 'reconstruct', spec: given });
});

test.each([
  ['0.3.0', '0.3.0'],
  ['@example/reconstruct@^0.3.0', '^0.3.0'],
  ['next', 'next'],
])('a version is taken where npm has this package by its name: %s', (given, spec) => {
  const name = '@example/reconstruct';
  expect(ownDependency(given, installed(undefined, name))).toEqual({ name, spec });
});

test.each(['1.0.0', 'reconstruct@1.0.0', '^1.0.0', 'latest', 'npm:reconstruct@1.0.0', 'npm:other@1.0.0'])(
  '%s would be the package of somebody else, and is refused',
  (given) => {
    const folder = installed(undefined);
    expect(() => ownDependency(given, folder)).toThrow(CliError);
    expect(() => ownDependency(given, folder)).toThrow("is somebody else's package");
  },
);

test('no text about this package invites a version', () => {
  for (const given of [undefined, './gone', 'gone.tgz', '1.0.0'])
    expect(() => ownDependency(given, installed(undefined))).toThrow(/FILE\.tgz|check the path/);
});

test('under its own name it is what the registry in use gave, and not what another has of that name', () => {
  const resolved = 'https://registry.example.com/reconstruct/-/reconstruct-0.1.0.tgz';
  expect(ownDependency(undefined, installed({ version: '0.1.0', resolved }))).toEqual({
    ...{ name: 'reconstruct', spec: resolved },
  });
});

test.each([
  ['gone.tgz', 'there is no file gone.tgz'],
  ['./gone', 'names no packed file'],
  ['..', 'is a folder'],
])('%s is refused', (given, told) => {
  expect(() => ownDependency(given, installed(undefined))).toThrow(told);
});
