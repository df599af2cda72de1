import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';

interface Packed {
  readonly files: readonly { readonly path: string }[];
}

test('the package has the testing kit and the sandbox, without the demo', async () => {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts', '--offline'];

  const { stdout } = await promisify(execFile)('npm', args, { cwd: repoFolder() });

  const [packed] = JSON.parse(stdout) as readonly [Packed];
  const paths = packed.files.map(({ path }) => path);
  expect(paths).toEqual(
    expect.arrayContaining([
      ...['lib/testing/index.js', 'lib/testing/index.d.ts', 'lib/sandbox/control-plane.js'],
      ...['sandbox/go.mod', 'sandbox/go.sum', 'sandbox/watchdog.mjs', 'sandbox/stages/pod-ready.yaml'],
    ]),
  );
  expect(paths.filter((path) => /sandbox\/demo|tsbuildinfo|\.test\./.test(path))).toEqual([]);
});
