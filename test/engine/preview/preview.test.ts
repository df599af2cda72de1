import { describe, expect, it } from 'vitest';
import type { Controller } from '../../../src/contract/controller.js';
import { NOTHING } from '../../../src/contract/plan.js';
import type { Conclusion, ForeignStep, OwnStep, Plan, PruneStep, Step } from '../../../src/contract/plan.js';
import { objectKey, refOf } from '../../../src/contract/object.js';
import type { AnyObject } from '../../../src/contract/object.js';
import type { StepHandler } from '../../../src/engine/plan/hand.js';
import { preview } from '../../../src/engine/preview/preview.js';
import type { PreviewProps } from '../../../src/engine/preview/preview.js';
import type { ApiRequest, ApiResponse, Transport } from '../../../src/client/transport.js';
import {
  anObject,
  CONFIG_MAP,
  DEPLOYMENT,
  failure,
  MANAGER,
  ownedBy,
  SERVICE,
  widget,
  WIDGET,
} from '../support/builders.js';

/** As much of an API server as a diff sees; applies answer with what was sent, laid over what is there. */
class Server implements Transport {
  readonly host = 'api.test';
  readonly requests: string[] = [];
  intercept: (req: ApiRequest) => ApiResponse | undefined = () => undefined;

  constructor(private readonly objects: readonly AnyObject[]) {}

  request(req: ApiRequest): Promise<ApiResponse> {
    this.requests.push(`${req.method} ${req.path}`);
    return Promise.resolve(this.intercept(req) ?? this.answer(req));
  }

  stream(): Promise<never> {
    return Promise.reject(new Error('nothing is watched here'));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  private answer({ method, path, body }: ApiRequest): ApiResponse {
    const [plural, name] = path
      .split('/')
      .slice(path.startsWith('/api/') ? 3 : 4)
      .slice(path.includes('/namespaces/') ? 2 : 0);
    const ofType = this.objects.filter(({ kind }) => `${kind.toLowerCase()}s` === plural);
    const namespace = /namespaces\/([^/]+)/.exec(path)?.[1];
    if (name === undefined) {
      const items = ofType.filter(({ metadata }) => !namespace || metadata.namespace === namespace);
      return { status: 200, body: { metadata: { resourceVersion: '100' }, items } };
    }
    const known = ofType.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
    if (method === 'GET')
      return known ? { status: 200, body: known } : failure(404, 'NotFound', `${plural} "${name}" not found`);
    const sent = body as AnyObject;
    if (!known)
      return { status: 201, body: { ...sent, metadata: { ...sent.metadata, uid: 'dry', generation: 1 } } };
    const annotations = { ...known.metadata.annotations, ...sent.metadata.annotations };
    return {
      status: 200,
      body: { ...known, ...sent, metadata: { ...known.metadata, ...sent.metadata, annotations } },
    };
  }
}

function controllerOf(
  reconcile: Controller['reconcile'],
  watches: Partial<Controller['watches'][number]>[] = [],
): Controller {
  const mapsTo = ({ metadata }: AnyObject): string[] => [objectKey(metadata.namespace, metadata.name)];
  return {
    ...{ name: 'widget', kind: 'Widget', reconcile },
    watches: [
      { type: WIDGET },
      { type: DEPLOYMENT },
      { type: SERVICE },
      { type: CONFIG_MAP },
      ...watches,
    ].map((watch) => ({ mapsTo, ...watch }) as Controller['watches'][number]),
  };
}

const given = widget('web');
const owned = (object: AnyObject): AnyObject => ({
  ...object,
  metadata: {
    ...object.metadata,
    uid: `uid-${object.metadata.name}`,
    resourceVersion: '7',
    ownerReferences: [ownedBy('web')],
  },
});
const applying = (object: AnyObject): OwnStep => ({
  ...({ do: 'own', object, fieldManager: MANAGER } as const),
  owner: ownedBy('web'),
});
const pruning = (object: AnyObject): PruneStep => ({ do: 'prune', object });
const map = (name: string, a: string) => anObject(CONFIG_MAP, name, {}, { data: { a } });

async function previewed(server: Server, controller: Controller, props: Partial<PreviewProps> = {}) {
  const now = (): Date => new Date('2026-01-01T00:00:00Z');
  const all = { controllers: [controller], given: [{ before: given, after: given }], transport: server, now };
  return preview({ ...all, ...props });
}

async function actions(server: Server, controller: Controller): Promise<string[]> {
  const { objects } = await previewed(server, controller);
  return objects.map(({ action, ref }) => `${action} ${ref.kind} ${ref.name}`);
}

describe('A preview', () => {
  it('reads what the plan asks for, and nothing else, until it asks for nothing more', async () => {
    const server = new Server([given, owned(map('web', '1'))]);
    let asked = 0;
    const controller = controllerOf((key, reader) => {
      asked++;
      const cr = reader.get(WIDGET, key);
      if (cr && reader.controlledBy(CONFIG_MAP, cr.metadata.uid ?? '').length > 0)
        reader.get(SERVICE, 'shop/web');
      return NOTHING;
    });
    await previewed(server, controller);

    expect(server.requests).toEqual([
      'GET /api/v1/namespaces/shop/configmaps',
      'GET /api/v1/namespaces/shop/services/web',
    ]);
    expect(asked).toBe(4);
  });

  it('tells what is new, what changes and what stays, and deletes nothing', async () => {
    const live = [given, owned(map('changed', '1')), owned(map('same', '1')), owned(map('gone', '1'))];
    const server = new Server(live);
    const controller = controllerOf(() => ({
      ...NOTHING,
      steps: [
        ...[map('changed', '2'), map('same', '1'), map('new', '1')].map(applying),
        { do: 'barrier' },
        pruning(owned(map('gone', '1'))),
      ],
    }));

    expect(await actions(server, controller)).toEqual([
      'changed ConfigMap changed',
      'unchanged ConfigMap same',
      'created ConfigMap new',
      'deleted ConfigMap gone',
    ]);
    expect(server.requests.filter((request) => !/^(GET|PATCH)/.test(request))).toEqual([]);
  });

  it("refuses what is another writer's, and then deletes nothing", async () => {
    const theirs = anObject(CONFIG_MAP, 'web', { uid: 'x', resourceVersion: '7' }, { data: {} });
    const controller = controllerOf(() => ({
      ...NOTHING,
      steps: [applying(map('web', '1')), { do: 'barrier' }, pruning(owned(map('gone', '1')))],
    }));
    const { objects } = await previewed(new Server([given, theirs]), controller);

    expect(objects).toMatchObject([
      { action: 'failed', error: { reason: 'OwnershipConflict' } },
      { action: 'skipped', ref: { name: 'gone' } },
    ]);
  });

  it('tries what waits, and says for what', async () => {
    const first = anObject(DEPLOYMENT, 'a', {}, { spec: { paused: true } });
    const ref = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'a' };
    const waits = { ...applying(map('b', '1')), waitsFor: [first] };
    const controller = controllerOf(() => ({ ...NOTHING, steps: [applying(first), waits] }));
    const { objects } = await previewed(new Server([given]), controller);
    expect(objects.map(({ action, waitsFor }) => [action, waitsFor])).toEqual([
      ...[
        ['created', undefined],
        ['created', ref],
      ],
    ]);
  });

  it('tells what would be recreated', async () => {
    const server = new Server([given, owned(map('web', '1'))]);
    server.intercept = ({ method }) =>
      method === 'PATCH'
        ? failure(422, 'Invalid', 'immutable', {
            causes: [
              { reason: 'FieldValueForbidden', message: 'Forbidden: field is immutable', field: 'data' },
            ],
          })
        : undefined;
    const step = { ...applying(map('web', '2')), recreate: true };

    expect(
      await actions(
        server,
        controllerOf(() => ({ ...NOTHING, steps: [step] })),
      ),
    ).toEqual(['recreated ConfigMap web']);
  });

  it('hands over a field of what it would have made before', async () => {
    const object = anObject(DEPLOYMENT, 'web', {}, { spec: { paused: true } });
    const controller = controllerOf((_, reader) => {
      const made = reader.controlledBy(DEPLOYMENT, 'uid-web').length > 0;
      const handed = { ...object, spec: { replicas: 3, paused: true } };
      const handing: Step = { do: 'handOver', object: handed, fieldManager: 'widget-replicas' };
      const conclude = (): Conclusion => ({ status: [], events: [], ...(!made && { next: 'now' }) });
      return { steps: [...(made ? [handing] : []), applying(object)], conclude };
    });
    const server = new Server([given]);
    const { objects } = await previewed(server, controller);

    // Nothing can be tried on what isn't there.
    expect(server.requests.filter((request) => request.startsWith('PATCH'))).toHaveLength(1);
    expect(objects).toMatchObject([{ action: 'created', after: { spec: { paused: true, replicas: 3 } } }]);
  });

  it("does without a kind that is optional and isn't installed, and not without any other", async () => {
    const server = new Server([given]);
    server.intercept = ({ path }) =>
      path.includes('routes') ? { status: 404, body: '404 page not found' } : undefined;
    const type = { apiVersion: 'net.example.com/v1', kind: 'Route', plural: 'routes', namespaced: true };
    const asking = (optional: boolean) =>
      controllerOf(
        (_, reader) => {
          reader.controlledBy(type, 'uid-web');
          return NOTHING;
        },
        [{ type, optional }],
      );

    expect(await actions(server, asking(true))).toEqual([]);
    await expect(previewed(server, asking(false))).rejects.toMatchObject({ kindNotServed: true });
  });

  it.each<readonly [string, string, ApiResponse]>([
    [
      'is installed in another version',
      'serves v2',
      { status: 200, body: { spec: { versions: [{ name: 'v2', served: true }] } } },
    ],
    ['may be installed, since reading its CRD failed', '500 no', failure(500, 'InternalError', 'no')],
  ])('takes no kind for missing that %s: what only is read ends it', async (_, why, answer) => {
    const server = new Server([given]);
    server.intercept = ({ path }) => {
      if (path.includes('customresourcedefinitions')) return answer;
      return path.includes('routes') ? { status: 404, body: '404 page not found' } : undefined;
    };
    const type = { apiVersion: 'net.example.com/v1', kind: 'Route', plural: 'routes', namespaced: true };
    const asking = (readOnly: boolean) =>
      controllerOf(
        (_, reader) => {
          reader.controlledBy(type, 'uid-web');
          return NOTHING;
        },
        [{ type, optional: true, readOnly }],
      );

    expect(await actions(server, asking(false))).toEqual([]);
    const error = { reason: 'KindNotServed', message: expect.stringContaining(why) as string };
    await expect(previewed(server, asking(true))).rejects.toMatchObject(error);
  });

  it("tells what a plan means, and of others' objects what its words tell alone", async () => {
    const explained = { of: { ...WIDGET, name: 'web' }, summary: 'would delete 1 of 1', differs: true };
    const plan: Plan = {
      steps: [{ do: 'demo/sweep', object: map('theirs', '1') }],
      conclude: () => ({ status: [], events: [], explanations: [explained] }),
    };
    const handler: StepHandler<ForeignStep> = {
      do: 'demo/sweep',
      carryOut: () => Promise.reject(new Error('never called')),
      preview: ({ object }) => Promise.resolve({ ref: refOf(object), action: 'deleted' }),
    };
    const controller = { ...controllerOf(() => plan), explains: true, handlers: [handler] };
    expect(await previewed(new Server([given]), controller)).toEqual({
      objects: [],
      explanations: [explained],
      explainedBefore: [],
    });
  });

  it.each([
    ['created', 'created'],
    ['configured', 'changed'],
    ['corrected', 'changed'],
    ['deleted', 'deleted'],
    ['unchanged', 'unchanged'],
    ['skipped', 'skipped'],
  ] as const)('shows what a foreign step reports: %s', async (action, shown) => {
    const handler: StepHandler<ForeignStep> = {
      do: 'demo/send',
      carryOut: () => Promise.reject(new Error('never called')),
      preview: ({ object }) => Promise.resolve({ ref: refOf(object), action }),
    };
    const steps: Step[] = [{ do: 'demo/send', object: map('theirs', '1') }];
    const controller = { ...controllerOf(() => ({ ...NOTHING, steps })), handlers: [handler] };

    expect(await actions(new Server([given]), controller)).toEqual([`${shown} ConfigMap theirs`]);
  });
});
