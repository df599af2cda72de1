import { join } from 'node:path';
import { Construct } from 'constructs';
import { describe, expect, test } from 'vitest';
import { applyResources, waitUntilReady } from '../../src/cli/apply.js';
import type { Applied } from '../../src/cli/apply.js';
import { defineKind } from '../../src/author/define-kind.js';
import type { OwnedKind } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { resourceType } from '../../src/contract/resource.js';
import type { InstalledOperator } from '../../src/install/installed.js';
import { render } from '../../src/render/renderer.js';
import { Api } from '../../src/client/api.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { anObject, DEPLOYMENT, failure } from '../engine/support/builders.js';
import { VirtualClock } from '../engine/support/virtual-clock.js';
import { StoredServer } from './support/stored-server.js';
import { folderWith, Widget, widgetCrd, widgetKind } from '../synth/fixtures.js';
import type { WidgetSpec } from '../synth/fixtures.js';

const PATH = '/apis/demo.example.com/v1/namespaces/shop/widgets';
const document = (name: string, version = 'v1') =>
  `---\napiVersion: demo.example.com/${version}\nkind: Widget\nmetadata: { name: ${name} }\nspec: { image: nginx }\n`;

async function applied(
  server: StoredServer,
  text: string,
  kind: OwnedKind = widgetKind(),
  { dryRun = false, operator }: { dryRun?: boolean; operator?: InstalledOperator } = {},
) {
  const lines: string[] = [];
  const folder = folderWith({ 'a.yaml': text });
  const props = { kinds: [kind], render, transport: server, prune: false, dryRun, namespace: 'shop' };
  let failed = '';
  try {
    await applyResources({
      ...{ ...props, sources: [join(folder, 'a.yaml')], recursive: false, warn: () => undefined },
      operatorOf: () => Promise.resolve(operator),
      report: (line) => Promise.resolve(void lines.push(line)),
    });
  } catch (error) {
    failed = (error as Error).message;
  }
  return { lines, failed };
}

const live = (name: string): AnyObject => ({
  apiVersion: 'demo.example.com/v1',
  kind: 'Widget',
  metadata: { name, namespace: 'shop' },
  spec: { image: 'old', size: 1 },
});

/** An API server where another client comes in between before `web` is written, once. */
function disturbed(disturb: (server: StoredServer, known: AnyObject) => void): StoredServer {
  let isDone = false;
  const server = new StoredServer([], ({ method, path, query }, self) => {
    if (isDone || query?.dryRun || method !== 'PUT' || path !== `${PATH}/web`) return undefined;
    isDone = true;
    disturb(self, self.objects.get(path)!);
    return undefined;
  });
  server.put(live('web'));
  return server;
}

test('a dry run reports what would be done, and writes nothing', async () => {
  const server = new StoredServer([live('web')]);
  const before = [...server.objects.values()];
  const { lines, failed } = await applied(server, document('web') + document('new'), widgetKind(), {
    dryRun: true,
  });
  expect(failed).toBe('');
  expect(lines).toEqual([
    'Widget shop/web would be configured',
    'Widget shop/new would be created',
    'ConfigMap shop/web would be created',
    'ConfigMap shop/new would be created',
  ]);
  expect([...server.objects.values()]).toEqual(before);
});

describe('between the trial and the write,', () => {
  test('a status that is written changes nothing', async () => {
    const server = disturbed((self, known) => {
      self.put({ ...known, status: { ready: 1 } });
    });

    expect(await applied(server, document('web'))).toEqual({
      lines: ['Widget shop/web configured', 'ConfigMap shop/web created'],
      failed: '',
    });
    expect(server.objects.get(`${PATH}/web`)?.spec).toEqual({ image: 'nginx' });
  });

  test.each<[string, (server: StoredServer, known: AnyObject) => void]>([
    ['changed', (self, known) => void self.put({ ...known, spec: { image: 'mine' } })],
    [
      'changed',
      (self, known) => void self.put({ ...known, metadata: { ...known.metadata, labels: { a: 'b' } } }),
    ],
    ['deleted', (self) => void self.objects.delete(`${PATH}/web`)],
  ])('one that was %s is left alone, and others are applied', async (what, disturb) => {
    const server = disturbed(disturb);

    expect(await applied(server, document('web') + document('other'))).toEqual({
      lines: [
        `Widget shop/web isn't written, nor what is made of it: it was ${what} meanwhile; look at it, and give the command again`,
        'Widget shop/other created',
        'ConfigMap shop/other created',
      ],
      failed: '1 object was refused',
    });
    expect(server.objects.get(`${PATH}/web`)?.spec).not.toEqual({ image: 'nginx' });
    expect([...server.objects.keys()].filter((path) => path.endsWith('configmaps/web'))).toEqual([]);
  });

  test('one that another client creates is left alone', async () => {
    const server = new StoredServer([], ({ method, path, query }, self) => {
      if (query?.dryRun || method !== 'POST' || path !== PATH) return undefined;
      self.put(live('web'));
      return failure(409, 'AlreadyExists', 'there is one');
    });

    const { lines } = await applied(server, document('web'));
    expect(lines).toEqual([expect.stringContaining('it was created by another client meanwhile')]);
    expect(server.objects.get(`${PATH}/web`)?.spec).toEqual({ image: 'old', size: 1 });
  });
});

test('of a version that is served and not stored, what is carried out is what was tried', async () => {
  const { spec, ...crd } = widgetCrd();
  const [stored, served, ...rest] = spec.versions;
  const other = structuredClone(served!) as unknown as {
    schema: { openAPIV3Schema: { properties: { spec: { properties: { size: { default?: number } } } } } };
  };
  delete other.schema.openAPIV3Schema.properties.spec.properties.size.default;
  const versions = [stored!, other as unknown as typeof stored & object, ...rest];
  const children = [{ apiVersion: 'v1', kind: 'ConfigMap' }];
  const kind = defineKind<WidgetSpec>({
    ...{ crd: { ...crd, spec: { ...spec, versions } }, construct: Widget, children },
  });
  const server = new StoredServer();

  expect((await applied(server, document('web', 'v1beta1'), kind)).failed).toBe('');
  const map = server.objects.get('/api/v1/namespaces/shop/configmaps/web');
  expect((map as { data?: unknown } | undefined)?.data).toEqual({ image: 'nginx', size: '1' });
});

const app = anObject(appService.type, 'web', { uid: 'uid-web', generation: 1 }, { spec: {} });
const waitedFor = [{ input: { kind: appService }, after: app }] as unknown as Applied[];
const POD = resourceType({ apiVersion: 'v1', kind: 'Pod' });
const EVENT = resourceType({ apiVersion: 'events.k8s.io/v1', kind: 'Event' });
const busy = failure(503, 'ServiceUnavailable', 'busy');

function deployment(available: number): AnyObject {
  const { apiVersion, kind } = appService.type;
  const owner = { apiVersion, kind, name: 'web', uid: 'uid-web', controller: true };
  const status = {
    ...{ observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: available },
    conditions: [{ type: 'Available', status: available === 1 ? 'True' : 'False' }],
  };
  const labels = { 'kosmos.io/appservice': 'web' };
  const metadata = { uid: 'uid-d', generation: 1, labels, ownerReferences: [owner] };
  return anObject(DEPLOYMENT, 'web', metadata, { spec: { replicas: 1 }, status });
}

async function waited(
  server: StoredServer,
  afterMilliseconds = 60_000,
  interrupted = new AbortController(),
  lateMilliseconds = 60_000,
) {
  const clock = new VirtualClock();
  const late = new AbortController();
  clock.setTimer(lateMilliseconds, () => {
    late.abort();
  });
  const reported: string[] = [];
  let outcome: string | undefined;
  const waiting = waitUntilReady(waitedFor, {
    ...{ api: new Api(server), clock, signal: interrupted.signal, late: late.signal },
    timeoutMilliseconds: 60_000,
    report: (line) => {
      reported.push(line);
      return Promise.resolve();
    },
  }).then(
    () => (outcome = 'ready'),
    (error: unknown) => (outcome = (error as Error).message),
  );
  await clock.advance(afterMilliseconds);
  return { outcome: () => outcome, reported, waiting, clock };
}

const serverOf = (...deployments: AnyObject[]) => new StoredServer([app, ...deployments]);

describe('without an operator, a custom resource is', () => {
  test('ready once its children are', async () => {
    expect((await waited(serverOf(deployment(1)), 1000)).outcome()).toBe('ready');
    const { outcome, reported } = await waited(serverOf(deployment(0)));
    expect(outcome()).toMatch(
      /^AppService shop\/web isn't ready after 60 s\n {2}Deployment shop\/web: Progressing: /,
    );
    expect(reported).toEqual([expect.stringMatching(/^Deployment shop\/web: Progressing: /)]);
  });

  test.each<[what: string, events: readonly string[], outcome: RegExp | undefined]>([
    [
      'given up after a minute of it',
      [],
      /^AppService shop\/web isn't ready, and it won't be: a pod is Unschedulable for 60 s\n(?:.*\n)*.*Unschedulable: no node takes the pod: Insufficient cpu$/,
    ],
    ['waited for where a node is announced', ['TriggeredScaleUp'], undefined],
  ])('with a pod that no node takes, %s', async (_, reasons, expected) => {
    const message = '0/1 nodes are available: 1 Insufficient cpu.';
    const scheduled = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message };
    const owner = {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      name: 'web-1',
      uid: 'uid-r',
      controller: true,
    };
    const labels = { 'kosmos.io/appservice': 'web', 'pod-template-hash': '1' };
    // More than the events that are shown.
    const pods = ['a', 'b', 'c', 'd', 'e'].map((id) =>
      anObject(
        POD,
        `web-1-${id}`,
        { uid: `uid-${id}`, labels, ownerReferences: [owner] },
        { status: { phase: 'Pending', conditions: [scheduled] } },
      ),
    );
    const events = pods.flatMap(({ kind, metadata: { name, uid } }) =>
      ['FailedScheduling', ...reasons].map((reason) => {
        const type = reason === 'FailedScheduling' ? 'Warning' : 'Normal';
        return anObject(EVENT, `${name}-${reason}`, {}, { type, reason, regarding: { kind, name, uid } });
      }),
    );
    const selector = { matchLabels: { 'kosmos.io/appservice': 'web' } };
    const template = { spec: { selector, template: {} } };
    const server = serverOf({ ...deployment(0), ...template }, ...pods, ...events);
    const { outcome } = await waited(server, 70_000, undefined, 300_000);
    if (expected) expect(outcome()).toMatch(expected);
    else expect(outcome()).toBeUndefined();
  });

  test('not ready where its children may not be listed, which is said at once', async () => {
    const server = serverOf(deployment(1));
    server.refused.set('deployments', failure(403, 'Forbidden', 'not you'));
    expect((await waited(server, 1000)).outcome()).toBe(
      "AppService shop/web isn't ready\n  Not shown, since the right to list them is missing: deployments",
    );
  });

  test('not ready as long as its children can not be listed, and that is said in the end', async () => {
    const server = serverOf(deployment(1));
    server.refused.set('deployments', busy);
    expect((await waited(server)).outcome()).toBe(
      "AppService shop/web isn't ready after 60 s\n  Not seen: List deployments: 503 busy",
    );
  });
});

test('an API server that never answers ends with the time, and with an interrupt', async () => {
  const silent = serverOf();
  silent.silent = true;
  expect((await waited(silent)).outcome()).toMatch(
    /^Whether AppService shop\/web is ready couldn't be seen after 60 s: /,
  );

  const interrupted = new AbortController();
  const { outcome, waiting } = await waited(silent, 0, interrupted);
  expect(outcome()).toBeUndefined();
  interrupted.abort();
  await waiting;
  expect(outcome()).toBe('Interrupted: what was applied stays');
});

test("what can't be rendered isn't left to an operator either", async () => {
  const server = new StoredServer();
  class Refusing extends Construct {
    constructor(scope: Construct, id: string) {
      super(scope, id);
      throw new Error('no');
    }
  }
  const operator = { namespace: 'ops' } as InstalledOperator;
  const { failed } = await applied(server, document('web'), widgetKind({}, Refusing), { operator });
  expect(failed).toMatch(/a.yaml: document 1, line 2: Widget shop\/web can't be rendered: no/);
  expect(server.requests.filter(({ method, query }) => method !== 'GET' && !query?.dryRun)).toEqual([]);
});
