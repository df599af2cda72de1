import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

/** What `npm run import` runs. The CRDs are those listed under `imports` in cdk8s.yaml. */
const IMPORT = ['import', '--class-prefix', 'Kosmos', '--no-save', '--no-check-upgrade'];

const root = fileURLToPath(new URL('../..', import.meta.url));

test('imports/ is what cdk8s makes of crds/', async () => {
  // GIVEN
  const fresh = mkdtempSync(join(tmpdir(), 'imports-'));
  onTestFinished(() => {
    rmSync(fresh, { recursive: true });
  });

  // WHEN
  const cdk8s = join(root, 'node_modules/cdk8s-cli/bin/cdk8s');
  await promisify(execFile)(process.execPath, [cdk8s, ...IMPORT, '--output', fresh], { cwd: root });

  // THEN
  const stale = 'imports/ is stale: run "npm run import" and commit what it changes';
  const committed = join(root, 'imports');
  expect(readdirSync(committed).sort(), stale).toEqual(readdirSync(fresh).sort());
  for (const file of readdirSync(fresh)) {
    expect(readFileSync(join(committed, file), 'utf8'), `${stale} (${file})`).toBe(
      readFileSync(join(fresh, file), 'utf8'),
    );
  }
});
