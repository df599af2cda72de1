import { describe, expect, it } from 'vitest';
import type { AnyObject } from '../../src/contract/object.js';
import { Store } from '../../src/engine/cache.js';
import { configMap } from './support/builders.js';

const ME = { listener: Symbol('me') };

interface Seen {
  readonly mine: unknown[];
  readonly others: unknown[];
}

/** A store with an object, and what the writer and somebody else are told from then on. */
function watched(): Seen & { readonly store: Store } {
  const store = new Store({ keep: (object) => object });
  store.observed(configMap('a', '1'));
  const mine: unknown[] = [];
  const others: unknown[] = [];
  const version = (object: AnyObject | undefined): string | undefined => object?.metadata.resourceVersion;
  store.onChange(
    (before, after, origin) => mine.push([version(before), version(after), origin]),
    ME.listener,
  );
  store.onChange((before, after, origin) => others.push([version(before), version(after), origin]));
  return { store, mine, others };
}

const answering = (version: string) => () => Promise.resolve({ object: configMap('a', version) });

describe('A write, and the watch that is faster than its answer', () => {
  it('is told to the writer once, as his own', async () => {
    const { store, mine, others } = watched();
    await store.write('shop/a', ME, async () => {
      store.observed(configMap('a', '2'));
      return answering('2')();
    });
    expect(mine).toEqual([['1', '2', 'own']]);
    expect(others).toEqual([['1', '2', 'event']]);
  });

  it("is told as somebody else's where another write came after it", async () => {
    const { store, mine } = watched();
    await store.write('shop/a', ME, async () => {
      store.observed(configMap('a', '3'));
      return answering('2')();
    });
    expect(mine).toEqual([['1', '3', 'event']]);
    expect(store.get('shop/a')?.object.metadata.resourceVersion).toBe('3');
  });

  it('holds nothing back of other objects, or once it has ended', async () => {
    const { store, mine } = watched();
    await store.write('shop/a', ME, async () => {
      store.observed(configMap('b', '2'));
      return answering('3')();
    });
    store.observed(configMap('a', '4'));
    expect(mine).toEqual([
      [undefined, '2', 'event'],
      ['1', '3', 'own'],
      ['3', '4', 'event'],
    ]);
  });

  it('that fails leaves what came meanwhile to be told', async () => {
    const { store, mine } = watched();
    const failed = store.write('shop/a', ME, () => {
      store.observedDeletion(configMap('a', '2'));
      return Promise.reject(new Error('no'));
    });
    await expect(failed).rejects.toThrow('no');
    expect(mine).toEqual([['1', undefined, 'event']]);
  });

  it('of two at once is told when the last has ended', async () => {
    const { store, mine } = watched();
    const first = Promise.withResolvers<{ object: AnyObject }>();
    const slow = store.write('shop/a', ME, () => first.promise);
    await store.write('shop/a', ME, answering('2'));
    expect(mine).toEqual([]);
    first.resolve({ object: configMap('a', '3') });
    await slow;
    expect(mine).toEqual([['1', '3', 'own']]);
  });

  it('of an object that came and went meanwhile is nothing to tell', async () => {
    const { store, mine } = watched();
    const failed = store.write('shop/new', ME, () => {
      store.observed(configMap('new', '2'));
      store.observedDeletion(configMap('new', '3'));
      return Promise.reject(new Error('no'));
    });
    await expect(failed).rejects.toThrow('no');
    expect(mine).toEqual([]);
  });
});
