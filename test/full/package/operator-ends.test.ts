import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { repoFolder } from '../../../sandbox/paths.js';

const lib = pathToFileURL(join(repoFolder(), 'lib')).href;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'operator-ends-'));
});
afterAll(() => rm(folder, { recursive: true }));

test('an operator that reaches no API server says so, and keeps no process alive', async () => {
  const kubeconfig = join(folder, 'kubeconfig');
  await writeFile(kubeconfig, stringify(unreachable()));
  const script = `
    import { jobWatcher } from '${lib}/kinds/job-watcher/kind.js';
    import { Operator } from '${lib}/testing/index.js';
    try {
      await Operator.start({ kubeconfig: ${JSON.stringify(kubeconfig)}, kinds: [jobWatcher], startMilliseconds: 300 });
    } catch (error) {
      console.log(error.message);
    }`;

  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', script],
    // It is killed then, and the promise is rejected.
    { timeout: 50_000 },
  );

  expect(stdout).toMatch(/^Still so after 0.3 s: The operator isn't ready: /);
});

/** Nothing listens on the port that is there for discarding what is sent. */
function unreachable(): object {
  return {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'nowhere' },
    clusters: [{ name: 'nowhere', cluster: { server: 'http://127.0.0.1:9' } }],
    users: [{ name: 'nobody', user: { token: 'none' } }],
    contexts: [{ name: 'nowhere', context: { cluster: 'nowhere', user: 'nobody' } }],
  };
}
