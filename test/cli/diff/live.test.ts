import { JsonPatch } from 'cdk8s';
import type { ApiObject } from 'cdk8s';
import { expect, test } from 'vitest';
import { compareLive } from '../../../src/cli/diff/live.js';
import type { LiveProps } from '../../../src/cli/diff/live.js';
import { liveText } from '../../../src/cli/diff/text.js';
import { targetsOf } from '../../../src/cli/targets.js';
import { OperatorError } from '../../../src/contract/error.js';
import type { KindContext } from '../../../src/contract/kind.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { childLabels } from '../../../src/contract/names.js';
import { render } from '../../../src/render/renderer.js';
import { failure } from '../../engine/support/builders.js';
import { Widget, widget, widgetKind } from '../../synth/fixtures.js';
import { StoredServer } from '../support/stored-server.js';

/** The next version: it adds a value, and refuses an image. */
class Next extends Widget {
  constructor(...[scope, id, props]: ConstructorParameters<typeof Widget>) {
    super(scope, id, props);
    const { image } = props.spec;
    if (image === 'bad') throw new OperatorError({ reason: 'PolicyDenied', message: 'no such image' });
    const registry = image.startsWith('own') ? 'own' : 'public';
    (this.node.defaultChild as ApiObject).addJsonPatch(JsonPatch.add('/data/registry', registry));
  }
}

const kind = widgetKind({}, Next);
const before = widgetKind();

/** A custom resource with its objects, as the version before has left them. */
function stored(server: StoredServer, name: string, namespace = 'shop', image = 'nginx'): void {
  const cr = server.put({ ...widget(name, { image, size: 1 }), metadata: { name, namespace } });
  const owner = { apiVersion: cr.apiVersion, kind: cr.kind, name, uid: cr.metadata.uid!, controller: true };
  const managedFields = [{ manager: 'widget-controller', operation: 'Apply', fieldsV1: { 'f:data': {} } }];
  for (const child of render(before, cr as never))
    server.put({ ...child, metadata: { ...child.metadata, ownerReferences: [owner] } });
  const labels = childLabels(cr, name);
  if (name.startsWith('old'))
    server.put({
      ...{ apiVersion: 'v1', kind: 'Service' },
      metadata: { name, namespace, labels, ownerReferences: [owner], managedFields } as AnyObject['metadata'],
    });
}

function compared(
  server: StoredServer,
  words = '',
  props: Partial<LiveProps> = {},
  context: KindContext = { render },
) {
  const targets = targetsOf(words === '' ? [] : words.split(' '), [kind]);
  const common = { transport: server, contextFor: () => Promise.resolve(context), warn: () => undefined };
  return compareLive({ ...common, targets, details: 0, ...props });
}

test('the same change is counted, with where it is, what it is, and of how many', async () => {
  const server = new StoredServer();
  for (const name of ['web', 'api', 'db', 'old', 'bad'])
    stored(server, name, 'shop', name === 'bad' ? 'bad' : 'nginx');
  stored(server, 'web', 'own', 'own/nginx');
  const found = await compared(server);

  expect(found).toMatchObject({ compared: { Widget: 6 }, counts: { changed: 5, deleted: 1, failed: 1 } });
  expect(liveText(found, (_, text) => text)).toBe(`\
6 Widget compared, with 7 objects: 5 to change, 1 to delete, 1 refused

Widget: can't be applied: PolicyDenied in 1 of 1
  e.g. shop/bad
  no such image

Service: would be deleted in 1 of 1
  e.g. shop/old

ConfigMap: .data.registry added in 5 of 5
  e.g. own/web, shop/api, shop/db
`);
});

test('a value that is the same everywhere is shown, and so many objects in full as are asked for', async () => {
  const server = new StoredServer();
  for (const name of ['web', 'api']) stored(server, name);
  const found = await compared(server, 'widget', { details: 1 });
  expect(found.changes).toMatchObject([
    { path: '.data.registry', field: 'added', after: 'public', count: 2 },
  ]);
  expect(found.kept.objects).toMatchObject([{ ref: { name: 'api' } }]);
});

test('changes that differ are told apart up to a thousand, so that memory has a bound', async () => {
  class Named extends Widget {
    constructor(...[scope, id, props]: ConstructorParameters<typeof Widget>) {
      super(scope, id, props);
      const patch = JsonPatch.add(`/data/of-${props.metadata.name}`, 'x');
      (this.node.defaultChild as ApiObject).addJsonPatch(patch);
    }
  }
  const server = new StoredServer();
  for (let n = 0; n < 1_002; n++) stored(server, `w${n}`);
  const found = await compareLive({
    ...{ transport: server, contextFor: () => Promise.resolve({ render }), warn: () => undefined },
    ...{ targets: targetsOf([], [widgetKind({}, Named)]), details: 0 },
  });
  expect([found.changes.length, found.others]).toEqual([1_000, 2]);
  expect(liveText(found, (_, text) => text)).toContain('2 other changes, each in few objects');
});

test('hundreds are compared in parts, whose objects are listed by label, and none is read by itself', async () => {
  const server = new StoredServer();
  for (let index = 0; index < 250; index++) stored(server, `web-${index}`);
  const progress: number[] = [];
  const found = await compared(server, '', {
    namespace: 'shop',
    progress: (done) => void progress.push(done),
  });

  expect(found).toMatchObject({ compared: { Widget: 250 }, counts: { changed: 250 } });
  expect(progress.sort((a, b) => a - b)).toEqual([50, 150, 250]);
  const reads = server.requests
    .filter(({ method }) => method === 'GET')
    .map(({ path }) => path.split('/').at(-1));
  expect(reads.filter((plural) => plural === 'widgets')).toHaveLength(1);
  expect(reads.filter((plural) => plural === 'configmaps')).toHaveLength(3);
  expect(reads.filter((plural) => plural === 'services')).toHaveLength(3);
  expect(reads).toHaveLength(7);
});

test('what waits for the end of a pause is compared, and counted as such', async () => {
  const server = new StoredServer();
  for (const name of ['web', 'api']) stored(server, name);
  const web = [...server.objects.values()].find(
    ({ kind: one, metadata }) => one === 'Widget' && metadata.name === 'web',
  )!;
  server.put({
    ...web,
    metadata: { ...web.metadata, annotations: { 'reconstruct.kosmos.io/paused': 'true' } },
  });
  const found = await compared(server);

  expect(found).toMatchObject({ compared: { Widget: 2 }, paused: 1, counts: { changed: 2 } });
  expect(liveText(found, (_, text) => text)).toContain(
    '2 Widget compared, 1 of them paused, whose changes wait, with 2 objects: 2 to change\n',
  );
  const named = await compared(server, 'widget web', { namespace: 'shop', details: Infinity });
  expect(named.kept).toMatchObject({
    objects: [{ action: 'changed', ref: { kind: 'ConfigMap' } }],
    explanations: [
      {
        differs: false,
        summary: expect.stringContaining('is paused: its objects stay as they are') as unknown,
      },
    ],
  });
});

test('one that is named is shown in full; one that is not there is refused with the nearest name', async () => {
  const server = new StoredServer();
  for (const name of ['web', 'api']) stored(server, name);
  const { kept } = await compared(server, 'widget web', { namespace: 'shop', details: Infinity });
  expect(kept.objects.map(({ action, ref }) => `${action} ${ref.kind} ${ref.name}`)).toEqual([
    'changed ConfigMap web',
  ]);
  await expect(compared(server, 'widget/wbe', { namespace: 'shop' })).rejects.toMatchObject({
    ...{ exitCode: 2, message: 'There is no Widget shop/wbe; did you mean web?' },
  });
});

test('where no operator looks, nothing is compared, which a warning says', async () => {
  const server = new StoredServer();
  for (const name of ['web', 'api']) stored(server, name);
  const warnings = new Set<string>();
  const context = { render, namespaces: ['a', 'b'] };
  const found = await compared(server, '', { warn: (line) => void warnings.add(line) }, context);
  expect([found.compared, found.changes, [...warnings]]).toEqual([
    ...[{ Widget: 0 }, []],
    ['no operator watches shop, only a, b: nothing would be made of what is there'],
  ]);
});

test('a kind that is not installed is left out, but not where it is the only one', async () => {
  const other = widgetKind({ kind: 'Globe', scope: 'Cluster' });
  const server = new StoredServer();
  stored(server, 'web');
  server.refused.set('globes', failure(404, undefined, '404 page not found'));
  expect((await compared(server, '', { targets: targetsOf([], [other, kind]) })).compared).toEqual({
    Widget: 1,
  });
  const none = new StoredServer([], () => failure(404, undefined, '404 page not found'));
  await expect(compared(none)).rejects.toMatchObject({
    exitCode: 3,
    message: expect.stringContaining("isn't installed") as string,
  });
});

test('pages go on as of now where their version is too old', async () => {
  const pages: (string | undefined)[] = [];
  const server = new StoredServer([], ({ method, path, query }, { objects }) => {
    if (method !== 'GET' || !path.endsWith('/widgets')) return undefined;
    pages.push(query?.continue);
    const items = [...objects.values()].filter(({ metadata: { name }, ...each }) => {
      return each.kind === 'Widget' && (name === 'api') === (query?.continue === undefined);
    });
    const expired = failure(410, 'Expired', 'The provided continue parameter is too old');
    if (query?.continue === 'old')
      return { ...expired, body: { ...expired.body, metadata: { continue: 'now' } } };
    const next = query?.continue === undefined && { continue: 'old', remainingItemCount: 1 };
    return { status: 200, body: { metadata: { resourceVersion: '100', ...next }, items } };
  });
  for (const name of ['api', 'web']) stored(server, name);
  expect(await compared(server)).toMatchObject({ compared: { Widget: 2 }, counts: { changed: 2 } });
  expect(pages).toEqual([undefined, 'old', 'now']);
});

test('an object that has lost its label is found by its name', async () => {
  const server = new StoredServer();
  stored(server, 'web');
  const path = [...server.objects.keys()].find((each) => each.includes('configmaps'))!;
  const { labels, ...metadata } = server.objects.get(path)!.metadata;
  server.objects.set(path, { ...server.objects.get(path)!, metadata });
  const { counts, changes } = await compared(server);
  expect(counts).toEqual({ changed: 1 });
  expect(changes.map(({ path: field }) => field)).toContain('.metadata.labels');
});
