import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import type { CustomResourceDefinition } from '../../src/contract/crd.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import * as jobWatcherCases from '../kinds/job-watcher/broken-rules.js';
import * as streamIngressCases from '../kinds/stream-ingress/broken-rules.js';
import { corpus } from '../synth/support/corpus.js';
import type { Case, CorpusOptions } from '../synth/support/corpus.js';
import type { Mutation } from '../synth/support/mutations.js';
import { gaugeCrd } from '../synth/support/gauge-crd.js';
import { differences, offline } from './support/verdicts.js';
import type { Judged } from './support/verdicts.js';
import { Cluster } from './support/cluster.js';
import { eventually } from './support/eventually.js';

const cluster = new Cluster(openSandbox(inject('sandbox')));
const crds = [appService.crd, streamIngress.crd, jobWatcher.crd, gaugeCrd];

beforeAll(async () => {
  const type = resourceType({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    namespaced: false,
  });
  for (const crd of crds) {
    await eventually(() => cluster.apply(type, crd as unknown as AnyObject, 'test'));
    await eventually(async () => {
      expect((await cluster.send('GET', pathOf(crd))).status).toBe(200);
    });
  }
});

afterAll(() => cluster.close());

interface Subject extends Pick<CorpusOptions, 'base' | 'more' | 'random'> {
  readonly crd: CustomResourceDefinition;
}

const metadata = { name: 'web', namespace: 'default' };
const upstream = { service: 'db', port: 5432 };
const listening = { listen: 9000, upstream };
const watching = {
  ...{ jobNamePatterns: ['^pi$'], completedTTL: '1h', failedTTL: '30m' },
  ...{ limits: { maxPerRun: 10, mode: 'Abort' }, keepLast: { completed: 3 } },
};

/** Whole specs, each beside what a right one has. */
function specs(base: object, given: readonly object[]): Mutation[] {
  return given.map((spec) => ({
    ...{ name: `the spec ${JSON.stringify(spec).slice(0, 80)}`, path: ['spec'], value: { ...base, ...spec } },
  }));
}

/** Both halves of the rules that are broken alone, one right and one wrong. */
function halves(rules: readonly { readonly spec: object; readonly valid: object }[]): object[] {
  return rules.flatMap(({ spec, valid }) => [spec, valid]);
}

function names(...given: readonly string[]): Mutation[] {
  return given.map((value) => ({
    ...{ name: `the name of ${value.length} ${value.slice(0, 9)}`, path: ['metadata', 'name'], value },
  }));
}

const subjects: Subject[] = [
  {
    crd: appService.crd,
    base: {
      ...{ apiVersion: 'kosmos.io/v1', kind: 'AppService', metadata },
      spec: { size: 2, image: 'nginx:1.27', ports: [{ name: 'http', port: 80 }] },
    },
    more: [
      ...['1web', 'a.b', 'web-', 'a'.repeat(63), 'a'.repeat(64)].map((value) => ({
        ...{ name: `the name ${value}`, path: ['metadata', 'name'], value },
      })),
    ],
    random: 400,
  },
  {
    crd: streamIngress.crd,
    base: { apiVersion: streamIngress.type.apiVersion, kind: 'StreamIngress', metadata, spec: listening },
    more: [
      ...names(
        '1web',
        'a.b',
        'web-',
        'A',
        'a'.repeat(63),
        'a'.repeat(64),
        'a.'.repeat(31) + 'a',
        'a'.repeat(254),
      ),
      ...specs(listening, halves(streamIngressCases.brokenRules)),
      ...specs(
        listening,
        streamIngressCases.brokenChanges.flatMap(({ before, after }) => [before, after]),
      ),
    ],
    random: 1500,
  },
  {
    crd: jobWatcher.crd,
    base: { apiVersion: jobWatcher.type.apiVersion, kind: 'JobWatcher', metadata, spec: watching },
    more: [
      ...names('1web', 'a.b', 'web-', 'a'.repeat(63), 'a'.repeat(64), 'a'.repeat(253), 'a'.repeat(254)),
      ...specs({}, halves(jobWatcherCases.brokenRules)),
      ...specs(
        {},
        jobWatcherCases.outOfBounds.map(({ spec }) => spec),
      ),
      ...specs({}, jobWatcherCases.edges),
    ],
    random: 1500,
  },
  {
    crd: gaugeCrd,
    base: {
      ...{ apiVersion: 'judge.example.com/v1', kind: 'Gauge', metadata },
      spec: { title: 'Title', items: [{ name: 'a', port: 1 }], tags: ['a', 'b'], others: ['b', 'a'] },
    },
    more: [
      { name: 'the name of the title', path: ['metadata', 'name'], value: 'title' },
      { name: 'a title like the name', path: ['spec', 'title'], value: 'web' },
      { name: 'a long name', path: ['metadata', 'name'], value: 'a'.repeat(31) },
      { name: 'a wrong name', path: ['metadata', 'name'], value: 'A_b' },
      { name: 'a wrong label', path: ['metadata', 'labels'], value: { a: '-b-' } },
      { name: 'right labels', path: ['metadata', 'labels'], value: { 'a.b/C': 'D', e: '' } },
      { name: 'a wrong key of a label', path: ['metadata', 'labels'], value: { 'a b': 'c', 'A.b/c': 'd' } },
      { name: 'keys of annotations', path: ['metadata', 'annotations'], value: { 'A.b/c': 'd e' } },
      { name: 'a wrong key of an annotation', path: ['metadata', 'annotations'], value: { '/a': 'b' } },
      { name: 'an unknown field of the metadata', path: ['metadata', 'lables'], value: {} },
      { name: 'a status', path: ['status'], value: { ready: 99 } },
      { name: 'an unknown field of the status', path: ['status'], value: { rdy: 99 } },
      { name: 'low above high', path: ['spec', 'limits'], value: { low: 3, high: 2 } },
      { name: 'both too high', path: ['spec', 'limits'], value: { low: 3000, high: 2000 } },
      { name: 'both choices', path: ['spec', 'choice'], value: { a: 'a', b: 'b' } },
      { name: 'the wrong c', path: ['spec', 'choice'], value: { a: 'a', c: 'no' } },
      { name: 'sets in another order', path: ['spec', 'others'], value: ['b', 'a'] },
      { name: 'other sets', path: ['spec', 'others'], value: ['b', 'c'] },
      {
        name: 'names twice',
        path: ['spec', 'items'],
        value: ['TCP', 'UDP'].map((protocol) => ({ name: 'a', protocol })),
      },
      {
        name: 'the same key thrice',
        path: ['spec', 'items'],
        value: [1, 2, 3].map((port) => ({ name: 'a', port })),
      },
      { name: 'the half', path: ['spec', 'ratio'], value: 0.5 },
      { name: 'an overflow', path: ['spec', 'big'], value: 1 },
      { name: 'no overflow', path: ['spec', 'big'], value: -1 },
      {
        name: 'a long name inside',
        path: ['spec', 'embedded'],
        value: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a-very-long-name' } },
      },
      { name: 'nothing inside', path: ['spec', 'embedded'], value: {} },
      { name: 'a bad label', path: ['spec', 'labels'], value: { k1: 'bad', x: 'y' } },
    ],
    random: 500,
  },
];

test.for(subjects)(
  'offline and online have the same verdict: $crd.spec.names.kind',
  { timeout: 300_000 },
  async (subject) => {
    const { crd, base, more, random } = subject;
    const schema = crd.spec.versions[0]!.schema.openAPIV3Schema;
    const cases = corpus({ schema, base, random, seed: 5, ...(more && { more }) }).filter(fitsIntoARequest);
    const judge = offline(crd);
    const judged = await inParallel(cases, async ({ name, object }): Promise<Judged> => {
      const query = { dryRun: 'All', fieldValidation: 'Strict' };
      const answer = await cluster.send('POST', pathOf(crd), { body: object, query });
      return { name, object, answer, problems: judge(object) };
    });

    const accepted = judged.filter(({ answer }) => answer.status === 201).length;
    console.log(`${crd.spec.names.kind}: ${cases.length} custom resources, ${accepted} of them accepted`);
    expect(cases.length).toBeGreaterThanOrEqual(500);
    expect(accepted).toBeGreaterThan(50);
    expect(judged.flatMap(differences)).toEqual([]);
  },
);

/** Whatever is larger is refused unread. */
function fitsIntoARequest({ object }: Case): boolean {
  return Buffer.byteLength(JSON.stringify(object)) <= 3 * 1024 * 1024;
}

function pathOf({ spec: { group, names, versions } }: CustomResourceDefinition): string {
  return `/apis/${group}/${versions[0]!.name}/namespaces/default/${names.plural}`;
}

async function inParallel(cases: readonly Case[], judge: (one: Case) => Promise<Judged>): Promise<Judged[]> {
  const judged: Judged[] = [];
  for (let at = 0; at < cases.length; at += 64) {
    judged.push(...(await Promise.all(cases.slice(at, at + 64).map(judge))));
  }
  return judged;
}
