import fc from 'fast-check';
import { expect, it } from 'vitest';
import { compareResourceVersions } from '../../src/engine/cache.js';

it('orders resource versions like the integers that they are, at any size', () => {
  const integer = fc.oneof(fc.bigInt({ min: 0n, max: 200n }), fc.bigInt({ min: 0n, max: 2n ** 80n }));
  fc.assert(
    fc.property(integer, integer, (a, b) => {
      const expected = a < b ? -1 : a > b ? 1 : 0;
      expect(Math.sign(compareResourceVersions(String(a), String(b)))).toBe(expected);
    }),
  );
});

it('takes a longer version for the newer one, whatever it begins with', () => {
  expect(compareResourceVersions('999', '1000')).toBeLessThan(0);
  expect(compareResourceVersions('1000', '999')).toBeGreaterThan(0);
  expect(compareResourceVersions('18446744073709551616', '18446744073709551616')).toBe(0);
});
