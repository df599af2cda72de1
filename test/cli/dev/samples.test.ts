import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { planSamples, Samples } from '../../../src/cli/dev/cluster-side.js';
import type { Sample } from '../../../src/cli/dev/project.js';
import { sampleSources } from '../../../src/cli/dev/tell-project.js';
import { foldersOf, isSample } from '../../../src/cli/dev/watched-files.js';
import { OperatorError } from '../../../src/contract/error.js';
import { resourceType } from '../../../src/contract/resource.js';
import type { Cluster } from '../../../src/install/cluster.js';
import { VirtualClock } from '../../engine/support/virtual-clock.js';

const type = resourceType({ apiVersion: 'example.com/v1', kind: 'Note' });

function sample(name: string, text: string): Sample {
  const metadata = { name, namespace: 'default' };
  return { type, object: { apiVersion: 'example.com/v1', kind: 'Note', metadata, spec: { text } } };
}

const names = (samples: readonly Sample[]): string[] => samples.map(({ object }) => object.metadata.name);

describe('what is to be done', () => {
  test('what is new or other is applied, what was taken out is deleted, the rest is left alone', () => {
    const before = [sample('same', 'a'), sample('edited', 'a'), sample('taken-out', 'a')];
    const plan = planSamples(before, [sample('same', 'a'), sample('edited', 'b'), sample('new', 'a')]);

    expect(names(plan.apply)).toEqual(['edited', 'new']);
    expect(names(plan.delete)).toEqual(['taken-out']);
  });
});

describe('in the cluster', () => {
  const { signal } = new AbortController();

  /** Keeps of a spec what its schema knows. */
  class FakeCluster implements Pick<Cluster, 'apply' | 'find' | 'delete'> {
    readonly done: string[] = [];
    refused: string | undefined;
    reason = 'Invalid';
    /** So many answers still go by the schema before. */
    stale = 0;

    find: Cluster['find'] = (found, key) =>
      Promise.resolve({ ...sample('any', '').object, kind: found.kind, metadata: { name: key } });

    apply: Cluster['apply'] = (_, object) => {
      const { name } = object.metadata;
      if (name === this.refused)
        return Promise.reject(new OperatorError({ reason: this.reason, message: 'too long' }));
      this.done.push(`apply ${name}`);
      this.stale -= 1;
      return Promise.resolve({ object: this.stale >= 0 ? { ...object, spec: {} } : object, created: true });
    };

    delete: Cluster['delete'] = (_, { metadata }) => {
      this.done.push(`delete ${metadata.name}`);
      return Promise.resolve();
    };
  }

  test('one that is refused is told, and tried again the next time; the others are there', async () => {
    const cluster = new FakeCluster();
    const samples = new Samples(cluster, new VirtualClock());
    cluster.refused = 'bad';
    const wanted = [sample('bad', 'a'), sample('good', 'a')];
    expect(await samples.bring(wanted, false, signal)).toEqual([
      'Note default/bad is refused by the cluster: too long',
    ]);
    cluster.refused = undefined;
    expect(await samples.bring(wanted, false, signal)).toEqual([]);

    expect(cluster.done).toEqual(['apply good', 'apply bad']);
    expect(await samples.bring([], false, signal)).toEqual([]);
    expect(cluster.done.slice(2).sort()).toEqual(['delete default/bad', 'delete default/good']);
  });

  test('after a change of a CRD a field that is dropped is sent again, until the schema is served', async () => {
    const cluster = new FakeCluster();
    cluster.stale = 2;
    const clock = new VirtualClock();
    const brought = new Samples(cluster, clock).bring([sample('web', 'a')], true, signal);
    await clock.advance(1000);

    expect(await brought).toEqual([]);
    expect(cluster.done).toEqual(['apply web', 'apply web', 'apply web']);
  });

  test('otherwise it is told at once', async () => {
    const cluster = new FakeCluster();
    cluster.stale = 2;

    expect(await new Samples(cluster, new VirtualClock()).bring([sample('web', 'a')], false, signal)).toEqual(
      [expect.stringContaining('a field of its spec was dropped')],
    );
    expect(cluster.done).toEqual(['apply web']);
  });

  test.each([
    ['KindNotServed', 10_000],
    ['Invalid', 2_000],
    ['Forbidden', 0],
  ])('all samples together wait for what passes by itself, after %s for %i ms', async (reason, longest) => {
    const cluster = new FakeCluster();
    Object.assign(cluster, { refused: 'bad', reason });
    const clock = new VirtualClock();
    const began = clock.monotonic();
    let took = -1;
    const wanted = [sample('bad', 'a'), { ...sample('bad', 'a') }, sample('good', 'a')];
    void new Samples(cluster, clock).bring(wanted, true, signal).then((refused) => {
      expect(refused).toHaveLength(2);
      took = clock.monotonic() - began;
    });
    await clock.advance(60_000);

    expect(took).toBeGreaterThanOrEqual(longest);
    expect(took).toBeLessThan(longest + 200);
    expect(cluster.done).toEqual(['apply good']);
  });

  test('a sample of a kind that has left is new when the kind comes back, and is not deleted meanwhile', async () => {
    const cluster = new FakeCluster();
    const samples = new Samples(cluster, new VirtualClock());
    await samples.bring([sample('web', 'a')], false, signal);
    samples.forget('others.example.com');
    await samples.bring([sample('web', 'a')], false, signal);
    expect(cluster.done).toEqual(['apply web']);

    samples.forget('notes.example.com');
    await samples.bring([], false, signal);
    await samples.bring([sample('web', 'a')], false, signal);
    expect(cluster.done).toEqual(['apply web', 'apply web']);
  });

  test('what is interrupted applies nothing more', async () => {
    const cluster = new FakeCluster();
    Object.assign(cluster, { refused: 'bad', reason: 'KindNotServed' });
    const clock = new VirtualClock();
    const interrupted = new AbortController();
    const brought = new Samples(cluster, clock).bring(
      ...([[sample('bad', 'a'), sample('good', 'a')], true, interrupted.signal] as const),
    );
    await clock.advance(150);
    interrupted.abort();

    expect(await brought).toEqual([]);
    expect(cluster.done).toEqual([]);
    expect(clock.timers).toBe(0);
  });
});

describe('where they are', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'samples-'));
    mkdirSync(join(folder, 'samples'));
    writeFileSync(join(folder, 'sample.yaml'), '');
    writeFileSync(join(folder, 'crd.yaml'), '');
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  test('samples/*.yaml, else sample.yaml, else none', () => {
    expect(sampleSources([], folder)).toEqual([join(folder, 'sample.yaml')]);
    for (const name of ['b.yaml', 'a.yml', 'notes.md']) writeFileSync(join(folder, 'samples', name), '');
    expect(sampleSources([], folder)).toEqual([
      join(folder, 'samples/a.yml'),
      join(folder, 'samples/b.yaml'),
    ]);
    expect(sampleSources([], join(folder, 'samples'))).toEqual([]);
  });

  test('those that are named: files, folders and patterns; what is not there stays, to be told', () => {
    const named = ['crd.yaml', 'samples', 's*.yaml', 'nowhere.yaml'].map((name) => join(folder, name));
    expect(sampleSources(named, folder)).toEqual(
      ['crd.yaml', 'samples', 'sample.yaml', 'nowhere.yaml'].map((name) => join(folder, name)),
    );
  });

  test('folders are watched, and a file in one of them is a sample; another beside a sample is none', () => {
    const sources = [join(folder, 'sample.yaml'), join(folder, 'samples'), '/nowhere/sample.yaml'];
    expect(foldersOf(sources)).toEqual([folder, join(folder, 'samples')]);
    expect(isSample(join(folder, 'samples/new.yaml'), sources)).toBe(true);
    expect(isSample(join(folder, 'sample.yaml'), sources)).toBe(true);
    expect(isSample(join(folder, 'crd.yaml'), sources)).toBe(false);
  });
});
