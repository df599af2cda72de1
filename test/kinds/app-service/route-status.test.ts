import { describe, expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/error.js';
import type { AnyObject } from '../../../src/contract/object.js';
import type { Route } from '../../../src/kinds/app-service/spec.js';
import { report } from './report.js';

const PUBLIC = { name: 'public', namespace: 'infra' };
const LOCAL = { name: 'local', sectionName: 'web' };
const ROUTE: Route = { hostnames: ['shop.example.com'], parentRefs: [PUBLIC] };

/** What a Gateway's controller says of a route; generation 4 is the present one. */
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

function ready(route: Route, children: readonly AnyObject[], reason?: string) {
  const ref = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    namespace: 'shop',
    name: 'web',
  };
  const failures = reason ? [{ ref, error: new OperatorError({ reason, message: `${reason} it is` }) }] : [];
  const { conditions = [] } = report({ spec: { route }, children, failures });
  return conditions.find(({ type }) => type === 'RouteReady');
}

describe('RouteReady', () => {
  const both: Route = { parentRefs: [PUBLIC, LOCAL] };
  test.each([
    {
      title: 'no HTTPRoute yet',
      of: ready(ROUTE, []),
      is: ['Unknown', 'Pending', 'The HTTPRoute has yet to be applied'],
    },
    {
      title: 'nobody has reported',
      of: ready(ROUTE, [httpRoute()]),
      is: ['Unknown', 'Pending', 'Gateway infra/public has yet to accept the route'],
    },
    {
      title: 'accepted',
      of: ready(ROUTE, [httpRoute(parent(PUBLIC, GOOD, 4))]),
      is: ['True', 'Accepted', 'Gateway infra/public has accepted the route'],
    },
    {
      title: 'accepted by a Gateway that says nothing of generations',
      of: ready(ROUTE, [httpRoute(parent(PUBLIC, GOOD))]),
      is: ['True', 'Accepted', 'Gateway infra/public has accepted the route'],
    },
    {
      title: 'accepted before the latest change',
      of: ready(ROUTE, [httpRoute(parent(PUBLIC, GOOD, 3))]),
      is: ['Unknown', 'Pending', 'Gateway infra/public has yet to accept the route'],
    },
    {
      title: 'refused before the latest change',
      of: ready(ROUTE, [httpRoute(parent(PUBLIC, { Accepted: 'False NoMatchingParent' }, 3))]),
      is: ['Unknown', 'Pending', 'Gateway infra/public has yet to accept the route'],
    },
    {
      title: 'refused',
      of: ready(ROUTE, [httpRoute(parent(PUBLIC, { Accepted: 'False NotAllowedByListeners' }, 4))]),
      is: ['False', 'NotAllowedByListeners', 'Gateway infra/public: NotAllowedByListeners it is'],
    },
    {
      title: 'accepted, and its Service not found',
      of: ready(ROUTE, [httpRoute(parent(PUBLIC, { ...GOOD, ResolvedRefs: 'False BackendNotFound' }, 4))]),
      is: ['False', 'BackendNotFound', 'Gateway infra/public: BackendNotFound it is'],
    },
    {
      title: 'accepted, and not programmed yet',
      of: ready(ROUTE, [httpRoute(parent(PUBLIC, { ...GOOD, Programmed: 'Unknown AddressPending' }, 4))]),
      is: ['Unknown', 'AddressPending', 'Gateway infra/public has yet to accept the route'],
    },
    {
      title: 'resolved, and not accepted yet',
      of: ready(ROUTE, [httpRoute(parent(PUBLIC, { ResolvedRefs: 'True' }, 4))]),
      is: ['Unknown', 'Pending', 'Gateway infra/public has yet to accept the route'],
    },
    {
      title: 'other conditions make no difference',
      of: ready(ROUTE, [httpRoute(parent(PUBLIC, { ...GOOD, PartiallyInvalid: 'False' }, 4))]),
      is: ['True', 'Accepted', 'Gateway infra/public has accepted the route'],
    },
    {
      title: 'accepted by another Gateway only',
      of: ready(ROUTE, [httpRoute(parent({ name: 'public' }, GOOD, 4))]),
      is: ['Unknown', 'Pending', 'Gateway infra/public has yet to accept the route'],
    },
    {
      title: 'accepted by another listener only',
      of: ready({ parentRefs: [LOCAL] }, [httpRoute(parent({ ...LOCAL, sectionName: 'tls' }, GOOD, 4))]),
      is: ['Unknown', 'Pending', 'Gateway shop/local has yet to accept the route'],
    },
    {
      title: 'accepted by both',
      of: ready(both, [httpRoute(parent(LOCAL, GOOD, 4), parent(PUBLIC, GOOD, 4))]),
      is: [
        'True',
        'Accepted',
        'Gateway infra/public has accepted the route; Gateway shop/local has accepted the route',
      ],
    },
    {
      title: 'accepted by one of two',
      of: ready(both, [httpRoute(parent(PUBLIC, GOOD, 4))]),
      is: ['Unknown', 'Pending', 'Gateway shop/local has yet to accept the route'],
    },
    {
      title: 'refused by one of two while the other is silent',
      of: ready(both, [httpRoute(parent({ ...LOCAL, namespace: 'shop' }, { Accepted: 'False NoMatch' }, 4))]),
      is: ['False', 'NoMatch', 'Gateway shop/local: NoMatch it is'],
    },
    {
      title: 'the Gateway API is not installed',
      of: ready(ROUTE, [], 'KindNotInstalled'),
      is: ['False', 'KindNotInstalled', 'KindNotInstalled it is'],
    },
    {
      title: 'a change that was refused, whatever holds of the HTTPRoute before it',
      of: ready(ROUTE, [httpRoute(parent(PUBLIC, GOOD, 4))], 'Invalid'),
      is: ['False', 'Invalid', 'Invalid it is'],
    },
  ])('$title: $is', ({ of, is: [status, reason, message] }) => {
    expect(of).toEqual({ type: 'RouteReady', status, reason, message });
  });

  test('is not there without a route', () => {
    expect(report({ children: [httpRoute(parent(PUBLIC, GOOD, 4))] }).conditions).toEqual([]);
  });
});

describe('the url', () => {
  test.each([
    { title: 'a host', route: ROUTE, url: 'http://shop.example.com/' },
    { title: 'a host and a path', route: { ...ROUTE, path: '/cart' }, url: 'http://shop.example.com/cart' },
    {
      title: 'a wildcard and a host',
      route: { ...ROUTE, hostnames: ['*.example.com', 'shop.example.com'] },
      url: 'http://shop.example.com/',
    },
    { title: 'a wildcard', route: { ...ROUTE, hostnames: ['*.example.com'] }, url: undefined },
    { title: 'no host', route: { parentRefs: [PUBLIC] }, url: undefined },
  ])('of $title', ({ route, url }) => {
    expect(report({ spec: { route }, children: [httpRoute()] }).fields?.url).toBe(url);
  });

  test('is not there before the HTTPRoute is, nor when it goes', () => {
    expect(report({ spec: { route: ROUTE } }).fields?.url).toBeUndefined();
    expect(report({ children: [httpRoute()] }).fields?.url).toBeUndefined();
  });
});
