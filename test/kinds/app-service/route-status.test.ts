import { describe, expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/error.js';
import type { AnyObject } from '../../../src/contract/object.js';
import type { Route } from '../../../src/kinds/app-service/spec.js';
import { report } from './report.js';

const PUBLIC = { name: 'public', namespace: 'infra' };
const LOCAL = { name: 'local', sectionName: 'web' };
const ROUTE: Route = { hostnames: ['shop.example.com'], parentRefs: [PUBLIC] };
const BOTH: Route = { parentRefs: [PUBLIC, LOCAL] };

/** What a Gateway's controller says of a route, whose present generation is 4. */
function parent(
  parentRef: object,
  conditions: Readonly<Record<string, string>>,
  observedGeneration?: number,
) {
  return {
    parentRef: { group: 'gateway.networking.k8s.io', kind: 'Gateway', ...parentRef },
    controllerName: 'example.com/gateway',
    conditions: Object.entries(conditions).map(([type, said]) => {
      const [status, reason = type] = said.split(' ');
      return { type, status, reason, message: `${reason} it is`, observedGeneration };
    }),
  };
}

const GOOD = { Accepted: 'True', ResolvedRefs: 'True ResolvedRefs' };

function httpRoute(...parents: readonly object[]): AnyObject {
  const metadata = { name: 'web', namespace: 'shop', generation: 4 };
  return { apiVersion: 'gateway.networking.k8s.io/v1', kind: 'HTTPRoute', metadata, status: { parents } };
}

function verdict(route: Route, children: readonly AnyObject[], reason?: string): string {
  const ref = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    namespace: 'shop',
    name: 'web',
  };
  const failures = reason ? [{ ref, error: new OperatorError({ reason, message: `${reason} it is` }) }] : [];
  const { conditions = [] } = report({ spec: { route }, children, failures });
  const found = conditions.find(({ type }) => type === 'RouteReady');
  return `${found?.status} ${found?.reason}: ${found?.message}`;
}

const said = (conditions: Readonly<Record<string, string>>, generation?: number) =>
  verdict(ROUTE, [httpRoute(parent(PUBLIC, conditions, generation))]);
const silent = (name: string) => `Unknown Pending: Gateway ${name} has yet to accept the route`;
const TRUE = 'True Accepted: Gateway infra/public has accepted the route';

test.each([
  ['no HTTPRoute yet', verdict(ROUTE, []), 'Unknown Pending: The HTTPRoute has yet to be applied'],
  ['nobody has reported', verdict(ROUTE, [httpRoute()]), silent('infra/public')],
  ['accepted', said(GOOD, 4), TRUE],
  ['accepted by a Gateway that says nothing of generations', said(GOOD), TRUE],
  ['accepted before the latest change', said(GOOD, 3), silent('infra/public')],
  ['refused before the latest change', said({ Accepted: 'False No' }, 3), silent('infra/public')],
  [
    'refused',
    said({ Accepted: 'False NotAllowed' }, 4),
    'False NotAllowed: Gateway infra/public: NotAllowed it is',
  ],
  [
    'its Service not found',
    said({ ...GOOD, ResolvedRefs: 'False No' }, 4),
    'False No: Gateway infra/public: No it is',
  ],
  [
    'accepted, and not programmed yet',
    said({ ...GOOD, Programmed: 'Unknown AddressPending' }, 4),
    'Unknown AddressPending: Gateway infra/public has yet to accept the route',
  ],
  ['resolved, and not accepted yet', said({ ResolvedRefs: 'True' }, 4), silent('infra/public')],
  ['other conditions make no difference', said({ ...GOOD, PartiallyInvalid: 'False' }, 4), TRUE],
  [
    'accepted by another Gateway only',
    verdict(ROUTE, [httpRoute(parent({ name: 'public' }, GOOD, 4))]),
    silent('infra/public'),
  ],
  [
    'accepted by another listener only',
    verdict({ parentRefs: [LOCAL] }, [httpRoute(parent({ ...LOCAL, sectionName: 'tls' }, GOOD, 4))]),
    silent('shop/local'),
  ],
  [
    'accepted by both',
    verdict(BOTH, [httpRoute(parent(LOCAL, GOOD, 4), parent(PUBLIC, GOOD, 4))]),
    `${TRUE}; Gateway shop/local has accepted the route`,
  ],
  ['accepted by one of two', verdict(BOTH, [httpRoute(parent(PUBLIC, GOOD, 4))]), silent('shop/local')],
  [
    'refused by one of two while the other is silent',
    verdict(BOTH, [httpRoute(parent({ ...LOCAL, namespace: 'shop' }, { Accepted: 'False No' }, 4))]),
    'False No: Gateway shop/local: No it is',
  ],
  [
    'the Gateway API is not installed',
    verdict(ROUTE, [], 'KindNotInstalled'),
    'False KindNotInstalled: KindNotInstalled it is',
  ],
  [
    'a change that was refused, whatever holds of the HTTPRoute before it',
    verdict(ROUTE, [httpRoute(parent(PUBLIC, GOOD, 4))], 'Invalid'),
    'False Invalid: Invalid it is',
  ],
])('RouteReady: %s', (_, of, is) => {
  expect(of).toBe(is);
});

test('RouteReady is not there without a route', () => {
  expect(report({ children: [httpRoute(parent(PUBLIC, GOOD, 4))] }).conditions).toEqual([]);
});

describe('the url', () => {
  const wildcard = '*.example.com';

  test.each([
    [ROUTE, 'http://shop.example.com/'],
    [{ ...ROUTE, path: '/cart' }, 'http://shop.example.com/cart'],
    [{ ...ROUTE, hostnames: [wildcard, 'shop.example.com'] }, 'http://shop.example.com/'],
    [{ ...ROUTE, hostnames: [wildcard] }, undefined],
    [{ parentRefs: [PUBLIC] }, undefined],
  ])('of %j is %s', (route, url) => {
    expect(report({ spec: { route }, children: [httpRoute()] }).fields?.url).toBe(url);
  });

  test('is not there before the HTTPRoute is, nor when it goes', () => {
    expect(report({ spec: { route: ROUTE } }).fields?.url).toBeUndefined();
    expect(report({ children: [httpRoute()] }).fields?.url).toBeUndefined();
  });
});
