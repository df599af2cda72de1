import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';

test('the example of a kind of your own passes its sweep, with a sandbox of its own', async () => {
  const cwd = join(repoFolder(), 'examples/scheduled-task');

  const { stdout } = await promisify(execFile)(process.execPath, ['sweep.mjs'], { cwd });

  console.log(stdout);
  const checks = stdout.trim().split('\n').slice(1);
  expect(checks).toHaveLength(10);
  expect(checks.filter((line) => !/ held /.test(line))).toEqual([]);
});
