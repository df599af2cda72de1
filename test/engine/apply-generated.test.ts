import { beforeEach, describe, expect, it } from 'vitest';
import type { Change } from '../../src/contract/change.js';
import { GeneratedSecrets } from '../../src/author/generated.js';
import type { ComposedValues } from '../../src/author/generated.js';
import { secretType } from '../../src/values/generated.js';
import type { GeneratedValues } from '../../src/contract/plan.js';
import type { AnyObject } from '../../src/contract/object.js';
import { OWNER } from './support/apply-setup.js';
import { widget, WIDGET } from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { GeneratedProcess } from './support/generated-process.js';

const values = { password: {}, key: { bytes: 16 } };
const generated = new GeneratedSecrets(WIDGET, values);
type Composed = Parameters<ComposedValues<{ readonly keys: readonly string[] }>['texts']>[0];
let server: FakeApiServer;

/** A process, and what it has seen of the cluster. */
function newProcess(placeholders = false) {
  const process = new GeneratedProcess(server, generated, { isDry: placeholders });
  const { hand, reader } = process;
  const generate = async (token?: string, made: GeneratedValues = values): Promise<Change> => {
    const cr = widget(
      'web',
      token === undefined ? {} : { annotations: { 'reconstruct.kosmos.io/rotate': token } },
    );
    return process.generate(cr, { values: made });
  };
  const known = (): AnyObject | undefined => reader.get(secretType, 'shop/web-widget-generated');
  /** Another writer deletes the Secret. */
  const gone = (): void => {
    const { uid } = known()?.metadata ?? {};
    server.remove(secretType, 'shop/web-widget-generated');
    reader.store(secretType).gone('shop/web-widget-generated', uid);
  };
  const applies = async (): Promise<object[]> =>
    (await hand.metrics.applies.get()).values.map(({ labels, value }) => ({
      outcome: labels.outcome,
      value,
    }));
  return { generate, known, gone, applies };
}

const live = (): Readonly<Record<string, string>> =>
  server.get(secretType, 'shop/web-widget-generated')?.data as Readonly<Record<string, string>>;

/** Another writer changes the Secret. */
function edit(change: (secret: AnyObject) => object): void {
  const secret = server.get(secretType, 'shop/web-widget-generated')!;
  server.put(secretType, { ...secret, ...change(secret) });
}

beforeEach(() => {
  server = new FakeApiServer();
});

describe('generated values', () => {
  it('are made at random, stored whole, and kept by name and hash', async () => {
    const { generate, known } = newProcess();
    expect(await generate()).toMatchObject({ action: 'created' });
    const { password = '', key = '' } = live();
    expect(Buffer.from(password, 'base64').toString()).toMatch(/^[A-Za-z0-9]{32}$/);
    expect(new Set(Buffer.from(password, 'base64')).size).toBeGreaterThan(8);
    expect(Buffer.from(Buffer.from(key, 'base64').toString(), 'base64')).toHaveLength(16);
    expect(known()).toMatchObject({ keys: ['password', 'key'] });
    expect(JSON.stringify(known())).not.toContain(password);
  });

  it('stay those of a first try whose answer was lost', async () => {
    const { generate } = newProcess();
    server.intercept = (request) => {
      if (request.method !== 'POST') return undefined;
      server.intercept = () => undefined;
      void server.request(request);
      throw new Error('socket hang up');
    };
    expect(await generate()).toMatchObject({ action: 'failed', error: { reason: 'Unreachable' } });
    const first = live();
    expect(await generate()).toMatchObject({ action: 'unchanged' });
    expect(live()).toEqual(first);
  });

  it('are replaced once for each text of a rotation, also where a revert brings it back', async () => {
    const { generate } = newProcess();
    await generate();
    const seen = [live().password];
    for (const token of ['1', '2', 'a\nb', '1', '2', 'a\nb', undefined, '1', '3']) {
      await generate(token);
      seen.push(live().password);
    }
    const [first, one, two, three, ...others] = seen;
    expect(new Set([first, one, two, three]).size).toBe(4);
    expect(others.slice(0, 5)).toEqual(Array(5).fill(three));
    expect(others[5]).not.toBe(three);
  });

  it('are those of one process, where another has not seen them yet; so are rotated ones', async () => {
    const [one, two] = [newProcess(), newProcess()];
    await one.generate();
    const first = live();
    expect(await two.generate()).toMatchObject({ action: 'unchanged' });
    expect(live()).toEqual(first);

    expect(await one.generate('1')).toMatchObject({ action: 'configured' });
    const rotated = live();
    expect(rotated.password).not.toBe(first.password);
    expect(await two.generate('1')).toMatchObject({ action: 'unchanged' });
    expect(await two.generate()).toMatchObject({ action: 'unchanged' });
    expect(live()).toEqual(rotated);
  });

  it('are not written over a Secret that changes between the look and the write', async () => {
    const { generate } = newProcess();
    await generate();
    server.intercept = ({ method }) => {
      if (method === 'PATCH') edit(({ data }) => ({ data: { ...(data as object), password: 'bXk=' } }));
      return undefined;
    };
    expect(await generate('1')).toMatchObject({
      action: 'failed',
      error: { reason: 'Conflict', retry: 'now' },
    });
    expect(live().password).toBe('bXk=');
  });

  it('are added where they are missing, with the label that was taken off, and the others stay', async () => {
    const { generate } = newProcess();
    await generate();
    const { key } = live();
    edit(({ metadata }) => ({ data: { key, other: 'b3RoZXI=' }, metadata: { ...metadata, labels: {} } }));
    expect(await generate()).toMatchObject({ action: 'configured' });
    expect(live()).toMatchObject({ key, other: 'b3RoZXI=', password: expect.any(String) as string });
    expect(server.get(secretType, 'shop/web-widget-generated')?.metadata.labels).toHaveProperty(
      generated.selector,
    );
  });

  it('have the texts beside them whose keys the custom resource has now', async () => {
    const chosen = new GeneratedSecrets(WIDGET, {
      password: {},
      own: {
        texts: ({ cr, values: { password } }: Composed) =>
          Object.fromEntries(cr.spec.keys.map((key) => [key, `is ${password}`])),
      },
    });
    const process = new GeneratedProcess(server, chosen);
    const generate = async (...keys: string[]): Promise<Change | undefined> => {
      const cr = { ...widget('web'), spec: { keys } };
      const known = process.reader.get(secretType, chosen.keyOf(cr));
      const missing = chosen.missing(cr, known, { now: new Date(0) });
      return missing && process.generate(cr, missing);
    };
    const textsOf = (): object =>
      Object.fromEntries(Object.entries(live()).map(([key, text]) => [key, atob(text)]));

    expect(await generate('a', 'b')).toMatchObject({ action: 'created' });
    const password = atob(live().password!);
    expect(await generate('a', 'b')).toBeUndefined();
    expect(await generate('b', 'constructor')).toMatchObject({ made: ['b', 'constructor'] });
    const text = `is ${password}`;
    expect(textsOf()).toEqual({ password, b: text, constructor: text });
    expect(await generate()).toMatchObject({ action: 'configured', made: [] });
    expect(await generate()).toBeUndefined();
    expect(textsOf()).toEqual({ password });
  });

  it.each<[what: string, change: (secret: AnyObject) => object, made: readonly string[]]>([
    ['.metadata.labels', ({ metadata }) => ({ metadata: { ...metadata, labels: {} } }), []],
    ['.metadata.ownerReferences', ({ metadata }) => ({ metadata: { ...metadata, ownerReferences: [] } }), []],
    ['.data.key', ({ data }) => ({ data: { password: (data as typeof values).password } }), ['key']],
  ])('are contested where another writer takes %s off again and again', async (field, change, made) => {
    const { generate } = newProcess();
    await generate();
    const { password } = live();
    for (let times = 0; times < 4; times++) {
      edit(change);
      expect(await generate()).toMatchObject({ action: 'configured', made });
    }
    for (let times = 0; times < 2; times++) {
      edit(change);
      const { action, error, made: stored } = await generate();
      expect({ action, reason: error?.reason }).toEqual({ action: 'failed', reason: 'FieldContested' });
      // The first was stored, and has its event.
      expect(stored).toEqual(times === 0 ? made : undefined);
      expect(error?.message).toContain(`another writer keeps changing ${field}, which`);
    }
    const { length } = server.requests;
    expect(await generate()).toMatchObject({ action: 'failed', error: { reason: 'FieldContested' } });
    expect(server.requests).toHaveLength(length);
    expect(live().password).toBe(password);
    // No rotation of what no plan has seen: it may be a backup of one that was rotated.
    expect(await generate('1')).toMatchObject({ action: 'failed', error: { retry: 'now' } });
    expect(live().password).toBe(password);
    expect(await generate('1')).toMatchObject({ action: 'configured', made: ['password', 'key'] });
  });

  it('are contested where another writer deletes the Secret, and those that were stored are named and counted once', async () => {
    const { generate, gone, applies } = newProcess();
    const outcomes: (readonly [string, readonly string[] | undefined])[] = [];
    for (let times = 0; times < 7; times++) {
      const { action, made } = await generate();
      outcomes.push([action, made]);
      gone();
    }
    const made = ['password', 'key'];
    const created = Array.from({ length: 5 }, () => ['created', made]);
    expect(outcomes).toEqual([...created, ['failed', made], ['failed', undefined]]);
    expect(server.writes.filter((write) => write.startsWith('POST'))).toHaveLength(6);
    expect(await applies()).toEqual([{ outcome: 'created', value: 6 }]);
  });

  it('are no contest, however often a rotation is asked for', async () => {
    const { generate } = newProcess();
    await generate();
    for (let times = 0; times < 9; times++)
      expect(await generate(String(times))).toMatchObject({
        action: 'configured',
        made: ['password', 'key'],
      });
  });

  it('are made for an empty one that counts as missing then, and for no other', async () => {
    const { generate } = newProcess();
    await generate();
    const { key } = live();
    edit(({ data }) => ({ data: { ...(data as object), password: '' } }));
    expect(await generate()).toMatchObject({ action: 'unchanged' });
    expect(await generate(undefined, { ...values, password: { emptyIsMissing: true } })).toMatchObject({
      action: 'configured',
    });
    expect(live()).toMatchObject({ key, password: expect.stringMatching(/./) as string });
  });

  it.each(['annotations', 'labels'])(
    'are refused, where the API server does not keep the %s',
    async (stripped) => {
      const { generate } = newProcess();
      const send = server.request.bind(server);
      server.request = async (request) => {
        const body = structuredClone(request.body) as { metadata?: Record<string, unknown> } | undefined;
        delete body?.metadata?.[stripped];
        return send({ ...request, ...(body && { body }) });
      };
      expect(await generate()).toMatchObject({ action: 'created' });
      const made = live();
      const refused = { action: 'failed', error: { reason: 'Refused', retry: 'onChange' } };
      expect(await generate()).toMatchObject(refused);
      const { length } = server.requests;
      expect(await generate()).toMatchObject(refused);
      expect(server.requests).toHaveLength(length);
      expect(live()).toEqual(made);
    },
  );

  it.each([
    ['another owner', { ownerReferences: [{ ...OWNER, uid: 'other', name: 'other' }] }, 'OwnershipConflict'],
    ['its deletion', { ownerReferences: [OWNER], deletionTimestamp: '2026-01-01T00:00:00Z' }, 'Terminating'],
  ])('are not made in a Secret with %s', async (_, metadata, reason) => {
    const { apiVersion, kind } = secretType;
    const identity = { namespace: 'shop', name: 'web-widget-generated' };
    server.put(secretType, { apiVersion, kind, metadata: { ...identity, ...metadata }, data: {} });
    expect(await newProcess().generate()).toMatchObject({ action: 'failed', error: { reason } });
    expect(live()).toEqual({});
  });

  it('are refused once, where the API server refuses them for good', async () => {
    const { generate } = newProcess();
    server.intercept = ({ method }) =>
      method === 'POST'
        ? { status: 422, body: { kind: 'Status', reason: 'Invalid', message: 'no' } }
        : undefined;
    for (let time = 0; time < 2; time++)
      expect(await generate()).toMatchObject({ action: 'failed', error: { reason: 'Invalid' } });
    expect(server.writes).toHaveLength(1);
  });
});
