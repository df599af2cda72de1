import { describe, expect, it } from 'vitest';
import type { Watch } from '../../src/contract/controller.js';
import { StoreReader, Stores } from '../../src/engine/cache.js';
import { CONFIG_MAP, DEPLOYMENT, SERVICE } from './support/builders.js';

const watch = (props: Partial<Watch> = {}): Watch => ({ type: CONFIG_MAP, mapsTo: () => [], ...props });
const newStores = (): Stores => new Stores({ perNamespace: false, freeze: true });

describe('Stores', () => {
  it.each([
    ['type', { type: SERVICE }],
    ['selector', { selector: 'a=b' }],
    ['projection', { keep: (object) => object }],
  ] as [string, Partial<Watch>][])('are not shared where the %s differs', (_, other) => {
    const stores = newStores();
    expect(stores.open(watch())).not.toBe(stores.open(watch(other)));
    expect(stores.all()).toHaveLength(2);
  });

  it('can do without a kind only if all who read it can', () => {
    const stores = newStores();
    const optional = (): unknown[] => stores.all().map(({ optional: can }) => can);
    stores.open(watch({ optional: true }));
    expect(optional()).toEqual([true]);
    stores.open(watch({ optional: true }));
    expect(optional()).toEqual([true]);
    stores.open(watch());
    expect(optional()).toEqual([false]);
    stores.open(watch({ optional: true }));
    expect(optional()).toEqual([false]);
  });
});

describe('StoreReader', () => {
  it('refuses to read what is not declared', () => {
    const reader = StoreReader.open([watch()], newStores());
    expect(() => reader.get(DEPLOYMENT, 'shop/a')).toThrow(
      "Deployment.apps is not among the controller's watches",
    );
  });
});
