import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { asCliError } from '../../../src/cli/cluster.js';
import { compare, refusals } from '../../../src/cli/diff/compare.js';
import { OperatorError } from '../../../src/contract/error.js';
import type { KindContext } from '../../../src/contract/kind.js';
import type { AnyObject } from '../../../src/contract/object.js';
import type { ApiResponse, Transport } from '../../../src/client/transport.js';
import { render } from '../../../src/render/renderer.js';
import { failure } from '../../engine/support/builders.js';
import { folderWith, widgetKind } from '../../synth/fixtures.js';
import { StoredServer } from '../support/stored-server.js';

const WEB = `apiVersion: demo.example.com/v1
kind: Widget
metadata: { name: web }
spec: { image: nginx }
`;
const PATH = '/apis/demo.example.com/v1/namespaces/shop/widgets';

async function compared(
  transport: Transport,
  text = WEB,
  context: KindContext = { render },
  warn: (line: string) => void = () => undefined,
) {
  const folder = folderWith({ 'a.yaml': text });
  const props = {
    sources: [join(folder, 'a.yaml')],
    recursive: false,
    kinds: [widgetKind()],
    namespace: 'shop',
  };
  return compare({ ...props, transport, contextFor: () => Promise.resolve(context), warn }).catch(
    (error: unknown) => {
      throw asCliError(error);
    },
  );
}

describe('a comparison', () => {
  test('of one that is there, in the state of the file, puts the file in its place, with labels of both', async () => {
    const metadata = { name: 'web', namespace: 'shop', labels: { team: 'a' } };
    const live = { apiVersion: 'demo.example.com/v1', kind: 'Widget', metadata };
    const server = new StoredServer();
    const before = server.put({ ...live, spec: { image: 'nginx', size: 9 } });
    const { uid, resourceVersion } = before.metadata;
    const own = `uid: "${uid}", resourceVersion: "${resourceVersion}"`;
    const text = WEB.replace('name: web', `name: web, labels: { tier: front }, ${own}`);
    const { objects } = await compared(server, text);

    expect(objects[0]).toMatchObject({ action: 'changed', before });
    const put = server.requests.find(({ method }) => method === 'PUT');
    expect(put).toMatchObject({ path: `${PATH}/web`, query: { dryRun: 'All' } });
    const labels = { team: 'a', tier: 'front' };
    const body = { ...before, metadata: { ...before.metadata, labels }, spec: { image: 'nginx' } };
    expect(put!.body).toEqual(body);
  });

  test('of one whose status is written meanwhile is made with what is there then, and not for ever', async () => {
    const metadata = { name: 'web', namespace: 'shop', uid: 'u' };
    const live = { apiVersion: 'demo.example.com/v1', kind: 'Widget', spec: { image: 'nginx' } };
    const racing = (writes: number) => {
      let version = 0;
      return new StoredServer([], ({ method, path, body }) => {
        if (path !== `${PATH}/web`) return undefined;
        const now = { ...live, metadata: { ...metadata, resourceVersion: String(version) } };
        if (method === 'GET') return { status: 200, body: now };
        const isOld = version < writes && ++version;
        return isOld ? failure(409, 'Conflict', 'the object has been modified') : { status: 200, body };
      });
    };
    const server = racing(2);

    expect((await compared(server)).objects[0]).toMatchObject({
      ...{ action: 'unchanged', ref: { kind: 'Widget', name: 'web' } },
    });
    const puts = server.requests.filter(({ method }) => method === 'PUT');
    expect(puts.map(({ body }) => (body as AnyObject).metadata.resourceVersion)).toEqual(['0', '1', '2']);
    await expect(compared(racing(Infinity))).rejects.toMatchObject({ exitCode: 3 });
  });

  test.each<[string, object, string]>([
    [
      'resourceVersion: "1"',
      {},
      'line 3: metadata.resourceVersion: Widget shop/web is not the one of 1: a later state',
    ],
    ['uid: other', {}, 'line 3: metadata.uid: Widget shop/web is not the one of other: another one is there'],
    ['uid: u', { name: 'gone' }, 'line 3: metadata.uid: Widget shop/web is not the one of u: none is there'],
  ])('of a file of another state, with %s, is refused', async (field, more, message) => {
    const metadata = { name: 'web', namespace: 'shop', uid: 'u', ...more };
    const server = new StoredServer([
      { apiVersion: 'demo.example.com/v1', kind: 'Widget', metadata, spec: {} },
    ]);
    const text = WEB.replace('name: web', `name: web, ${field}`);
    await expect(compared(server, text)).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining(message) as string,
    });
    expect(server.requests.filter(({ method }) => method !== 'GET')).toEqual([]);
  });

  const denied = "ValidatingAdmissionPolicy 'images' with binding 'images' denied request: not this image";
  const busy = 'admission webhook "slow" denied the request: later';
  const unserved = failure(404, undefined, '404 page not found');
  const nowhere = failure(404, 'NotFound', 'namespaces "shop" not found');

  test.each<[method: string, answer: ApiResponse, exitCode: number, line: RegExp]>([
    ['GET', failure(403, 'Forbidden', 'cannot get'), 3, /^The cluster refuses: .*cannot get/],
    ['GET', unserved, 3, /^Widget isn't installed in the cluster; install it with .*, or apply the CRD$/],
    ['POST', nowhere, 2, /a.yaml: document 1, line 3: .*namespaces "shop" not found.*; create it/],
    ['POST', failure(429, 'TooManyRequests', busy), 3, /slow/],
    ['POST', failure(403, 'Forbidden', denied), 2, /a.yaml: document 1, line 1: .*not this image/],
    ['POST', failure(422, 'Invalid', denied), 2, /a.yaml: document 1, line 1: .*not this image/],
  ])('whose %s is answered with %o ends with exit code %i', async (refused, answer, exitCode, line) => {
    const server = new StoredServer([], ({ method }) => (method === refused ? answer : undefined));
    await expect(compared(server)).rejects.toMatchObject({
      exitCode,
      message: expect.stringMatching(line) as string,
    });
  });

  test("of what can't be rendered, as where a policy forbids it, names the place too", async () => {
    const denied = () => {
      throw new OperatorError({ reason: 'PolicyDenied', message: 'not this image', path: ['spec', 'image'] });
    };
    await expect(compared(new StoredServer(), WEB, { render: denied })).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/a.yaml: document 1, line 4: not this image$/) as string,
    });
  });

  const unsupported = failure(400, 'BadRequest', 'admission webhook "v.test" does not support dry run');

  test("of a child that a webhook doesn't try says so of the cluster", async () => {
    const server = new StoredServer([], ({ method }) => (method === 'PATCH' ? unsupported : undefined));
    const { objects } = await compared(server);
    expect(refusals(objects.flatMap(({ error }) => error ?? []))).toEqual([
      expect.stringContaining('does not support dry run'),
    ]);
  });

  test('of a custom resource where no operator looks warns that nothing follows from it', async () => {
    const warnings: string[] = [];
    const warn = (line: string) => void warnings.push(line);
    const { objects } = await compared(new StoredServer(), WEB, { render, namespaces: ['a', 'b'] }, warn);

    expect(objects.map(({ action, ref }) => `${action} ${ref.kind}`)).toEqual(['created Widget']);
    expect(warnings).toEqual(['no operator watches shop, only a, b: nothing would be made of what is there']);

    await compared(new StoredServer(), WEB, { render, namespaces: ['shop'] }, warn);
    expect(warnings).toHaveLength(1);
  });
});
