import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { claimsOf } from '../../../src/kinds/stream-ingress/claims.js';
import { keyOf } from '../../../src/contract/object.js';
import type { StreamIngress } from '../../../src/kinds/stream-ingress/spec.js';
import { NGINX_RESERVED_PORTS, type Target } from '../../../src/kinds/stream-ingress/targets.js';
import { gateway, streamIngress, target, type Given } from './builders.js';

const old = streamIngress({ name: 'old', minute: 1 });
const young = streamIngress({ name: 'young', minute: 2 });

describe('the loser', () => {
  const told = (loser: StreamIngress) => claimsOf(target, [old, loser]).refused.get(loser)?.message;

  test('learns the winner within its own namespace', () => {
    expect(told(young)).toBe(
      '9000/TCP is held by StreamIngress old, which is older; it is opened for this one once that is gone, or take another port',
    );
  });

  test('isn’t told what another namespace runs', () => {
    const message = told(streamIngress({ namespace: 'other', minute: 2 }));

    expect(message).toContain('held by a StreamIngress of another namespace');
    expect(message).not.toMatch(/shop|old,/);
  });
});

test('reserved are the ports of ingress-nginx itself', () => {
  expect(new Set(NGINX_RESERVED_PORTS)).toEqual(
    new Set([80, 443, 442, 10254, 8181, 10245, 10246, 10247, 8443]),
  );
});

const limited: Target = { ...target, portRanges: ['9000-9010'], namespaces: ['shop'] };

test.each<[refused: string | undefined, given: Given, of: Target]>([
  ['PortNotPermitted', { listen: 8999 }, limited],
  [undefined, { listen: 9000 }, limited],
  [undefined, { listen: 9010 }, limited],
  ['PortNotPermitted', { listen: 9011 }, limited],
  ['NamespaceNotPermitted', { namespace: 'other' }, limited],
  ['ProxyProtocolNotSupported', { proxyProtocol: { encode: true } }, gateway],
  [undefined, { proxyProtocol: {} }, gateway],
])('%s: %j', (reason, given, of) => {
  const cr = streamIngress(given);
  const rival = streamIngress({ ...given, namespace: 'shop', proxyProtocol: {}, name: 'rival', minute: 1 });
  const { holders, refused } = claimsOf(of, [cr, rival]);

  expect(refused.get(cr)?.reason).toBe(reason);
  // What is refused leaves the port to a younger one.
  if (reason !== 'PortNotPermitted') expect(holders).toEqual([reason ? rival : cr]);
});

/** By the words of the rule, without an eye on cost. */
function reference(crs: readonly StreamIngress[]): string[] {
  const allowed = crs.filter(
    ({ metadata, spec }) => !metadata.deletionTimestamp && !NGINX_RESERVED_PORTS.includes(spec.listen),
  );
  return allowed
    .filter((cr) =>
      allowed
        .filter(({ spec }) => spec.listen === cr.spec.listen && spec.protocol === cr.spec.protocol)
        .every((other) => other === cr || isBefore(cr, other)),
    )
    .map(keyOf)
    .sort();
}

function isBefore(a: StreamIngress, b: StreamIngress): boolean {
  const age = Date.parse(a.metadata.creationTimestamp!) - Date.parse(b.metadata.creationTimestamp!);
  return age === 0 ? keyOf(a) < keyOf(b) : age < 0;
}

const anyCr = fc.record({
  namespace: fc.constantFrom('a', 'a-b', 'b'),
  name: fc.constantFrom('x', 'x-y', 'y', 'z'),
  minute: fc.integer({ min: 0, max: 3 }),
  protocol: fc.constantFrom('TCP' as const, 'UDP' as const),
  listen: fc.constantFrom(443, 9000, 9001),
  deleting: fc.boolean(),
});
const someCrs = fc
  .uniqueArray(anyCr, { selector: ({ namespace, name }) => `${namespace}/${name}`, maxLength: 12 })
  .map((given) => given.map(streamIngress));

test('property: the holders are those of the plain rule, and all others that live learn why not', () => {
  fc.assert(
    fc.property(someCrs, (crs) => {
      const { holders, refused } = claimsOf(target, crs);
      expect(holders.map(keyOf).sort()).toEqual(reference(crs));
      const living = crs.filter(({ metadata }) => !metadata.deletionTimestamp);
      expect(new Set([...holders, ...refused.keys()])).toEqual(new Set(living));
    }),
    { numRuns: 2000 },
  );
});
