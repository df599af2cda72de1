import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { brokenRules, brokenStatus, edges, outOfBounds } from '../kinds/job-watcher/broken-rules.js';
import { Cluster } from './support/cluster.js';
import { installCrd } from './support/crds.js';
import { differences, offline } from './support/verdicts.js';

const cluster = new Cluster(openSandbox(inject('sandbox')));
const judge = offline(jobWatcher.crd);
let namespace: string;

beforeAll(async () => {
  await installCrd(cluster, jobWatcher);
  namespace = await cluster.makeNamespace('job-watcher-crd');
});

afterAll(() => cluster.close());

function watcher(spec: object): object {
  return {
    apiVersion: 'batch.my.github.com/v1',
    kind: 'JobWatcher',
    metadata: { name: 'sweeper', namespace },
    spec,
  };
}

/** What the API server says to a spec in a dry run. */
async function answerTo(spec: object) {
  const path = `/apis/batch.my.github.com/v1/namespaces/${namespace}/jobwatchers`;
  return cluster.send('POST', path, {
    body: watcher(spec),
    query: { dryRun: 'All', fieldValidation: 'Strict' },
  });
}

test('kubectl apply takes the CRD', async () => {
  const file = fileURLToPath(new URL('../../crds/jobwatchers.batch.my.github.com.yaml', import.meta.url));

  const { stderr } = await cluster.sandbox.kubectl(['apply', '--dry-run=server', '-f', file]);
  expect(stderr.replace(/^Warning: resource .* is missing the kubectl.*\n/m, '')).toBe('');
  expect(readFileSync(file, 'utf8').length).toBeLessThan(64 * 1024);
});

test.each(brokenRules.map((broken) => ({ what: JSON.stringify(broken.spec).slice(0, 70), ...broken })))(
  'refuses $what',
  async ({ spec, valid, path, messages }) => {
    const [refused, taken] = await Promise.all([answerTo(spec), answerTo(valid)]);

    expect([taken.status, taken.body.message]).toEqual([201, undefined]);
    expect(refused.status, JSON.stringify(refused.body)).toBe(422);
    const { causes } = refused.body.details as { causes: readonly { field: string; message: string }[] };
    expect(causes.map(({ field }) => field)).toEqual([path]);
    for (const part of messages) expect(causes[0]!.message).toContain(part);
  },
);

test.each(edges.map((spec) => ({ what: JSON.stringify(spec).slice(0, 70), spec })))(
  'takes $what',
  async ({ spec }) => {
    const { status, body } = await answerTo(spec);

    expect([status, body.message]).toEqual([201, undefined]);
  },
);

describe('judged offline it is the same', () => {
  const specs = [
    ...brokenRules.flatMap(({ spec, valid }) => [spec, valid]),
    ...outOfBounds.map(({ spec }) => spec),
    ...edges,
  ];

  test.each(specs.map((spec) => ({ name: JSON.stringify(spec).slice(0, 70), spec })))(
    '$name',
    async ({ name, spec }) => {
      const object = watcher(spec);

      expect(differences({ name, object, answer: await answerTo(spec), problems: judge(object) })).toEqual(
        [],
      );
    },
  );
});

test('takes no status with a reason of any length', async () => {
  const path = `/apis/batch.my.github.com/v1/namespaces/${namespace}/jobwatchers`;
  const made = await cluster.send('POST', path, { body: watcher({}) });
  expect(made.status).toBe(201);
  const answerTo = async (length: number) =>
    cluster.send('PUT', `${path}/sweeper/status`, {
      body: { ...made.body, status: brokenStatus.status(length) },
      query: { dryRun: 'All' },
    });
  expect((await answerTo(brokenStatus.most)).status).toBe(200);
  const { status, body } = await answerTo(brokenStatus.most + 1);
  expect(status).toBe(422);
  expect(body.message).toContain(`${brokenStatus.path}: Invalid value: `);
  expect(body.message).toContain(brokenStatus.message);
});
