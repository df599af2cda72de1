import { beforeAll, expect, test } from 'vitest';
import { APPLIED_HASH_ANNOTATION } from '../../src/contract/names.js';
import type { AnyObject } from '../../src/contract/object.js';
import { ownedFields, stands } from '../../src/engine/steps/managed-fields.js';
import { collection, deployments, inBatches, services } from '../support/cluster.js';
import { openCluster } from '../support/test-clusters.js';

const MANAGER = 'digest-controller';
const cluster = openCluster();
let namespace: string;

beforeAll(async () => {
  namespace = await cluster.makeNamespace('digest');
});

type Json = Readonly<Record<string, unknown>>;

/** What somebody else does to an object. */
interface Edit {
  readonly contentType: string;
  readonly body: unknown;
  readonly query?: Readonly<Record<string, string>>;
  readonly subresource?: string;
}

const merge = (body: Json): Edit => ({ contentType: 'application/merge-patch+json', body });
/** A merge by the keys of lists. */
const strategic = (body: Json): Edit => ({ contentType: 'application/strategic-merge-patch+json', body });
const replace = (path: string, value: unknown): Edit => ({
  contentType: 'application/json-patch+json',
  body: [{ op: 'replace', path, value }],
});
const force = (body: Json): Edit => ({
  contentType: 'application/apply-patch+yaml',
  body,
  query: { fieldManager: 'another-controller', force: 'true' },
});

const ENV = ['A', 'B'].map((name) => ({ name, value: '1' }));
const PORTS = [
  { name: 'http', port: 80, protocol: 'TCP', targetPort: 8080 },
  { name: 'dns', port: 53, protocol: 'UDP', targetPort: 53 },
];
const labels = (values: Json): Json => ({ metadata: { labels: values } });
const podSpec = (spec: Json): Json => ({ spec: { template: { spec } } });
const container = (fields: Json): Json => podSpec({ containers: [{ name: 'web', ...fields }] });
const sidecar = podSpec({ containers: [{ name: 'sidecar', image: 'example.com/sidecar' }] });
const port = (fields: Json): Edit => strategic({ spec: { ports: [fields] } });

const specs = {
  Deployment: {
    replicas: 0,
    selector: { matchLabels: { app: 'web' } },
    template: {
      metadata: { labels: { app: 'web' } },
      spec: {
        containers: [
          {
            ...{ name: 'web', image: 'example.com/web:1', args: ['-a', '-b'], command: [], env: ENV },
            ports: [{ containerPort: 80, protocol: 'TCP' }],
            resources: { limits: { cpu: '1000m' } },
          },
        ],
        // One that is merged by its items; `command` is owned as a whole.
        hostAliases: [],
      },
    },
  },
  Service: { type: 'NodePort', selector: { app: 'web' }, ports: PORTS },
};

const cases: Readonly<
  Record<keyof typeof specs, Readonly<Record<'stands' | 'falls', readonly (readonly Edit[])[]>>>
> = {
  Deployment: {
    stands: [
      [merge(labels({ team: 'shop' }))],
      [merge({ metadata: { annotations: { 'example.com/note': 'added' } } })],
      [merge(labels({ app: 'web' }))],
      [force(labels({ app: 'web' }))],
      [force({ spec: { replicas: 0 } })],
      [strategic(container({ resources: { limits: { cpu: '1' } } }))],
      [strategic(container({ env: [{ name: 'C', value: '3' }] }))],
      [strategic(container({ ports: [{ containerPort: 80, name: 'http' }] }))],
      [strategic(sidecar), force(sidecar)],
      [strategic(podSpec({ hostAliases: [{ ip: '192.0.2.1', hostnames: ['a'] }] }))],
      [replace('/spec/template/spec/containers/0/env', [...ENV].reverse())],
      [{ ...merge({ status: { readyReplicas: 0 } }), subresource: '/status' }],
    ],
    falls: [
      [merge(labels({ app: 'other' }))],
      [merge(labels({ app: null }))],
      // What was lost stays lost, even if somebody writes our value again.
      [merge(labels({ app: 'other' })), merge(labels({ app: 'web' }))],
      [merge({ spec: { replicas: 1 } })],
      [force({ spec: { replicas: 1 } })],
      [force(container({ image: 'example.com/web:2' }))],
      [strategic(container({ env: [{ name: 'A', value: '9' }] }))],
      [strategic(container({ env: [{ name: 'B', $patch: 'delete' }] }))],
      [strategic(container({ ports: [{ containerPort: 80, $patch: 'delete' }] }))],
      [strategic(container({ args: ['-b', '-a'] }))],
      [strategic(container({ command: ['sh'] }))],
      [strategic(container({ resources: { limits: { cpu: '2' } } }))],
    ],
  },
  Service: {
    stands: [
      [port({ port: 9090, name: 'added' })],
      [port({ port: 80, appProtocol: 'http' })],
      [replace('/spec/ports', [...PORTS].reverse())],
      [merge({ spec: { sessionAffinity: 'ClientIP' } })],
    ],
    falls: [
      [merge({ spec: { selector: { app: 'web', more: 'x' } } })],
      [force({ spec: { selector: { app: 'other' } } })],
      [port({ port: 80, targetPort: 'web' })],
      [port({ port: 80, name: 'web' })],
      [port({ port: 53, $patch: 'delete' })],
    ],
  },
};

/** Applies an object, lets others edit it, and returns whether the apply still stands by what is in its fields. */
async function standsAfter(kind: keyof typeof specs, name: string, edits: readonly Edit[]): Promise<boolean> {
  const type = kind === 'Deployment' ? deployments : services;
  const path = `${collection(type, namespace)}/${name}`;
  const annotations = { [APPLIED_HASH_ANNOTATION]: 'a hash' };
  const metadata = { name, namespace, labels: { app: 'web' }, annotations };
  const wanted = { apiVersion: type.apiVersion, kind, metadata, spec: specs[kind] };
  const standsOn = (live: AnyObject): boolean =>
    stands({ object: live, owned: ownedFields(live) }, MANAGER, wanted);
  const change = async ({ subresource = '', contentType, body, ...edit }: Edit): Promise<AnyObject> => {
    const identity = { apiVersion: type.apiVersion, kind };
    const sent = contentType.includes('apply') ? { ...identity, ...(body as Json) } : body;
    const { query = { fieldManager: 'kubectl-edit' } } = edit;
    const answer = await cluster.send('PATCH', path + subresource, { body: sent, contentType, query });
    expect(answer.status, `${JSON.stringify(body)}: ${String(answer.body.message)}`).toBeLessThan(300);
    return answer.body;
  };
  let live = await change({ ...force(wanted), query: { fieldManager: MANAGER, force: 'true' } });
  expect(standsOn(live)).toBe(true);
  for (const edit of edits) live = await change(edit);
  return standsOn(live);
}

test.each(['Deployment', 'Service'] as const)(
  'the record says that an apply of a %s stands exactly as long as no one has changed or removed a field of it',
  async (kind) => {
    for (const verdict of ['stands', 'falls'] as const)
      await inBatches(cases[kind][verdict], async (edits, index) => {
        const stands = await standsAfter(kind, `${verdict}-${index}`, edits);
        expect(stands, JSON.stringify(edits)).toBe(verdict === 'stands');
      });
  },
);
