import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../../src/contract/object.js';
import { Api } from '../../../src/engine/api.js';
import { DryRun, WOULD_DELETE } from '../../../src/engine/preview/dry-run.js';
import type { DryRunProps } from '../../../src/engine/preview/dry-run.js';
import type { ApiRequest, ApiResponse, Transport } from '../../../src/engine/transport.js';
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
    const { api, dryRun, requests } = newSetup(({ query }) =>
      query?.force === 'false' ? fieldConflict('kubectl-edit', '.data.a') : undefined,
    );
    await apply(api);
    expect(dryRun.tried.get('ConfigMap shop/web')?.takes).toEqual([
      { field: '.data.a', manager: 'kubectl-edit' },
    ]);
    expect(
      requests.map(({ method, query }) => `${method} ${query?.force ?? ''} ${query?.dryRun ?? ''}`),
    ).toEqual(['GET  ', 'PATCH true All', 'PATCH false All']);
  });
});
