import { describe, expect, it } from 'vitest';
import { resourceType } from '../../src/contract/resource.js';
import { ApiError } from '../../src/engine/api-error.js';
import { Api } from '../../src/engine/api.js';
import { configMap, CONFIG_MAP, DEPLOYMENT, failure, WIDGET } from './support/builders.js';
import { ScriptedTransport } from './support/scripted-transport.js';

const NODE = resourceType({ apiVersion: 'v1', kind: 'Node', namespaced: false });
const CLUSTER_WIDGET = resourceType({ ...WIDGET, namespaced: false });

function newApi(): { api: Api; transport: ScriptedTransport; signal: AbortSignal } {
  const transport = new ScriptedTransport();
  transport.respond = () => ({ status: 200, body: { metadata: { resourceVersion: '7' }, items: [] } });
  return { api: new Api(transport), transport, signal: new AbortController().signal };
}

describe('Api paths', () => {
  it.each([
    ['the core group', CONFIG_MAP, 'shop/web', '/api/v1/namespaces/shop/configmaps/web'],
    ['a named group', DEPLOYMENT, 'shop/web', '/apis/apps/v1/namespaces/shop/deployments/web'],
    ['a custom resource', WIDGET, 'shop/web', '/apis/demo.example.com/v1/namespaces/shop/widgets/web'],
    ['the core group without namespace', NODE, 'node-1', '/api/v1/nodes/node-1'],
    ['a named group without namespace', CLUSTER_WIDGET, 'web', '/apis/demo.example.com/v1/widgets/web'],
    [
      'a name with odd characters',
      CONFIG_MAP,
      'shop/system:a/b?c#d',
      '/api/v1/namespaces/shop/configmaps/system%3Aa%2Fb%3Fc%23d',
    ],
  ])('name an object of %s', async (_, type, key, path) => {
    const { api, transport } = newApi();
    await api.get(type, key);
    expect(transport.requests).toMatchObject([{ method: 'GET', path }]);
  });

  it.each([
    ['all namespaces', { type: DEPLOYMENT }, '/apis/apps/v1/deployments'],
    ['one namespace', { type: DEPLOYMENT, namespace: 'shop' }, '/apis/apps/v1/namespaces/shop/deployments'],
    ['what has no namespace', { type: NODE, namespace: 'shop' }, '/api/v1/nodes'],
  ])('name the collection of %s, for lists and for watches', async (_, scope, path) => {
    const { api, transport, signal } = newApi();
    await api.list(scope, undefined, signal);
    await api.watch(scope, {}, signal);
    expect(transport.requests[0]?.path).toBe(path);
    expect(transport.lastStream.request.path).toBe(path);
  });
});

describe('Api.watch', () => {
  it('throws what the server says when it refuses, in JSON or in plain text', async () => {
    const { api, transport, signal } = newApi();
    transport.refusals.push({ ...failure(429, 'TooManyRequests', 'later'), retryAfterSeconds: 4 });
    const refused = await api.watch({ type: CONFIG_MAP }, {}, signal).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ApiError);
    expect(refused).toMatchObject({
      code: 429,
      pauseMilliseconds: 4_000,
      status: { reason: 'TooManyRequests' },
    });
    transport.refusals.push({ status: 404, body: '404 page not found\n' });
    await expect(api.watch({ type: CONFIG_MAP }, {}, signal)).rejects.toMatchObject({ kindNotServed: true });
  });
});

describe('Api.apply', () => {
  it.each([
    { force: true, status: 200, created: false },
    { force: false, status: 201, created: true },
  ])(
    'sends the object as it is and tells whether it is new: $created',
    async ({ force, status, created }) => {
      const { api, transport } = newApi();
      const object = configMap('a', '1');
      transport.answers.push({ status, body: configMap('a', '2') });
      const answer = await api.apply(CONFIG_MAP, object, { fieldManager: 'm', force });
      expect(answer).toEqual({ object: configMap('a', '2'), created });
      expect(transport.requests).toEqual([
        {
          method: 'PATCH',
          path: '/api/v1/namespaces/shop/configmaps/a',
          query: { fieldManager: 'm', force: String(force) },
          body: object,
          contentType: 'application/apply-patch+yaml',
        },
      ]);
    },
  );
});

describe('Api.delete', () => {
  it('deletes only what was seen, and lets its dependents go by themselves', async () => {
    const { api, transport } = newApi();
    transport.answers.push({ status: 200, body: { kind: 'Status', status: 'Success' } });
    expect(await api.delete(CONFIG_MAP, configMap('a', '8'))).toBeUndefined();
    expect(transport.requests).toMatchObject([
      {
        method: 'DELETE',
        path: '/api/v1/namespaces/shop/configmaps/a',
        body: { propagationPolicy: 'Background', preconditions: { uid: 'uid-a', resourceVersion: '8' } },
      },
    ]);
  });
});

describe('Api, without an answer', () => {
  const failing = (error: unknown): Promise<unknown> => {
    const { api, transport } = newApi();
    transport.respond = () => {
      throw error;
    };
    return api.get(DEPLOYMENT, 'shop/web').catch((thrown: unknown) => thrown);
  };
  const fetchFailed = new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') });

  it.each([
    new Error('read ECONNRESET'),
    Object.assign(new Error('too late'), { code: 'UND_ERR_HEADERS_TIMEOUT' }),
    fetchFailed,
  ])('says that the server is out of reach: %s', async (error) => {
    expect(await failing(error)).toMatchObject({
      ...{ reason: 'Unreachable', retry: 'backoff', cause: error },
      message: `Get Deployment shop/web: the API server gave no answer (${error.message})`,
    });
  });

  it.each([
    new TypeError('x is not a function'),
    new RangeError('Maximum call stack size exceeded'),
    Object.assign(new Error('invalid path'), { code: 'UND_ERR_INVALID_ARG' }),
  ])('leaves a bug what it is: %s', async (error) => {
    expect(await failing(error)).toBe(error);
  });
});
