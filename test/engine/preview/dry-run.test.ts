import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../../src/contract/object.js';
import { Api } from '../../../src/client/api.js';
import { DryRun } from '../../../src/engine/preview/dry-run.js';
import { WOULD_DELETE } from '../../../src/engine/plan/hand.js';
import type { DryRunProps } from '../../../src/engine/preview/dry-run.js';
import type { ApiRequest, ApiResponse, Transport } from '../../../src/client/transport.js';
import { anObject, CONFIG_MAP, fieldConflict, ownedBy } from '../support/builders.js';

const live = anObject(CONFIG_MAP, 'web', { uid: 'u', resourceVersion: '7' }, { data: { a: '1' } });
const wanted = anObject(CONFIG_MAP, 'web', { ownerReferences: [ownedBy('web')] }, { data: { a: '2' } });

function newSetup(
  answer: (req: ApiRequest) => ApiResponse | undefined = () => undefined,
  props: DryRunProps = {},
) {
  const requests: ApiRequest[] = [];
  const wire: Transport = {
    host: 'api.test',
    request: (req) => {
      requests.push(req);
      const own = answer(req);
      if (own) return Promise.resolve(own);
      const body = req.method === 'PATCH' ? { ...live, ...(req.body as object) } : live;
      return Promise.resolve({ status: 200, body });
    },
    stream: () => Promise.reject(new Error('no streams here')),
    close: () => Promise.resolve(),
  };
  const dryRun = new DryRun(wire, props);
  return { dryRun, requests, api: new Api(dryRun) };
}

const apply = async (api: Api, force = true, object: AnyObject = wanted) =>
  api.apply(CONFIG_MAP, object, { fieldManager: 'widget-controller', force });

describe('A dry run', () => {
  it('makes a dry run of everything but reads', async () => {
    const { api, requests } = newSetup();
    await api.get(CONFIG_MAP, 'shop/web');
    await apply(api);
    await api.patch(CONFIG_MAP, 'shop/web', [], 'm');
    await api.mergePatch(CONFIG_MAP, 'shop/web', {});
    await api.create(CONFIG_MAP, wanted);
    await api.put(CONFIG_MAP, wanted, { fieldManager: 'm', exists: true });
    await api.put(CONFIG_MAP, wanted, { fieldManager: 'm', exists: false });

    const sent = requests.filter(({ method }) => method !== 'GET');
    expect(new Set(sent.map(({ method }) => method))).toEqual(new Set(['PATCH', 'POST', 'PUT']));
    expect(sent.map(({ query }) => query?.dryRun)).toEqual(sent.map(() => 'All'));
  });

  it('never sends what deletes', async () => {
    const { api, requests } = newSetup();
    await expect(api.delete(CONFIG_MAP, live)).rejects.toMatchObject({ reason: WOULD_DELETE });
    expect(requests).toEqual([]);
  });

  it('looks again where another writer has written in between, and takes that for no change of ours', async () => {
    const annotated = anObject(
      CONFIG_MAP,
      'web',
      { uid: 'u', resourceVersion: '8', annotations: { revision: '1' } },
      { data: { a: '1' } },
    );
    let looks = 0;
    const { api, dryRun, requests } = newSetup(({ method }) => ({
      status: 200,
      body: method === 'GET' && (looks += 1) === 1 ? live : annotated,
    }));
    await apply(api);
    expect(dryRun.tried.get('ConfigMap shop/web')).toEqual({
      before: annotated,
      after: annotated,
      takes: [],
    });
    expect(requests.map(({ method }) => method)).toEqual(['GET', 'PATCH', 'GET', 'PATCH']);
  });

  it('asks, where something would change by force, from whom it would be taken', async () => {
    const ownedBy = (...fields: string[]) => ({
      manager: 'kubectl-edit',
      operation: 'Update',
      fieldsV1: { 'f:data': Object.fromEntries(fields.map((field) => [`f:${field}`, {}])) },
    });
    const withOwner = (...fields: string[]) => ({
      ...live,
      metadata: { ...live.metadata, managedFields: [ownedBy(...fields)] },
    });
    const { api, dryRun, requests } = newSetup(({ method, query }) => {
      if (method === 'GET') return { status: 200, body: withOwner('a', 'b') };
      if (query?.force === 'false') return fieldConflict('kubectl-edit', '.data.a');
      return { status: 200, body: { ...withOwner('b'), data: { a: '2' } } };
    });
    await apply(api);
    expect(dryRun.tried.get('ConfigMap shop/web')?.takes).toEqual([
      { field: '.data.a', manager: 'kubectl-edit' },
    ]);
    expect(
      requests.map(({ method, query }) => `${method} ${query?.force ?? ''} ${query?.dryRun ?? ''}`),
    ).toEqual(['GET  ', 'PATCH true All', 'PATCH false All']);
  });

  it('asks no one where no other manager loses a field, and reads nothing again that a list has shown', async () => {
    const items = [{ ...live, apiVersion: undefined, kind: undefined }];
    const { api, dryRun, requests } = newSetup(
      ({ method }) =>
        method === 'GET'
          ? { status: 200, body: { apiVersion: 'v1', kind: 'ConfigMapList', metadata: {}, items } }
          : undefined,
      { keepsLists: true },
    );
    await api.listAll({ type: CONFIG_MAP, namespace: 'shop' });
    await apply(api);
    expect(dryRun.tried.get('ConfigMap shop/web')).toMatchObject({ before: live, takes: [] });
    expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'GET /api/v1/namespaces/shop/configmaps',
      'PATCH /api/v1/namespaces/shop/configmaps/web',
    ]);
  });
});
