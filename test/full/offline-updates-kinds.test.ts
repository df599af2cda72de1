import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import { storedVersion } from '../../src/contract/crd.js';
import type { Kind } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../src/kinds/stream-ingress/kind.js';
import { judge, KnownKinds } from '../../src/synth/custom-resource.js';
import { brokenChanges } from '../kinds/stream-ingress/broken-rules.js';
import { corpus } from '../synth/support/corpus.js';
import type { Mutation } from '../synth/support/mutations.js';
import { Cluster, collection } from './support/cluster.js';
import { installCrd } from './support/crds.js';
import { differences } from './support/verdicts.js';
import type { Judged } from './support/verdicts.js';

const cluster = new Cluster(openSandbox(inject('sandbox')));
const kinds = [streamIngress, jobWatcher];
let namespace: string;

beforeAll(async () => {
  for (const kind of kinds) await installCrd(cluster, kind);
  namespace = await cluster.makeNamespace('updates-kinds');
});
afterAll(() => cluster.close());

interface Subject {
  readonly kind: Kind;
  /** What is there already. */
  readonly before: readonly object[];
  /** Edits beside those that the schema tells of. */
  readonly more: readonly Mutation[];
}

const listening = { listen: 9000, upstream: { service: 'db', port: 5432 } };

const edit = (field: string, value: unknown): Mutation => ({
  ...{ name: `${field} ${JSON.stringify(value)}`, path: ['spec', field], value },
});

const subjects: Subject[] = [
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
      ...brokenChanges.flatMap(({ before, after }) =>
        [before, after].map((given) => ({
          ...{ name: JSON.stringify(given), path: ['spec'], value: { ...listening, ...given } },
        })),
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

test.for(subjects)(
  'an update has the same verdict offline and online, and the same paths: $kind.type.kind',
  { timeout: 300_000 },
  async ({ kind, before, more }) => {
    const version = new KnownKinds([kind]).find(kind.type);
    if (!('kind' in version)) throw new Error(version.message);
    const schema = storedVersion(kind.crd).schema.openAPIV3Schema;
    const path = collection(kind.type, namespace);
    const { apiVersion, kind: name } = kind.type;
    const update = async (given: { name: string; object: object }, live: AnyObject): Promise<Judged> => {
      const query = { dryRun: 'All', fieldValidation: 'Strict' };
      const answer = await cluster.send('PUT', `${path}/${live.metadata.name}`, {
        body: given.object,
        query,
      });
      return { ...given, answer, problems: judge(version, version.withDefaults(given.object), live) };
    };
    const judged: Judged[] = [];
    for (const [index, spec] of before.entries()) {
      const live = await cluster.create(kind.type, {
        ...{ apiVersion, kind: name, metadata: { namespace, name: `before-${index}` }, spec },
      });
      const cases = corpus({ schema, base: live, more, random: 300, seed: 31 + index });
      judged.push(...(await inParallel(cases, (each) => update(each, live))));
    }

    const accepted = judged.filter(({ answer }) => answer.status === 200).length;
    console.log(
      `${name}: ${judged.length} updates of ${before.length} objects, ${accepted} of them accepted`,
    );
    expect(judged.length).toBeGreaterThanOrEqual(1_000);
    expect(accepted).toBeGreaterThan(100);
    expect(judged.flatMap(differences)).toEqual([]);
  },
);

async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += 64)
    results.push(...(await Promise.all(items.slice(at, at + 64).map(work))));
  return results;
}
