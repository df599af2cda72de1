import fc from 'fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { openSandbox } from '../../sandbox/client.js';
import type { AnyObject } from '../../src/contract/object.js';
import type { ResourceType } from '../../src/contract/resource.js';
import { isAppliedBy, managedFieldsOf } from '../../src/engine/managed-fields.js';
import { FieldPaths } from '../../src/engine/managed-fields.js';
import { Cluster, deployments, services } from './support/cluster.js';
import { valuesAt } from './support/values-at.js';

const MANAGER = 'digest-controller';
const SEED = 20_261_121;
const OBJECTS_PER_TYPE = 20;
const EDITS_PER_OBJECT = 2;

const cluster = new Cluster(openSandbox(inject('sandbox')));
let namespace: string;

beforeAll(async () => {
  namespace = await cluster.makeNamespace('digest');
});
afterAll(async () => {
  await cluster.close();
});

interface Subject {
  readonly type: ResourceType;
  readonly intent: (name: string) => AnyObject;
  readonly edits: fc.Arbitrary<Edit>;
}

/** What somebody else does to an object. */
interface Edit {
  readonly what: string;
  readonly contentType: string;
  readonly body: (live: AnyObject) => unknown;
  readonly query?: Readonly<Record<string, string>>;
  readonly subresource?: string;
}

type Json = Readonly<Record<string, unknown>>;

const merge = (patch: Json): Edit => ({
  what: `merges ${JSON.stringify(patch)}`,
  contentType: 'application/merge-patch+json',
  body: () => patch,
});
const strategic = (patch: Json): Edit => ({
  what: `merges by keys ${JSON.stringify(patch)}`,
  contentType: 'application/strategic-merge-patch+json',
  body: () => patch,
});
const reverse = (...path: readonly string[]): Edit => ({
  what: `reverses ${path.join('.')}`,
  contentType: 'application/json-patch+json',
  body: (live) => [{ op: 'replace', path: `/${path.join('/')}`, value: [...listAt(live, path)].reverse() }],
});
const apply = (patch: Json): Edit => ({
  what: `applies by force ${JSON.stringify(patch)}`,
  contentType: 'application/apply-patch+yaml',
  body: ({ apiVersion, kind }) => ({ apiVersion, kind, ...patch }),
  query: { fieldManager: 'another-controller', force: 'true' },
});

function listAt(object: unknown, path: readonly string[]): readonly unknown[] {
  return path.reduce((at, name) => (at as Record<string, unknown>)[name], object) as readonly unknown[];
}

const pod = (container: Json): Json => ({
  spec: { template: { spec: { containers: [{ name: 'web', ...container }] } } },
});
const sidecar = { name: 'sidecar', image: 'example.com/sidecar' };
const labels = (values: Json): Json => ({ metadata: { labels: values } });
/** Ours, and others. */
const value = (own: unknown, ...others: unknown[]): fc.Arbitrary<unknown> => fc.constantFrom(own, ...others);

const metadataEdits: readonly fc.Arbitrary<Edit>[] = [
  value('web', 'other', null).map((app) => merge(labels({ app }))),
  value('web', 'other').map((app) => apply(labels({ app }))),
  fc.constant(merge(labels({ team: 'shop' }))),
  fc.constant(merge({ metadata: { annotations: { 'example.com/note': 'added' } } })),
];

const subjects: readonly Subject[] = [
  {
    type: deployments,
    intent: (name) => ({
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace, labels: { app: 'web' } } },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: 'web' } },
        template: {
          metadata: { labels: { app: 'web' } },
          spec: {
            containers: [
              {
                ...{ name: 'web', image: 'example.com/web:1', args: ['-a', '-b'], command: [] },
                env: [
                  { name: 'A', value: '1' },
                  { name: 'B', value: '2' },
                ],
                ports: [{ containerPort: 80, protocol: 'TCP' }],
                resources: { limits: { cpu: '1000m' } },
              },
            ],
            // One that is merged by its items; `command` is owned as a whole.
            hostAliases: [],
          },
        },
      },
    }),
    edits: fc.oneof(
      ...metadataEdits,
      value(0, 1).map((replicas) => merge({ spec: { replicas } })),
      value(0, 1).map((replicas) => apply({ spec: { replicas } })),
      value('example.com/web:1', 'example.com/web:2').map((image) => strategic(pod({ image }))),
      value('example.com/web:1', 'example.com/web:2').map((image) => apply(pod({ image }))),
      value('1', '9').map((one) => strategic(pod({ env: [{ name: 'A', value: one }] }))),
      value(['-a', '-b'], ['-b', '-a'], ['-a']).map((args) => strategic(pod({ args }))),
      value([], ['sh']).map((command) => strategic(pod({ command }))),
      value([], ['sh']).map((command) => apply(pod({ command }))),
      value('1', '1000m', '2').map((cpu) => strategic(pod({ resources: { limits: { cpu } } }))),
      fc.constantFrom(
        strategic(pod({ env: [{ name: 'B', $patch: 'delete' }] })),
        strategic(pod({ ports: [{ containerPort: 80, $patch: 'delete' }] })),
        strategic(pod({ env: [{ name: 'C', value: '3' }] })),
        strategic(pod({ ports: [{ containerPort: 80, name: 'http' }] })),
        strategic({ spec: { template: { spec: { containers: [sidecar] } } } }),
        strategic({ spec: { template: { spec: { hostAliases: [{ ip: '192.0.2.1', hostnames: ['a'] }] } } } }),
        apply({ spec: { template: { spec: { containers: [sidecar] } } } }),
        reverse('spec', 'template', 'spec', 'containers', '0', 'env'),
        { ...merge({ status: { readyReplicas: 0 } }), subresource: '/status' },
      ),
    ),
  },
  {
    type: services,
    intent: (name) => ({
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name, namespace, labels: { app: 'web' } } },
      spec: {
        type: 'NodePort',
        selector: { app: 'web' },
        ports: [
          { name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 },
          { name: 'dns', port: 53, protocol: 'UDP', targetPort: 53 },
        ],
      },
    }),
    edits: fc.oneof(
      ...metadataEdits,
      value('NodePort', 'ClusterIP').map((type) => merge({ spec: { type } })),
      value({ app: 'web' }, { app: 'other' }, { app: 'web', more: 'x' }).map((selector) =>
        merge({ spec: { selector } }),
      ),
      value({ app: 'web' }, { app: 'other' }).map((selector) => apply({ spec: { selector } })),
      value(8080, 'web').map((targetPort) => strategic({ spec: { ports: [{ port: 80, targetPort }] } })),
      value('http', 'web').map((name) => strategic({ spec: { ports: [{ port: 80, name }] } })),
      fc.constantFrom(
        strategic({ spec: { ports: [{ port: 9090, name: 'added' }] } }),
        strategic({ spec: { ports: [{ port: 53, $patch: 'delete' }] } }),
        strategic({ spec: { ports: [{ port: 80, appProtocol: 'http' }] } }),
        reverse('spec', 'ports'),
        merge({ spec: { sessionAffinity: 'ClientIP' } }),
      ),
    ),
  },
];

/** Applies one object, lets others edit it, and says after each edit what the digest and what the values say. */
async function verdicts({ type, intent }: Subject, name: string, edits: readonly Edit[]): Promise<object[]> {
  const wanted = intent(name);
  const root = type.apiVersion.includes('/') ? `/apis/${type.apiVersion}` : `/api/${type.apiVersion}`;
  const path = `${root}/namespaces/${namespace}/${type.plural}/${name}`;
  const applied = await cluster.send('PATCH', path, {
    ...{ body: wanted, contentType: 'application/apply-patch+yaml' },
    query: { fieldManager: MANAGER, force: 'true' },
  });
  expect(applied.status, String(applied.body.message)).toBe(201);
  const paths = new FieldPaths();
  const stands = (live: AnyObject): boolean => {
    const owned = paths.owned(live).get(MANAGER);
    return owned === paths.expected(wanted, owned);
  };
  expect(stands(applied.body)).toBe(true);
  const own = managedFieldsOf(applied.body).find((entry) => isAppliedBy(MANAGER, entry))!.fieldsV1!;
  const before = valuesAt(applied.body, own);

  const told: object[] = [];
  let live = applied.body;
  let touched = false;
  for (const {
    what,
    body,
    contentType,
    query = { fieldManager: 'kubectl-edit' },
    subresource = '',
  } of edits) {
    const answer = await cluster.send('PATCH', path + subresource, { body: body(live), contentType, query });
    expect(answer.status, `${what}: ${String(answer.body.message)}`).toBe(200);
    live = answer.body;
    const values = valuesAt(live, own);
    const changed = Object.keys(before).filter((field) => values[field] !== before[field]);
    // What was lost stays lost, even if somebody writes our value again.
    touched ||= changed.length > 0;
    told.push({ name, what, changed, digest: stands(live), values: !touched });
  }
  return told;
}

test('the digest says that an apply stands exactly as long as nobody has changed or removed a field of it', async () => {
  const runs = subjects.flatMap((subject, n) =>
    fc
      .sample(fc.array(subject.edits, { minLength: EDITS_PER_OBJECT, maxLength: EDITS_PER_OBJECT }), {
        numRuns: OBJECTS_PER_TYPE,
        seed: SEED + n,
      })
      .map((edits, index) => verdicts(subject, `web-${n}-${index}`, edits)),
  );

  const told = (await Promise.all(runs)).flat() as { digest: boolean; values: boolean }[];

  expect(told.filter(({ digest, values }) => digest !== values)).toEqual([]);
  // Both happen, or the test would say nothing.
  const standing = told.filter(({ digest }) => digest).length;
  expect(standing).toBeGreaterThan(told.length / 5);
  expect(standing).toBeLessThan((told.length * 4) / 5);
});
