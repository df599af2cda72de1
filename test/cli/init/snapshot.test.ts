import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { repoFolder } from '../../../sandbox/paths.js';
import { CliError } from '../../../src/cli/exit.js';
import type { Plan } from '../../../src/cli/init/code.js';
import { designOf } from '../../../src/cli/init/design.js';
import { namesOf } from '../../../src/cli/init/names.js';
import { projectFiles } from '../../../src/cli/init/project.js';
import { recordSnapshot } from '../../../src/cli/init/snapshot.js';
import { folderWith } from '../../synth/fixtures.js';

const plan: Plan = {
  ...{ names: namesOf('shop'), design: designOf(['ConfigMap']), library: 'reconstruct' },
};
const files = projectFiles(plan, { name: 'reconstruct', spec: 'https://example.com/reconstruct.tgz' });

test('a test that fails is told by its own words, with what to do, and no stack of this command', async () => {
  const broken = { ...files, 'src/shop.ts': 'export class Shop {}\nthrow new Error("no such shop");\n' };
  const { signal } = new AbortController();
  const error: unknown = await recordSnapshot(plan, broken, signal).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(CliError);
  const { lines, exitCode } = error as CliError;
  expect(exitCode).toBe(2);
  expect(lines.join('\n')).toContain('Error: no such shop');
  expect(lines.at(-1)).toMatch(
    /^The project doesn't pass its own test, so nothing was written\. .*give another --kind/,
  );
});

test('Ctrl-C while it is recorded leaves nothing behind', async () => {
  const [folder, temporary] = [folderWith(), folderWith()];
  const command = join(repoFolder(), 'lib/cli/main.js');
  const args = ['init', 'shop', '--package', 'https://example.com/reconstruct.tgz'];
  const child = spawn(process.execPath, [command, ...args], {
    ...{ cwd: folder, env: { ...process.env, TMPDIR: temporary } },
  });
  let told = '';
  child.stderr.on('data', (chunk: Buffer) => (told += chunk.toString()));
  const ended = once(child, 'close');
  await vi.waitFor(
    () => {
      const [made = 'none'] = readdirSync(temporary);
      expect(existsSync(join(temporary, made, 'node_modules/constructs'))).toBe(true);
    },
    { timeout: 50_000, interval: 5 },
  );
  child.kill('SIGINT');

  expect(await ended).toEqual([2, null]);
  expect(told).toBe('Interrupted; nothing was written\n');
  expect(readdirSync(temporary)).toEqual([]);
  expect(readdirSync(folder)).toEqual([]);
}, 60_000);
