import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';

test('the picture and the outputs of the README are what a run gives', () => {
  const script = join(repoFolder(), 'scripts/record.mjs');

  execFileSync(process.execPath, [script, '--check'], { env: { ...process.env, NODE_OPTIONS: '' } });
}, 300_000);
