import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { CHECK_NAMES } from '../../src/testing/report.js';

test.each([
  ['scheduled-task', 'sweep.mjs'],
  ['port-rule', 'sweep.mjs'],
  ['event-bus', 'sweep.ts'],
  ['tenant', 'sweep.mjs'],
  ['indexed-job', 'sweep.mjs'],
  ['journal', 'sweep.mjs'],
  ['listing', 'sweep.mjs'],
  ['nap', 'sweep.mjs'],
  ['ring', 'sweep.mjs'],
  ['pod-history', 'sweep.mjs'],
  ['preview', 'sweep.mjs'],
  ['web-app', 'sweep.mjs'],
  ['postgres-cluster', 'sweep.mjs'],
  ['rabbitmq', 'sweep.ts'],
  ['service-per-pod', 'sweep.mjs'],
  ['database-role', 'sweep-database.ts'],
  ['database-role', 'sweep-role.ts'],
])(
  'examples/%s passes its sweep, with a sandbox of its own',
  { timeout: 580_000 },
  async (example, script) => {
    const cwd = join(repoFolder(), 'examples', example);

    // By this signal the script ends its sandbox too. It comes before the test is given up.
    const { stdout, stderr, code } = await promisify(execFile)(process.execPath, [script], {
      ...{ cwd, timeout: 560_000, killSignal: 'SIGTERM' },
    }).then(
      (ended) => ({ ...ended, code: 0 }),
      (error: unknown) =>
        error as { readonly stdout: string; readonly stderr: string; readonly code: unknown },
    );

    console.log(stdout);
    expect(code, stdout + stderr).toBe(0);
    const rows = stdout.split('\n').filter((line) => / (held|not applicable) /.test(line));
    expect(rows).toHaveLength(CHECK_NAMES.length);
  },
);
