import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { repoFolder } from '../../../sandbox/paths.js';
import type { Program } from '../../support/operator.js';
import { Container } from './container.js';

const root = repoFolder();
const sample = readFileSync(join(root, 'examples/appservice-full.yaml'), 'utf8');

/** Elsewhere the Dockerfile can be linted, and what it makes can't be tried. */
describe.runIf(process.platform === 'linux')('the image, as far as it can be had without an engine', () => {
  let container: Container;

  beforeAll(() => {
    container = new Container({ '/files/sample.yaml': sample });
  });
  afterAll(() => {
    container[Symbol.dispose]();
  });

  function outputOf({ file, args, env }: Program): string {
    return execFileSync(file, args, { env, encoding: 'utf8' });
  }

  /** What the compiled command prints. */
  function expected(...args: string[]): string {
    return execFileSync(process.execPath, [join(root, 'lib/cli/main.js'), ...args], { encoding: 'utf8' });
  }

  test('its user is nobody, nothing can be written, and there is nothing but Node and one file', () => {
    const told = outputOf(
      container.script(`
        const { readdirSync, writeFileSync } = require('node:fs');
        const attempt = (file) => { try { writeFileSync(file, ''); return 'written'; } catch ({ code }) { return code; } };
        const capabilities = /CapEff:\\s*(\\w+)/.exec(require('node:fs').readFileSync('/proc/self/status', 'utf8'))[1];
        console.log(JSON.stringify({
          user: process.getuid(), capabilities, app: readdirSync('/app'), environment: Object.keys(process.env).sort(),
          writes: ['/x', '/app/x', '/app/reconstruct.mjs', '/tmp/x'].map(attempt),
        }));`),
    );
    const isRoot = process.getuid?.() === 0;
    expect(JSON.parse(told)).toEqual({
      ...(isRoot
        ? { user: 65532, capabilities: '0000000000000000' }
        : { user: 0, capabilities: expect.any(String) as string }),
      app: ['reconstruct.mjs'],
      environment: ['MALLOC_ARENA_MAX', 'PATH', 'PWD'],
      writes: ['EROFS', 'EROFS', 'EROFS', 'ENOENT'],
    });
  });

  test('it tells its version and its commands', () => {
    expect(outputOf(container.command('--version'))).toBe(expected('--version'));
    expect(outputOf(container.command('--help'))).toBe(expected('--help'));
  });

  test('it renders, and prints the manifests of the operator', () => {
    const file = join(root, 'examples/appservice-full.yaml');
    expect(outputOf(container.command('synth', '/files/sample.yaml'))).toBe(expected('synth', file));
    expect(outputOf(container.command('install'))).toBe(expected('install'));
  });
});
