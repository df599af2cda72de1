import { describe, expect, test } from 'vitest';
import { noSuchResource } from '../../../src/cli/targets.js';
import { lister } from '../../../src/cli/reader.js';
import { look } from '../../../src/cli/tree/model.js';
import { textOf } from '../../../src/cli/tree/text.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { resourceType } from '../../../src/contract/resource.js';
import { Api } from '../../../src/client/api.js';
import type { ApiRequest, ApiResponse } from '../../../src/client/transport.js';
import { appService } from '../../../src/kinds/app-service/kind.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import { anObject, DEPLOYMENT, failure } from '../../engine/support/builders.js';
import { loadKind } from '../../support/bundle.js';
import { StoredServer } from '../support/stored-server.js';

const label = 'kosmos.io/appservice';
const owner = (name: string) => ({
  ...{ apiVersion: 'kosmos.io/v1', kind: 'AppService', name, uid: `uid-${name}`, controller: true },
});
const app = (name: string): AnyObject =>
  anObject(appService.type, name, { uid: `uid-${name}`, generation: 1 }, { spec: {} });

function deployment(name: string, meta: object = {}): AnyObject {
  const spec = { selector: { matchLabels: { [label]: name } }, template: {} };
  const metadata = {
    uid: `uid-d-${name}`,
    labels: { [label]: name },
    ownerReferences: [owner(name)],
    ...meta,
  };
  return anObject(DEPLOYMENT, name, metadata, { spec });
}

const POD = { apiVersion: 'v1', kind: 'Pod' };
const EVENT = { apiVersion: 'events.k8s.io/v1', kind: 'Event' };

const apiOf = (
  objects: readonly AnyObject[],
  answer: (req: ApiRequest) => ApiResponse | undefined = () => undefined,
): { readonly api: Api } => ({ api: new Api(new StoredServer(objects, answer)) });

const now = new Date('2026-01-01T00:00:00Z');
const one = [{ kind: appService, name: 'web' }];

test("all of a kind cost as many lists as one of it, and no list of others' objects", async () => {
  const server = new StoredServer(['a', 'b', 'c'].flatMap((name) => [app(name), deployment(name)]));
  const scope = { targets: [{ kind: appService }], namespace: 'shop' };
  const { resources } = await look(scope, lister(new Api(server)), now);

  expect(resources.map(({ children }) => children.length)).toEqual([1, 1, 1]);
  const asked = server.requests.map(({ path, query = {} }) =>
    [path.split('/').at(-1), query.labelSelector].filter(Boolean),
  );
  const ofTheirs = [...appService.children, ...appService.related].map(({ plural }) => [plural, label]);
  const others = [['appservices'], ['events'], ['deployments', 'app.kubernetes.io/part-of=reconstruct']];
  expect(asked.map(String).sort()).toEqual([...ofTheirs, ...others].map(String).sort());
});

test('a child is judged by the status that its kind makes of it', async () => {
  const message = 'the cluster of etcd has no quorum';
  const conditions = [{ type: 'Ready', status: 'False', reason: 'Degraded', message }];
  const [type] = appService.children.filter(({ kind }) => kind === 'Service');
  const kind = { ...appService, children: [{ ...type!, keep: () => ({ status: { conditions } }) }] };
  const child = { ...deployment('web'), apiVersion: 'v1', kind: 'Service' };
  const { resources } = await look(
    { targets: [{ kind }], namespace: 'shop' },
    lister(apiOf([app('web'), child]).api),
    now,
  );

  expect(resources[0]?.children).toMatchObject([
    { phase: 'failing', message: `Service shop/web: ${message}` },
  ]);
  expect(resources[0]?.notes).toEqual([]);
});

test('a child whose kind fails to judge it is judged by its own status, which is noted', async () => {
  const keep = () => {
    throw new Error('no field');
  };
  const children = appService.children.map((type) => ({ ...type, keep }));
  const kind = { ...appService, children };
  const { resources } = await look(
    { targets: [{ kind }], namespace: 'shop' },
    lister(apiOf([app('web'), deployment('web')]).api),
    now,
  );
  const notes = [`"keep" of the kind's deployments throws, so they are judged by their own status: no field`];
  expect(resources[0]).toMatchObject({ children: [{ kind: 'Deployment' }], notes });
});

test('a cluster-scoped custom resource is shown with the pods and events of its children in their namespaces', async () => {
  const kind = { ...appService, type: { ...appService.type, namespaced: false } };
  const cr = anObject(kind.type, 'web', { namespace: undefined, uid: 'uid-web' }, { spec: {} });
  const inNamespace = (namespace: string): AnyObject[] => {
    const uid = `uid-${namespace}`;
    const labels = { [label]: 'web', 'pod-template-hash': '5f' };
    const replicaSet = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5f', uid: `${uid}-rs` };
    const ownerReferences = [{ ...replicaSet, controller: true }];
    return [
      deployment('web', { namespace, uid }),
      anObject(POD, `web-5f-${namespace}`, { namespace, labels, uid: `${uid}-pod`, ownerReferences }),
      anObject(EVENT, 'pulled', { namespace }, { reason: namespace, regarding: { uid: `${uid}-pod` } }),
    ];
  };
  const { api } = apiOf([cr, ...inNamespace('shop'), ...inNamespace('depot')]);
  const scope = { targets: [{ kind, name: 'web' }], namespace: 'other', operators: false };
  const document = await look(scope, lister(api), now);

  const [web] = document.resources;
  expect(web?.children.map(({ namespace, pods }) => [namespace, pods.map(({ name }) => name)])).toEqual([
    ['shop', ['web-5f-shop']],
    ['depot', ['web-5f-depot']],
  ]);
  expect(web?.events.map(({ reason }) => reason).sort()).toEqual(['depot', 'shop']);
  const text = textOf(document, { now, paint: (_, painted) => painted });
  expect(text).toMatch(/^AppService web [^]* Deployment shop\/web .*\n.* Pod web-5f-shop /);
});

test('the Secret of generated values is shown, of whose data nothing is asked for', async () => {
  const { kind } = await loadKind('test/support/kinds/vault.config.mjs');
  const metadata = {
    uid: 'uid-s',
    labels: { 'test.example.com/vault': 'web' },
    ownerReferences: [
      { apiVersion: kind.type.apiVersion, kind: 'Vault', name: 'web', uid: 'uid-web', controller: true },
    ],
  };
  const secret = anObject({ apiVersion: 'v1', kind: 'Secret' }, 'web-vault-generated', metadata);
  const server = new StoredServer([anObject(kind.type, 'web', { uid: 'uid-web' }, { spec: {} }), secret]);
  const scope = { targets: [{ kind }], namespace: 'shop', operators: false };
  const { resources } = await look(scope, lister(new Api(server)), now);

  expect(resources[0]?.children).toMatchObject([
    { kind: 'Secret', name: 'web-vault-generated', phase: 'ready' },
  ]);
  const lists = server.requests.filter(({ path }) => path.endsWith('/secrets'));
  expect(lists.map(({ accept }) => accept)).toEqual([expect.stringContaining('PartialObjectMetadataList')]);
});

test('a pod is shown once, also where the selector of its Job is another than the label of the custom resource', async () => {
  const labels = { [label]: 'web', 'batch.kubernetes.io/controller-uid': 'uid-job' };
  const ownerReferences = [owner('web')];
  const selector = { matchLabels: { 'batch.kubernetes.io/controller-uid': 'uid-job' } };
  const job = { apiVersion: 'batch/v1', kind: 'Job', name: 'web', uid: 'uid-job', controller: true };
  const kind = { ...appService, children: [...appService.children, resourceType(job)] };
  const { api } = apiOf([
    app('web'),
    deployment('web'),
    anObject(job, 'web', { uid: 'uid-job', labels, ownerReferences }, { spec: { selector } }),
    anObject(POD, 'web-x', { uid: 'uid-pod', labels, ownerReferences: [job] }),
  ]);
  const targets = [{ kind, name: 'web' }];
  const { resources } = await look({ targets, namespace: 'shop', operators: false }, lister(api), now);
  const pods = resources[0]?.children.map(({ kind: of, pods: made }) => [of, made.map(({ name }) => name)]);
  expect(pods).toContainEqual(['Job', ['web-x']]);
});

describe('what is refused', () => {
  const refusing = (plurals: readonly string[]) => (req: ApiRequest) =>
    plurals.some((plural) => req.path.endsWith(`/${plural}`))
      ? failure(403, 'Forbidden', 'not you')
      : undefined;

  test('of children, pods and events is one note, and no failure', async () => {
    const { api } = apiOf([app('web'), deployment('web')], refusing(['services', 'pods', 'events']));
    const { resources } = await look({ targets: one, namespace: 'shop' }, lister(api), now);
    expect(resources[0]!.notes).toEqual([
      'Not shown, since the right to list them is missing: events, pods, services',
    ]);
    expect(resources[0]!.children).toHaveLength(1);
  });

  test('of one kind among several is a note, of the only one a failure', async () => {
    const { api } = apiOf([app('web')], refusing(['jobwatchers']));
    const targets = [{ kind: appService }, { kind: jobWatcher }];
    const { notes, resources } = await look({ targets, namespace: 'shop' }, lister(api), now);
    expect(resources).toHaveLength(1);
    expect(notes[0]).toBe('Not shown, since the right to list them is missing: jobwatchers');
    const alone = { targets: [{ kind: jobWatcher }], namespace: 'shop' };
    await expect(look(alone, lister(api))).rejects.toMatchObject({ reason: 'Forbidden' });
  });
});

test('a type of children that is not served is one note, and none where it need not be installed', async () => {
  const generic = failure(404, 'NotFound', 'the server could not find the requested resource', {});
  const plain = { status: 404, body: '404 page not found\n' };
  const answers = [
    ['deployments', generic],
    ['services', plain],
    ['httproutes', generic],
  ] as const;
  const { api } = apiOf(
    [app('web')],
    ({ path }) => answers.find(([plural]) => path.endsWith(`/${plural}`))?.[1],
  );
  const { resources } = await look({ targets: one, namespace: 'shop', operators: false }, lister(api), now);

  expect(resources[0]).toMatchObject({
    notes: ['Not served by the API server: deployments of apps/v1, services of v1'],
    unseen: ['deployments', 'services'].map((plural) => ({ plural, forbidden: false })),
  });
});

test('a kind that is not installed is reported with what installs it', async () => {
  const { api } = apiOf([], () => failure(404, undefined, '404 page not found'));
  await expect(look({ targets: one, namespace: 'shop' }, lister(api))).rejects.toMatchObject({
    exitCode: 3,
    message: `AppService isn't installed in the cluster; install it with "reconstruct install --apply" and the options in use, or apply the CRD`,
  });
});

test('of a name that is not there, the ones that are there are named', async () => {
  const { api } = apiOf([app('shop'), app('api')]);
  expect(await noSuchResource(one[0]!, 'shop', lister(api))).toMatchObject({
    exitCode: 2,
    message: 'There is no AppService shop/web; there are shop, api',
  });
});

test('where no operator looks after it, a custom resource is judged by its children', async () => {
  const { api } = apiOf([app('web'), deployment('web', { generation: 1 })]);
  const scope = { targets: one, namespace: 'shop' };
  const wordOf = async (operators: boolean): Promise<string | undefined> =>
    (await look({ ...scope, operators }, lister(api), now)).resources[0]?.verdict.word;
  expect([await wordOf(true), await wordOf(false)]).toEqual(['Reconciling', 'Unknown']);
});
