import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';

test('the demo sees every step and cleans up', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    join(repoFolder(), 'lib/sandbox/demo/main.js'),
  ]);

  expect(stdout.match(/^ {2}✓ \d\. /gm)).toHaveLength(8);
  expect(stdout).toMatch(/Cleaned up in .*Every step was seen\.\s*$/);
});
