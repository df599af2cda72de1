import { describe, expect, it } from 'vitest';
import type { Change, FieldConflict } from '../../src/contract/change.js';
import { handlersOf, interpret } from '../../src/engine/plan/interpret.js';
import { share } from '../../src/engine/steps/share.js';
import type { ShareStep } from '../../src/engine/steps/share.js';
import { SHARED_HASH_PREFIX } from '../../src/contract/names.js';
import type { AnyObject } from '../../src/contract/object.js';
import type { ApiRequest, ApiResponse } from '../../src/client/transport.js';
import { newBench, plan } from './support/bench.js';
import type { Bench } from './support/bench.js';
import { anObject, applied, CONFIG_MAP, failure, MANAGER } from './support/builders.js';
import { FakeApiServer } from './support/fake-api-server.js';

const KEY = 'shop/tcp';

const entries = (...keys: string[]): AnyObject =>
  anObject(CONFIG_MAP, 'tcp', {}, { data: Object.fromEntries(keys.map((key) => [key, 'ours'])) });

/** Leaves out what others own. */
const withoutOthers = (conflicts: readonly FieldConflict[], object: AnyObject): AnyObject => ({
  ...object,
  data: Object.fromEntries(
    Object.entries(object.data as object).filter(([key]) =>
      conflicts.every(({ field }) => field !== `.data.${key}`),
    ),
  ),
});

const step = (object: AnyObject, more: Partial<ShareStep> = {}): ShareStep => ({
  ...{ do: 'engine/share', object, fieldManager: MANAGER },
  ...more,
});

const reducible = (...keys: string[]): ShareStep => step(entries(...keys), { onConflict: withoutOthers });

interface Shared extends Bench {
  /** Data keys that somebody else owns, and who it is. */
  readonly others: Map<string, string>;
  /** Returns what became of the last one. */
  readonly apply: (...steps: readonly ShareStep[]) => Promise<Change>;
  /** Applies that were sent, with the keys of each. */
  readonly sent: () => string[];
}

function setup(seed?: AnyObject): Shared {
  const bench = newBench(new FakeApiServer());
  const { server, reader, hand, stores } = bench;
  const others = new Map<string, string>();
  for (const { store } of stores.all())
    store.onChange((before, after) => {
      if (before && !after) hand.memory.gone(before);
    });
  server.intercept = (request) => conflictOf(request, others);
  if (seed) reader.store(CONFIG_MAP).observed(server.put(CONFIG_MAP, seed));
  const sent = (): string[] =>
    server.requests.flatMap(({ method, body, query }) => {
      expect(query?.force ?? 'false').toBe('false');
      if (method !== 'PATCH') return [];
      return [Object.keys((body as { data?: object }).data ?? {}).join()];
    });
  const handlers = handlersOf([share]);
  const apply = async (...steps: readonly ShareStep[]) =>
    (await interpret(plan({ steps }), hand, handlers)).changes.at(-1)!;
  return { ...bench, others, sent, apply };
}

function conflictOf(
  { method, body, contentType }: ApiRequest,
  others: ReadonlyMap<string, string>,
): ApiResponse | undefined {
  if (method !== 'PATCH' || !contentType?.includes('apply-patch')) return undefined;
  const taken = Object.keys((body as { data?: object }).data ?? {}).filter((key) => others.has(key));
  if (taken.length === 0) return undefined;
  const causes = taken.map((key) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with "${others.get(key) ?? ''}" using v1`,
    field: `.data.${key}`,
  }));
  return failure(409, 'Conflict', `Apply failed with ${String(taken.length)} conflicts`, { causes });
}

describe('A shared object', () => {
  describe('that another writer has to make', () => {
    it('is waited for', async () => {
      const { apply, server } = setup();
      expect(await apply(step(entries('9000'), { mustExist: true }))).toMatchObject({
        action: 'failed',
        error: { reason: 'TargetMissing', retry: 'onChange' },
      });
      expect(server.requests).toEqual([]);
    });
  });

  describe('of which nothing is said', () => {
    it('is let go of, with all that was ours and nothing else, once', async () => {
      const theirs = { managedFields: [applied('helm', { 'f:data': { 'f:80': {} } })] };
      const { apply, server, sent } = setup(anObject(CONFIG_MAP, 'tcp', theirs, { data: { 80: 'theirs' } }));
      server.intercept = ({ body, method }) => {
        const data = (body as { data?: object } | undefined)?.data;
        if (method !== 'PATCH' || !data) return undefined;
        // The fake server replaces maps; here others' entries stay.
        (body as { data: object }).data = { 80: 'theirs', ...data };
        return undefined;
      };
      await apply(step(entries('9000')));
      expect((await apply(step(entries()))).action).toBe('configured');
      expect(sent().at(-1)).toBe('');
      expect(server.get(CONFIG_MAP, KEY)?.metadata.annotations ?? {}).toEqual({});
      const before = server.requests.length;
      expect((await apply(step(entries()))).action).toBe('unchanged');
      expect(server.requests).toHaveLength(before);
    });
  });
});

describe('A conflict', () => {
  it('leads to an apply of the rest in the same pass', async () => {
    const { apply, others, sent } = setup(anObject(CONFIG_MAP, 'tcp'));
    others.set('9000', 'helm');
    expect(await apply(reducible('9000', '9001'))).toEqual({
      ref: expect.anything() as object,
      action: 'configured',
      conflicts: [{ field: '.data.9000', manager: 'helm' }],
    });
    expect(sent()).toEqual(['9000,9001', '9001']);
  });

  it('is reported, and costs nothing, for as long as the object stays as it is', async () => {
    const { apply, others, server } = setup(anObject(CONFIG_MAP, 'tcp'));
    others.set('9000', 'helm');
    // The first write changes the object, so the second pass asks once more.
    for (let round = 0; round < 2; round++) await apply(reducible('9000', '9001'));
    server.requests.length = 0;
    for (let round = 0; round < 3; round++) {
      expect(await apply(reducible('9000', '9001'))).toMatchObject({
        action: 'unchanged',
        conflicts: [{ field: '.data.9000', manager: 'helm' }],
      });
    }
    expect(server.requests).toEqual([]);
  });

  it('about our own annotation alone is resolved, since no other writer can mean it', async () => {
    const { apply, server, sent } = setup(anObject(CONFIG_MAP, 'tcp'));
    let copied = true;
    const field = `.metadata.annotations.${SHARED_HASH_PREFIX}${MANAGER}`;
    server.intercept = ({ method, contentType }) => {
      if (method !== 'PATCH') return undefined;
      if (contentType?.includes('merge-patch')) {
        copied = false;
        return { status: 200, body: server.put(CONFIG_MAP, server.get(CONFIG_MAP, KEY)!) };
      }
      const causes = [{ reason: 'FieldManagerConflict', message: 'conflict with "kubectl"', field }];
      return copied ? failure(409, 'Conflict', 'Apply failed', { causes }) : undefined;
    };
    const change = await apply(step(entries('9000')));
    expect(change).toMatchObject({ action: 'configured' });
    expect(change.conflicts).toBeUndefined();
    expect(sent()).toEqual(['9000', '', '9000']);
  });
});

describe('An intent that is revised', () => {
  const object = anObject(CONFIG_MAP, 'tcp');

  it('is applied in the light of what became of the steps before it, or skipped', async () => {
    const { apply, server } = setup();
    const skipped = step(anObject(CONFIG_MAP, 'udp'), { revise: () => undefined });
    const revise = (before: readonly Change[]): AnyObject => ({
      ...object,
      data: Object.fromEntries(before.map(({ ref, action }) => [ref.name, action])),
    });
    const first = step(anObject(CONFIG_MAP, 'a', {}, { data: { x: 'y' } }));
    expect(await apply(first, skipped, step(object, { revise }))).toMatchObject({ action: 'created' });
    expect(server.get(CONFIG_MAP, KEY)?.data).toEqual({ a: 'created', udp: 'skipped' });
  });

  it.each<[string, () => AnyObject]>([
    [
      'throws',
      () => {
        throw new TypeError('a bug of the kind');
      },
    ],
    ['gives another object', () => anObject(CONFIG_MAP, 'other')],
  ])('fails where the function %s, which is a bug of the kind', async (_, revise) => {
    const { apply, server } = setup();
    expect(await apply(step(object, { revise }))).toMatchObject({
      action: 'failed',
      error: { reason: 'ReconcileFailed', isBug: true },
    });
    expect(server.writes).toEqual([]);
  });
});
