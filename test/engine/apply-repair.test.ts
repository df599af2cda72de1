import { describe, expect, it } from 'vitest';
import { handlersOf, interpret } from '../../src/engine/plan/interpret.js';
import type { Change } from '../../src/contract/change.js';
import type { AnyObject, FieldsV1, ManagedFieldsEntry } from '../../src/contract/object.js';
import type { ApiRequest, ApiResponse } from '../../src/client/transport.js';
import { deployment, edit, newSetup, settledSetup, step } from './support/apply-setup.js';
import type { Setup } from './support/apply-setup.js';
import { anObject, applied, DEPLOYMENT, failure, MANAGER, SERVICE } from './support/builders.js';
import { recordedFields } from './support/recorded-fields.js';
import { isAppliedBy, managedFieldsOf } from '../../src/values/projections.js';

const KEY = 'shop/web';
const JSON_PATCH = 'application/json-patch+json';

function entryOf(manager: string, fieldsV1: object, operation = 'Update'): ManagedFieldsEntry {
  return { ...(applied(manager, fieldsV1, 'apps/v1') as ManagedFieldsEntry), operation };
}

/** Adds an entry to the record of owners of the Deployment. */
function record(setup: Setup, entry: ManagedFieldsEntry): void {
  const live = setup.server.get(DEPLOYMENT, KEY)!;
  const metadata = { ...live.metadata, managedFields: [...managedFieldsOf(live), entry] };
  setup.server.put(DEPLOYMENT, { ...live, metadata: metadata });
  setup.sync();
}

const requests = ({ server }: Setup): string[] =>
  server.requests.map(({ method, contentType }) => (contentType === JSON_PATCH ? 'REPAIR' : method));
const managers = ({ server }: Setup): (string | undefined)[] =>
  managedFieldsOf(server.get(DEPLOYMENT, KEY)!).map(({ manager }) => manager);

/** The server answers the first apply like this, and every other request itself. */
function failOnce(
  setup: Setup,
  answer: ApiResponse,
  isApply = (request: ApiRequest) => request.contentType !== JSON_PATCH,
): void {
  let failed = false;
  setup.server.intercept = (request) => {
    if (failed || request.method !== 'PATCH' || !isApply(request)) return undefined;
    failed = true;
    return answer;
  };
}

const SHARED: FieldsV1 = { 'f:spec': { 'f:replicas': {} } };
const THEIRS: FieldsV1 = { 'f:spec': { 'f:paused': {} } };

describe('Applier, legacy managers', () => {
  it('takes what both own from a legacy manager, once, also after a restart', async () => {
    const setup = await settledSetup();
    record(setup, entryOf('kubectl-create', { 'f:spec': { ...SHARED['f:spec'], ...THEIRS['f:spec'] } }));
    expect(await setup.apply()).toMatchObject({ action: 'configured' });
    expect(requests(setup)).toEqual(['GET', 'REPAIR']);
    expect(managedFieldsOf(setup.server.get(DEPLOYMENT, KEY)!)).toContainEqual(
      entryOf('kubectl-create', THEIRS),
    );

    expect(await setup.apply()).toMatchObject({ action: 'unchanged' });
    const restarted = newSetup(setup.server);
    restarted.sync();
    expect(await restarted.apply()).toMatchObject({ action: 'unchanged' });
    expect(requests(setup)).toEqual(['GET', 'REPAIR']);
  });

  it('gives way to one that takes it back again and again, and names it', async () => {
    const setup = await settledSetup();
    const changes = [];
    for (let round = 0; round < 8; round++) {
      record(setup, entryOf('helm', SHARED));
      changes.push(await setup.apply());
    }
    expect(changes.map(({ action }) => action)).toEqual([
      ...Array<string>(4).fill('configured'),
      ...Array<string>(4).fill('failed'),
    ]);
    expect(changes.at(-1)?.error).toMatchObject({
      reason: 'FieldContested',
      message: expect.stringContaining('helm keeps changing fields') as string,
    });
    expect(requests(setup)).toHaveLength(10);
  });

  it('does so before anything else is applied, so that what is dropped then vanishes', async () => {
    const setup = await settledSetup();
    record(setup, entryOf('helm', SHARED));
    const { replicas, ...spec } = (deployment(2) as { spec?: Record<string, unknown> }).spec!;
    expect(replicas).toBe(2);
    expect(await setup.apply(step({ ...deployment(2), spec }))).toMatchObject({ action: 'configured' });
    expect(requests(setup)).toEqual(['GET', 'REPAIR', 'PATCH']);
    expect(setup.server.get(DEPLOYMENT, KEY)).not.toHaveProperty('spec.replicas');
    expect(managers(setup)).toEqual([MANAGER]);
  });

  it.each([
    ['other fields of a legacy manager', entryOf('kubectl-edit', THEIRS)],
    ['what another controller owns too', entryOf('another-controller', SHARED, 'Apply')],
    ['what was written through a subresource', { ...entryOf('kubectl', SHARED), subresource: 'status' }],
  ])('leaves alone %s', async (_, entry) => {
    const setup = await settledSetup();
    record(setup, entry);
    expect(await setup.apply()).toMatchObject({ action: 'unchanged' });
    expect(requests(setup)).toEqual([]);
  });

  it.each([
    ['the manager that held the replicas for an autoscaler', entryOf('widget-replicas', SHARED, 'Apply')],
    ['a write through /scale', { ...entryOf('kube-controller-manager', SHARED), subresource: 'scale' }],
  ])(
    'takes the replicas from %s once they are applied, and not before an apply that drops them',
    async (_, entry) => {
      const setup = await settledSetup();
      record(setup, entry);
      expect(await setup.apply()).toMatchObject({ action: 'configured' });
      expect(requests(setup)).toEqual(['GET', 'REPAIR']);
      expect(managers(setup)).toEqual([MANAGER]);

      record(setup, entry);
      setup.server.requests.length = 0;
      const { replicas, ...spec } = (deployment(2) as { spec?: Record<string, unknown> }).spec!;
      await setup.apply(step({ ...deployment(2), spec }));
      expect(requests(setup)).toEqual(['PATCH']);
      expect(managers(setup).sort()).toEqual([MANAGER, entry.manager].sort());
    },
  );
});

describe('Applier, a name that is there twice', () => {
  const port = (number: number) => ({ name: 'http', port: number, protocol: 'TCP' });
  const service = (number: number): AnyObject =>
    anObject(SERVICE, 'web', {}, { spec: { ports: [port(number)] } });
  const duplicate = failure(
    422,
    'Invalid',
    'Service "web" is invalid: spec.ports[1].name: Duplicate value: "http"',
    {
      causes: [
        { reason: 'FieldValueDuplicate', message: 'Duplicate value: "http"', field: 'spec.ports[1].name' },
      ],
    },
  );

  /** An object of ours, whose port is somebody else's. */
  async function withOldPort(manager: string, operation = 'Update'): Promise<Setup> {
    const setup = newSetup();
    await setup.apply(step(anObject(SERVICE, 'web')));
    const live = setup.server.get(SERVICE, KEY)!;
    const { spec } = service(80) as { spec?: object };
    const entry = entryOf(manager, recordedFields(anObject(SERVICE, 'web', {}, { spec })), operation);
    const metadata = { ...live.metadata, managedFields: [...managedFieldsOf(live), entry] };
    setup.reader.store(SERVICE).observed(setup.server.put(SERVICE, { ...live, metadata, spec }));
    setup.server.requests.length = 0;
    return setup;
  }

  it.each(['kubectl-client-side-apply', 'some-script'])(
    'is taken from %s, and applied again',
    async (manager) => {
      const setup = await withOldPort(manager);
      failOnce(setup, duplicate);
      expect(await setup.apply(step(service(81)))).toMatchObject({ action: 'configured' });
      expect(requests(setup)).toEqual(['PATCH', 'GET', 'REPAIR', 'PATCH']);
      const repair = setup.server.requests[2]!.body as [unknown, { value: ManagedFieldsEntry[] }];
      const own = repair[1].value.find((entry) => isAppliedBy(MANAGER, entry));
      expect(own?.fieldsV1).toMatchObject({
        'f:spec': { 'f:ports': { 'k:{"port":80,"protocol":"TCP"}': {} } },
      });
      expect(JSON.stringify(repair[1].value.filter((entry) => entry !== own))).not.toContain('"port\\":80');
    },
  );

  it('is left alone where it is our own mistake', async () => {
    const setup = newSetup();
    await setup.apply(step(service(80)));
    setup.server.requests.length = 0;
    failOnce(setup, duplicate);
    const twice = anObject(SERVICE, 'web', {}, { spec: { ports: [port(80), port(81)] } });
    expect(await setup.apply(step(twice))).toMatchObject({ error: { reason: 'Invalid' } });
    expect(requests(setup)).toEqual(['PATCH', 'GET']);
  });
});

describe('Applier, a default that the API server refuses', () => {
  const message = 'Invalid value: 600: must be greater than minReadySeconds';
  const causes = [{ reason: 'FieldValueInvalid', message, field: 'spec.progressDeadlineSeconds' }];
  const refusal = failure(
    422,
    'Invalid',
    `Deployment.apps "web" is invalid: spec.progressDeadlineSeconds: ${message}`,
    { causes },
  );
  const specified = (object: AnyObject, spec: object): AnyObject => ({
    ...object,
    spec: { ...(object.spec as object), ...spec },
  });

  it('is not ours where it is refused once we own it, too, and is not tried again', async () => {
    const setup = await settledSetup();
    edit(setup, (live) => specified(live, { progressDeadlineSeconds: 600 }));
    const before = managedFieldsOf(setup.server.get(DEPLOYMENT, KEY)!);
    setup.server.intercept = ({ body }) =>
      JSON.stringify(body ?? '').includes('minReadySeconds') ? refusal : undefined;
    const wrong = step(specified(deployment(), { minReadySeconds: 700 }));
    const tried = ['PATCH', 'GET', 'REPAIR', 'PATCH', 'REPAIR'];
    for (let time = 0; time < 2; time++) {
      expect(await setup.apply(wrong)).toMatchObject({ error: { reason: 'Invalid', retry: 'onChange' } });
      expect(requests(setup)).toEqual(tried);
      setup.sync();
    }
    expect(managedFieldsOf(setup.server.get(DEPLOYMENT, KEY)!)).toEqual(before);
    expect(await setup.apply({ ...step(), drift: 'warn' })).toMatchObject({ action: 'unchanged' });
  });

  it('does not keep an object from being recreated, where another field cannot be changed', async () => {
    const setup = await settledSetup();
    edit(setup, (live) => specified(live, { progressDeadlineSeconds: 600 }));
    const immutable = { ...causes[0], message: 'Invalid value: {}: field is immutable' };
    const answers = [refusal, failure(422, 'Invalid', 'is invalid', { causes: [immutable] })];
    setup.server.intercept = ({ method, contentType }) =>
      method === 'PATCH' && contentType !== JSON_PATCH ? answers.shift() : undefined;
    const recreated = { ...step(specified(deployment(), { minReadySeconds: 700 })), recreate: true };
    expect(await setup.apply(recreated)).toMatchObject({ action: 'recreated' });
  });
});

describe('Applier, a record that a writer made up', () => {
  const deep = { [`v:${'['.repeat(300) + ']'.repeat(300)}`]: {} };

  it('is left as it is where an object is adopted', async () => {
    const setup = newSetup();
    const annotations = { 'reconstruct.kosmos.io/adopt-by': 'Widget/web' };
    const managedFields = [entryOf('kubectl-create', SHARED), entryOf('kubectl-edit', { 'f:spec': deep })];
    const metadata = { ...deployment().metadata, annotations, managedFields };
    setup.server.put(DEPLOYMENT, { ...deployment(), metadata });
    setup.sync();
    expect(await setup.apply()).toMatchObject({ action: 'configured' });
    expect(requests(setup)).toEqual(['GET', 'PATCH']);
  });

  it('is left as it is where an apply is refused', async () => {
    const setup = await settledSetup();
    record(setup, entryOf('kubectl-edit', { 'f:spec': { 'f:paused': deep } }));
    const message = 'Forbidden: may not be set';
    const causes = [{ reason: 'FieldValueForbidden', message, field: 'spec.paused' }];
    edit(setup, (live) => ({ ...live, spec: { ...(live.spec as object), paused: true } }));
    failOnce(setup, failure(422, 'Invalid', 'is invalid', { causes }));
    expect(await setup.apply(step(deployment(3)))).toMatchObject({ error: { reason: 'Invalid' } });
    expect(requests(setup)).toEqual(['PATCH', 'GET']);
  });
});

describe('Applier, another version of an API', () => {
  const notDeclared = failure(
    500,
    'InternalError',
    'failed to convert pruned object at version apps/v1beta1: .spec.old: field not declared in schema',
  );

  function inOldVersion(setup: Setup): void {
    const live = setup.server.get(DEPLOYMENT, KEY)!;
    const managedFields = managedFieldsOf(live).map((entry) => ({ ...entry, apiVersion: 'apps/v1beta1' }));
    setup.server.put(DEPLOYMENT, { ...live, metadata: { ...live.metadata, managedFields } as never });
    setup.sync();
  }

  it('rewrites our entry when it has fields that are gone, and applies again', async () => {
    const setup = await settledSetup();
    inOldVersion(setup);
    failOnce(setup, notDeclared);
    expect(await setup.apply(step(deployment(3)))).toMatchObject({ action: 'configured' });
    expect(requests(setup)).toEqual(['PATCH', 'GET', 'REPAIR', 'PATCH']);
    const repair = setup.server.requests[2]!.body as [unknown, { value: ManagedFieldsEntry[] }];
    expect(repair[1].value).toMatchObject([{ manager: MANAGER, apiVersion: 'apps/v1' }]);
  });
});

const exceeded = (requested: string, used: string, limited: string): string => {
  const [name] = requested.split('=');
  return `deployments.apps "web" is forbidden: exceeded quota: q, requested: ${requested}, used: ${name}=${used}, limited: ${name}=${limited}`;
};

describe('Applier, what cannot be changed', () => {
  const immutable = failure(422, 'Invalid', 'spec.template: field is immutable', {
    causes: [
      {
        reason: 'FieldValueInvalid',
        message: 'Invalid value: {}: field is immutable',
        field: 'spec.template',
      },
    ],
  });
  const changed = { ...step(deployment(3)), recreate: true };

  it('is deleted as it was seen, and recreated', async () => {
    const setup = await settledSetup();
    failOnce(setup, immutable);
    expect(await setup.apply(changed)).toMatchObject({ action: 'recreated' });
    expect(requests(setup)).toEqual(['PATCH', 'POST', 'DELETE', 'PATCH']);
    const [, trial, deletion] = setup.server.requests;
    expect(trial).toMatchObject({ query: { dryRun: 'All', fieldManager: MANAGER } });
    expect(trial?.body).toEqual(setup.last().body);
    expect(deletion?.body).toMatchObject({ preconditions: { uid: 'uid-web', resourceVersion: '101' } });
    expect(setup.last().body.metadata).not.toHaveProperty('uid');
  });

  it('is not deleted when it has changed since it was seen', async () => {
    const setup = await settledSetup();
    setup.server.put(DEPLOYMENT, setup.server.get(DEPLOYMENT, KEY)!);
    failOnce(setup, immutable);
    expect(await setup.apply(changed)).toMatchObject({ error: { reason: 'Conflict', retry: 'now' } });
    failOnce(setup, immutable);
    expect(await setup.apply(changed)).toMatchObject({ action: 'recreated' });
  });

  it.each([
    [
      'is refused for what it says',
      failure(422, 'Invalid', 'spec.replicas: Invalid value: -1'),
      { reason: 'Invalid', retry: 'onChange' },
    ],
    [
      'is refused by a policy',
      failure(
        403,
        'Forbidden',
        `deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`,
      ),
      { reason: 'Refused', retry: 'onChange' },
    ],
    [
      'would find no room in a quota without it either',
      failure(403, 'Forbidden', exceeded('count/deployments.apps=1', '3', '2')),
      { reason: 'QuotaExceeded', retry: 'backoff' },
    ],
    [
      'takes more of a quota than it gives back',
      failure(403, 'Forbidden', exceeded('services.nodeports=1', '2', '2')),
      { reason: 'QuotaExceeded', retry: 'backoff' },
    ],
    [
      'cannot be tried',
      failure(503, 'ServiceUnavailable', 'later'),
      { reason: 'ServerOverloaded', retry: 'backoff' },
    ],
  ])('stays where the object in its place %s', async (_, refusal, error) => {
    const setup = await settledSetup();
    setup.server.intercept = ({ method }) =>
      method === 'POST' ? refusal : method === 'PATCH' ? immutable : undefined;
    expect(await setup.apply(changed)).toMatchObject({ action: 'failed', error });
    const writes = (): string[] => requests(setup).filter((method) => method !== 'GET');
    expect(writes()).toEqual(['PATCH', 'POST']);
    // A refusal for good is remembered.
    await setup.apply(changed);
    expect(writes()).toHaveLength(error.retry === 'onChange' ? 2 : 4);
  });

  it('stays as it is where the kind does not allow it', async () => {
    const setup = await settledSetup();
    failOnce(setup, immutable);
    expect(await setup.apply(step(deployment(3)))).toMatchObject({ error: { reason: 'ImmutableField' } });
    expect(requests(setup)).toEqual(['PATCH']);
  });
});

describe('Applier, of a map that becomes empty', () => {
  const field = 'spec.template.spec.nodeSelector';
  const emptied = (value: object) => {
    const { spec, ...rest } = deployment(3) as AnyObject & { readonly spec: object };
    return step({ ...rest, spec: { ...spec, template: { spec: { nodeSelector: value } } } });
  };
  const message = `Invalid value: "null": ${field} in body must be of type object: "null"`;
  const refused = (at = field): ApiResponse =>
    failure(422, 'Invalid', 'is invalid', {
      causes: [{ reason: 'FieldValueTypeInvalid', message, field: at }],
    });
  const bodies = ({ server }: Setup): string[] =>
    server.requests.map(({ body }) => JSON.stringify((body as AnyObject & { readonly spec: object }).spec));

  /** The server refuses the map, and answers an apply without it like this. */
  const applyRefusedTwice = async (answer: ApiResponse): Promise<Change> => {
    const setup = await settledSetup();
    setup.server.intercept = ({ method, body }) => {
      if (method !== 'PATCH') return undefined;
      return JSON.stringify(body).includes('nodeSelector') ? refused() : answer;
    };
    return setup.apply(emptied({}));
  };

  it('removes it first, without what would look like drift where it ends at that', async () => {
    const setup = await settledSetup();
    failOnce(setup, refused());
    expect(await setup.apply(emptied({}))).toMatchObject({ action: 'configured' });
    expect(bodies(setup).map((body) => body.includes('nodeSelector'))).toEqual([true, false, true]);
    const hashes = setup.server.requests.map(
      ({ body }) => (body as AnyObject).metadata.annotations?.['reconstruct.kosmos.io/applied-hash'],
    );
    expect(hashes[1]).not.toBe(hashes[2]);
    expect(hashes[0]).toBe(hashes[2]);
  });

  it('sends nothing more where there is no map, and says what was refused first', async () => {
    const setup = await settledSetup();
    failOnce(setup, refused('spec.paused'));
    expect(await setup.apply(emptied({}))).toMatchObject({ action: 'failed' });
    expect(setup.server.requests).toHaveLength(1);

    const { error } = await applyRefusedTwice(failure(422, 'Invalid', `${field}: Required value`));
    expect(error?.message).toContain('is invalid');
    const { error: busy } = await applyRefusedTwice(failure(503, 'ServiceUnavailable', 'no'));
    expect(busy?.retry).toBe('backoff');
  });

  it('shows in a dry run what is removed', async () => {
    const setup = await settledSetup();
    failOnce(setup, refused());
    const hand = { ...setup.hand, isDry: true };
    const plan = { steps: [emptied({})], conclude: () => ({ status: [], events: [] }) };
    const { changes } = await interpret(plan, hand, handlersOf([]));
    expect(changes[0]?.action).toBe('configured');
    expect(setup.server.requests).toHaveLength(2);
  });
});
