import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Construct } from 'constructs';
import { beforeAll, expect, test } from 'vitest';
import { loadCrd } from '../../src/author/load-crd.js';
import { storedVersion } from '../../src/contract/crd.js';
import type { CustomResourceDefinition, StructuralSchema } from '../../src/contract/crd.js';
import { defineKind } from '../../src/author/define-kind.js';
import { OperatorError } from '../../src/contract/error.js';
import type { Kind } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { definitionType, resourceType } from '../../src/contract/resource.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { judge, KnownKinds } from '../../src/validate/custom-resource.js';
import { formatProblem, UNKNOWN_FIELD } from '../../src/validate/problem.js';
import { unknownRules } from '../../src/validate/cel/rules.js';
import { compileSchema } from '../../src/validate/schema.js';
import * as appServiceCases from '../kinds/app-service/broken-rules.js';
import * as jobWatcherCases from '../kinds/job-watcher/broken-rules.js';
import * as streamIngressCases from '../kinds/stream-ingress/broken-rules.js';
import { celGroups } from '../synth/support/cel-rules.js';
import { corpus } from '../synth/support/corpus.js';
import type { CorpusOptions } from '../synth/support/corpus.js';
import { gaugeCrd } from '../synth/support/gauge-crd.js';
import type { Mutation } from '../synth/support/mutations.js';
import { oddSchemas, oddValues } from '../synth/support/odd-schemas.js';
import { shiftCrd, withoutBounds } from '../synth/support/shift-crd.js';
import { befores, updates } from '../synth/support/updates.js';
import { collection, eventually, inBatches, putStatus } from '../support/cluster.js';
import type { Answer } from '../support/cluster.js';
import { withFolder } from '../support/commands.js';
import { openCluster } from '../support/test-clusters.js';
import { differences, offline } from '../support/verdicts.js';
import type { Judged } from '../support/verdicts.js';

/** That synth and the API server have the same verdict on custom resources, and name the same paths. */
const cluster = openCluster();
const strict = { dryRun: 'All', fieldValidation: 'Strict' };
const shifts = resourceType({ apiVersion: 'judge.example.com/v1', kind: 'Shift' });

beforeAll(async () => {
  for (const crd of [appService.crd, streamIngress.crd, jobWatcher.crd, gaugeCrd, withoutBounds(shiftCrd)]) {
    await eventually(() => cluster.apply(definitionType, crd as unknown as AnyObject, 'test'));
    await eventually(async () => {
      expect((await cluster.send('GET', pathOf(crd))).status).toBe(200);
    });
  }
});

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
      ...names('1web', 'a.b', 'web-', 'a'.repeat(63), 'a'.repeat(64)),
      ...specs({ size: 2, image: 'nginx:1.27' }, halves(appServiceCases.brokenRules)),
    ],
    random: 400,
  },
  {
    crd: streamIngress.crd,
    base: { apiVersion: streamIngress.type.apiVersion, kind: 'StreamIngress', metadata, spec: listening },
    more: [
      ...names('1web', 'a.b', 'web-', 'A', 'a'.repeat(63), 'a'.repeat(64), 'a.'.repeat(31) + 'a'),
      ...names('a'.repeat(254)),
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
  async ({ crd, base, more = [], random }) => {
    const schema = crd.spec.versions[0]!.schema.openAPIV3Schema;
    // What is larger is refused unread.
    const cases = corpus({ schema, base, random, seed: 5, more }).filter(
      ({ object }) => Buffer.byteLength(JSON.stringify(object)) <= 3 * 1024 * 1024,
    );
    const judgeOffline = offline(crd);
    const judged = await inBatches(
      cases,
      async ({ name, object }): Promise<Judged> => {
        const answer = await cluster.send('POST', pathOf(crd), { body: object, query: strict });
        return { name, object, answer, problems: judgeOffline(object) };
      },
      64,
    );

    requireSame(judged, 500, 50);
  },
);

/** Requires one verdict on every custom resource, of which there are so many, and so many that are accepted. */
function requireSame(judged: readonly Judged[], least: number, leastAccepted: number): void {
  const accepted = judged.filter(({ answer }) => answer.status < 300).length;
  console.log(`${judged.length} custom resources, ${accepted} of them accepted`);
  expect(judged.length).toBeGreaterThanOrEqual(least);
  expect(accepted).toBeGreaterThan(leastAccepted);
  expect(judged.flatMap(differences)).toEqual([]);
}

function pathOf({ spec: { group, names: all, versions } }: CustomResourceDefinition): string {
  return `/apis/${group}/${versions[0]!.name}/namespaces/default/${all.plural}`;
}

/** The CRD of a kind whose spec has these properties, as it is read from a file. */
async function crdWith(
  plural: string,
  properties: Readonly<Record<string, unknown>>,
): Promise<CustomResourceDefinition> {
  const spec = { type: 'object', properties };
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
  const crd = {
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
    metadata: { name: `${plural}.judge.example.com` },
    spec: {
      ...{ group: 'judge.example.com', scope: 'Namespaced' },
      names: { kind: plural.slice(0, 1).toUpperCase() + plural.slice(1, -1), plural },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  };
  return withFolder(async (folder) => {
    await writeFile(join(folder, 'crd.json'), JSON.stringify(crd));
    return loadCrd(join(folder, 'crd.json'));
  });
}

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/** The names of the properties of the spec that the API server refuses, with what it says of them. */
function refusedOnline({ body }: Answer): Map<string, string> {
  const { causes = [] } =
    (body as { details?: { causes?: { field: string; message: string }[] } }).details ?? {};
  const named = causes.flatMap(({ field, message }) => {
    const [, name] = /\bspec\.(p\d+)\b/.exec(`${field} ${message}`) ?? [];
    return name === undefined ? [] : [[name, message] as const];
  });
  return new Map(named);
}

/** Why a schema can't be used here. @throws what no author should see */
function refusalOf(schema: StructuralSchema): string | undefined {
  try {
    compileSchema(schema);
    return undefined;
  } catch (error) {
    if (error instanceof OperatorError && error.reason === 'InvalidDefinition') return error.message;
    throw error;
  }
}

test('odd schemas are accepted and refused as by the API server, and what they say of values is the same', async () => {
  const accepted: Record<string, StructuralSchema> = {};
  const differing: string[] = [];
  const judge = async (schema: StructuralSchema, index: number): Promise<void> => {
    const crd = await crdWith('odds', { p: schema });
    const refused = refusalOf(storedVersion(crd).schema.openAPIV3Schema);
    const { status, body } = await cluster.send('POST', definitions, { body: crd, query: { dryRun: 'All' } });
    const told = String(body.message);
    // The rules of structural schemas are left to the API server, but for the form of keywords.
    const isOfForm = status !== 422 || /pattern|\.type: Unsupported/.test(told);
    if (status < 300 && !refused) accepted[`p${index}`] = schema;
    else if (status < 300 || (!refused && isOfForm))
      differing.push(`${JSON.stringify(schema)}: online ${status} ${told.slice(0, 300)}, here ${refused}`);
  };
  await inBatches(oddSchemas(), judge, 64);
  expect(differing).toEqual([]);

  const crd = await crdWith('odds', accepted);
  await cluster.create(definitionType, crd as unknown as AnyObject);
  await eventually(async () => {
    expect((await cluster.send('GET', pathOf(crd))).status).toBe(200);
  });
  const judgeOffline = offline(crd);
  for (const value of oddValues) {
    const spec = Object.fromEntries(Object.keys(accepted).map((name) => [name, value]));
    const object = { apiVersion: 'judge.example.com/v1', kind: 'Odd', metadata, spec };
    const answer = await cluster.send('POST', pathOf(crd), { body: object, query: { dryRun: 'All' } });
    const online = refusedOnline(answer);
    const here = new Map(
      judgeOffline(object)
        .filter(({ message }) => message !== UNKNOWN_FIELD)
        .map(({ path, message }) => [String(path[1]), message]),
    );
    for (const [name, schema] of Object.entries(accepted))
      if (online.has(name) !== here.has(name))
        differing.push(
          `${JSON.stringify(value)} by ${JSON.stringify(schema)}: online ${online.get(name) ?? 'accepted'}, here ${here.get(name) ?? 'accepted'}`,
        );
  }
  expect(Object.keys(accepted).length).toBeGreaterThan(100);
  expect(differing).toEqual([]);
});

/** Rules that are judged otherwise here, see docs/reference/compatibility.md. */
const OTHERWISE: readonly string[] = [
  "string(self) == '0.1s'",
  "string(self) == '1e+20'",
  'timestamp(self) > timestamp(0)',
];

test('rules in CEL have the same verdict, over names, text, numbers, times, lists and maps', async () => {
  const all = celGroups.flatMap(({ schema, values, rules }) =>
    rules.map((rule) => ({ rule, values, schema: { ...schema, 'x-kubernetes-validations': [{ rule }] } })),
  );
  const named = new Map(all.map((each, index) => [`p${index}`, each]));
  const crdOf = (): Promise<CustomResourceDefinition> =>
    crdWith('rules', Object.fromEntries([...named].map(([name, { schema }]) => [name, schema])));
  const dry = await cluster.send('POST', definitions, { body: await crdOf(), query: { dryRun: 'All' } });
  const told = JSON.stringify(dry.body);
  // What the API server doesn't take for CEL can't be in any CRD.
  for (const [, name = ''] of told.matchAll(/properties\[spec\]\.properties\[(p\d+)\]/g)) named.delete(name);
  const crd = await crdOf();
  await cluster.create(definitionType, crd as unknown as AnyObject);
  await eventually(async () => {
    expect((await cluster.send('GET', pathOf(crd))).status).toBe(200);
  });
  const unknown = new Set(unknownRules(storedVersion(crd).schema.openAPIV3Schema).map(({ rule }) => rule));
  const judgeOffline = offline(crd);
  const differing: string[] = [];
  for (let turn = 0; turn < Math.max(...celGroups.map(({ values }) => values.length)); turn++) {
    const spec = Object.fromEntries(
      Array.from(named, ([name, { values }]) => [name, values[turn % values.length]]),
    );
    const object = { apiVersion: 'judge.example.com/v1', kind: 'Rule', metadata, spec };
    const online = refusedOnline(await cluster.send('POST', pathOf(crd), { body: object, query: strict }));
    const here = new Map(judgeOffline(object).map(({ path, message }) => [String(path[1]), message]));
    for (const [name, { rule }] of named) {
      if (unknown.has(rule) || online.has(name) === here.has(name)) continue;
      const value = JSON.stringify(spec[name]);
      differing.push(`${rule} of ${value}: online ${online.get(name)}, here ${here.get(name)}`);
    }
  }
  expect(named.size).toBeGreaterThan(250);
  expect(differing.filter((line) => !OTHERWISE.some((rule) => line.startsWith(`${rule} of`)))).toEqual([]);
});

/** Returns the verdict of both on an update. */
function judgeUpdate(kind: Kind): (name: string, object: object, live: AnyObject) => Promise<Judged> {
  const version = new KnownKinds([kind]).find(kind.type);
  if (!('kind' in version)) throw new Error(version.message);
  return async (name, object, live) => {
    const path = `${collection(kind.type, live.metadata.namespace)}/${live.metadata.name}`;
    const answer = await cluster.send('PUT', path, { body: object, query: strict });
    return { name, object, answer, problems: judge(version, version.withDefaults(object), live) };
  };
}

const edit = (field: string, value: unknown): Mutation => ({
  ...{ name: `${field} ${JSON.stringify(value)}`, path: ['spec', field], value },
});

/** Specs that are there, and edits beside those that the schema suggests. */
const edited: readonly { kind: Kind; before: readonly object[]; more: readonly Mutation[] }[] = [
  {
    kind: streamIngress,
    before: [
      listening,
      { ...listening, className: 'edge' },
      { ...listening, protocol: 'UDP', is_service: false },
      { ...listening, listen: 1, proxyProtocol: { decode: true } },
      { ...listening, upstream: { namespace: 'infra', service: 'db', port: 'sql' }, className: 'a' },
    ],
    more: [
      ...specs(
        listening,
        streamIngressCases.brokenChanges.flatMap(({ before, after }) => [before, after]),
      ),
      ...[1, 9000, 9001].map((listen) => edit('listen', listen)),
      ...['TCP', 'UDP', undefined].map((protocol) => edit('protocol', protocol)),
      ...['edge', 'a', 'b', undefined].map((className) => edit('className', className)),
    ],
  },
  {
    kind: jobWatcher,
    before: [
      {},
      { jobNamePatterns: ['^pi$', 'x'], completedTTL: '1h', failedTTL: '30m', frequency: '15s' },
      { limits: { maxPerRun: 10, maxPercent: 100, mode: 'Throttle' }, keepLast: { failed: 3 } },
      { selector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['a'] }] }, tracked: 'Delete' },
    ],
    more: [
      edit('jobNamePatterns', ['x', '^pi$']),
      edit('jobNamePatterns', ['x', '(', '^pi$']),
      edit('limits', { mode: 'Throttle' }),
      edit('limits', { maxPercent: 101 }),
    ],
  },
];

test.for(edited)(
  'an update has the same verdict offline and online, and the same paths: $kind.type.kind',
  { timeout: 300_000 },
  async ({ kind, before, more }) => {
    const namespace = await cluster.makeNamespace('updates');
    const schema = storedVersion(kind.crd).schema.openAPIV3Schema;
    const { apiVersion, kind: name } = kind.type;
    const update = judgeUpdate(kind);
    const judged: Judged[] = [];
    for (const [index, spec] of before.entries()) {
      const metadata = { namespace, name: `before-${index}` };
      const live = await cluster.create(kind.type, { apiVersion, kind: name, metadata, spec });
      const cases = corpus({ schema, base: live, more, random: 300, seed: 31 + index });
      judged.push(...(await inBatches(cases, (each) => update(each.name, each.object, live), 64)));
    }

    requireSame(judged, 1_000, 100);
  },
);

test('null in the metadata is absent, and the value of a label or an annotation is empty text', async () => {
  const [version] = [new KnownKinds([jobWatcher]).find(jobWatcher.type)];
  if (!('kind' in version)) throw new Error(version.message);
  const none = [
    'labels',
    'annotations',
    'finalizers',
    'ownerReferences',
    'managedFields',
    'generation',
    'uid',
    'name',
  ];
  const all = [
    ...[...none, 'resourceVersion', 'creationTimestamp', 'generateName'].map((field) => ({ [field]: null })),
    ...[
      { labels: { a: null } },
      { annotations: { a: null } },
      { finalizers: [null] },
      { ownerReferences: [null] },
    ],
  ];
  const { apiVersion, kind } = jobWatcher.type;
  for (const fields of all) {
    const object = { apiVersion, kind, metadata: { ...metadata, ...fields }, spec: {} };
    const { status } = await cluster.send('POST', pathOf(jobWatcher.crd), { body: object, query: strict });
    const problems = judge(version, version.withDefaults(object)).map(formatProblem);
    expect({ fields, accepted: status < 300 }, problems.join()).toEqual({
      fields,
      accepted: problems.length === 0,
    });
  }
});

test('what was made before there were bounds and rules is judged as the API server judges it', async () => {
  const schema = shiftCrd.spec.versions[0]!.schema.openAPIV3Schema;
  const objects = befores(schema, 60, 11);
  const namespace = await cluster.makeNamespace('shifts');
  const { apiVersion, kind } = shifts;
  const objectOf = (name: string, spec: object): AnyObject => ({
    ...{ apiVersion, kind, metadata: { name, namespace }, spec },
  });
  const live = new Map<string, AnyObject>();
  await inBatches(objects, async ({ name, spec }, index) => {
    await cluster.create(shifts, objectOf(name, spec));
    const place = { type: shifts, namespace, name };
    // Every other one has a status, right or wrong.
    if (index % 2 > 0) await putStatus(cluster, place, { ready: index % 7 });
    live.set(name, await cluster.get(place));
  });
  const definition = { type: definitionType, name: shiftCrd.metadata.name };
  await cluster.replaceSpec(definition, shiftCrd.spec);
  await eventually(async () => {
    const body = objectOf('wrong', { fixed: 'named' });
    expect((await cluster.send('POST', collection(shifts, namespace), { body })).status).toBe(422);
  });

  const update = judgeUpdate(defineKind({ crd: shiftCrd, construct: Construct, children: [] }));
  const judged = await inBatches(
    updates(schema, objects, 23),
    ({ name, before, spec }) => {
      const old = live.get(before.name)!;
      return update(name, { ...old, status: { ready: 0 }, spec }, old);
    },
    32,
  );

  requireSame(judged, 1_000, 200);
}, 300_000);
