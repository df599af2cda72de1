import { join } from 'node:path';
import { expect, test } from 'vitest';
import { compare } from '../../../src/cli/diff/compare.js';
import type { Explanation } from '../../../src/contract/plan.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import { render } from '../../../src/render/renderer.js';
import { folderWith } from '../../synth/fixtures.js';
import { StoredServer } from '../support/stored-server.js';
import { liveJob, liveWatcher } from '../../kinds/job-watcher/fixtures.js';
import type { JobWatcherSpec } from '../../../src/kinds/job-watcher/spec.js';

const JOBS = ['pi', 'e'].map((name) => liveJob({ name, ended: 'Complete' }));

/** A watcher that is there, as the API server has it. */
function watcherOf(name: string, spec: JobWatcherSpec): AnyObject {
  const { metadata, ...rest } = liveWatcher(spec, { name, status: { observedGeneration: 1 } });
  return { ...rest, metadata: { ...metadata, resourceVersion: '7' } };
}

/** An API server that has these watchers and two completed Jobs. */
function serverOf(watchers: readonly AnyObject[]): StoredServer {
  return new StoredServer([...watchers, ...JOBS], ({ method, body }) => {
    const sent = body as AnyObject;
    return method === 'PUT'
      ? { status: 200, body: { ...sent, metadata: { ...sent.metadata, generation: 2 } } }
      : undefined;
  });
}

async function explained(
  watchers: readonly AnyObject[],
  spec: object,
  name = 'sweeper',
): Promise<Explanation[]> {
  const cr = { apiVersion: 'batch.my.github.com/v1', kind: 'JobWatcher', metadata: { name }, spec };
  const folder = folderWith({ 'a.yaml': JSON.stringify(cr) });
  const { explanations } = await compare({
    ...{ sources: [join(folder, 'a.yaml')], recursive: false, kinds: [jobWatcher], namespace: 'default' },
    ...{
      transport: serverOf(watchers),
      contextFor: () => Promise.resolve({ render }),
      warn: () => undefined,
    },
  });
  return [...explanations];
}

test('another custom resource for which something changes is shown, before and after', async () => {
  const suspended = watcherOf('sweeper', { completedTTL: '1s', suspend: true });
  const other = watcherOf('other', { completedTTL: '1s', priority: -1, jobNamePatterns: ['pi'] });
  const untouched = watcherOf('untouched', { completedTTL: '1s', jobNamePatterns: ['none'] });

  const found = await explained([suspended, other, untouched], {
    completedTTL: '1s',
    suspend: true,
    jobNamePatterns: ['^e$'],
  });

  expect(new Map(found.map(({ of, differs }) => [of.name, differs]))).toEqual(
    new Map([
      ['sweeper', false],
      ['other', true],
    ]),
  );
  const another = found.find(({ of }) => of.name === 'other')!;
  expect(another.summary).toBe(
    'would delete 1 of 1 Job matched; as things are, it would delete 0 of 1 Job matched',
  );
  expect(another.tables![0]!.rows).toMatchObject([['default/pi', 'completed', expect.anything(), '1 s']]);
});

test('one that is new takes from another what it decides on', async () => {
  const other = watcherOf('other', { completedTTL: '1s' });
  const found = await explained([other], { completedTTL: '100000h', jobNamePatterns: ['pi'] });
  expect(found.map(({ of: { name }, differs }) => [name, differs])).toContainEqual(['other', true]);
  expect(found.find(({ of }) => of.name === 'other')!.summary).toMatch(
    /^would delete 1 of 2 Jobs matched; as things are, it would delete 2 of 2 Jobs matched/,
  );
});
