import { App, Chart, Yaml } from 'cdk8s';
import { describe, expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/error.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { GatewayPort } from '../../../src/kinds/stream-ingress/gateway-port.js';
import type { GatewayPortProps } from '../../../src/kinds/stream-ingress/gateway-port.js';
import { programmedByGateway, refsByGateway } from '../../../src/kinds/stream-ingress/gateway.js';
import { gateway, object, streamIngress } from './builders.js';
import type { Given } from './builders.js';

function render(given: Given, routeVersion?: GatewayPortProps['routeVersion']): AnyObject[] {
  const { metadata, spec } = streamIngress(given);
  const { name, namespace = '' } = metadata;
  const chart = new Chart(new App(), 'test');
  new GatewayPort(chart, name, {
    ...{ metadata: { name, namespace }, spec, gateway: gateway.gateway },
    ...(routeVersion && { routeVersion }),
  });
  return chart.toJson() as AnyObject[];
}

describe('a port of a Gateway', () => {
  test.each<[string, Given]>([
    ['tcp', {}],
    ['udp', { protocol: 'UDP', listen: 5353, upstream: { port: 53 } }],
    ['other-namespace', { upstream: { namespace: 'infra' } }],
  ])('%s', async (file, given) => {
    await expect(Yaml.stringify(...render(given))).toMatchFileSnapshot(`__snapshots__/gateway/${file}.yaml`);
  });

  test('in the version that the admin says', () => {
    expect(render({}).map(({ apiVersion }) => apiVersion)).toEqual(
      Array(2).fill('gateway.networking.k8s.io/v1'),
    );
    expect(render({}, 'v1alpha2').map(({ apiVersion, kind }) => `${apiVersion} ${kind}`)).toEqual([
      ...['gateway.networking.k8s.io/v1 ListenerSet', 'gateway.networking.k8s.io/v1alpha2 TCPRoute'],
    ]);
  });

  test('takes no name of a port, which a route can’t hold', () => {
    expect(() => render({ upstream: { port: 'sql' } })).toThrow('"sql" is a name; give the number');
  });
});

const condition = (type: string, status: string, reason = type, observedGeneration?: number) => ({
  ...{ type, status, reason, message: `${reason} it is` },
  ...(observedGeneration !== undefined && { observedGeneration }),
});
const listenerSet = (conditions: object[], ofListener: object[] = []) =>
  object('ListenerSet', 'shop/web', {
    metadata: { generation: 2 },
    status: { conditions, listeners: [{ name: 'tcp-9000', conditions: ofListener }] },
  });
const route = (...conditions: object[]) =>
  object('TCPRoute', 'shop/web', { metadata: { generation: 2 }, status: { parents: [{ conditions }] } });

const taken = [condition('Accepted', 'True'), condition('Programmed', 'True')];
const accepted = condition('Accepted', 'True');

describe('Programmed mirrors what the Gateway says', () => {
  const said = (...children: AnyObject[]) => {
    const { status, reason } = programmedByGateway(children, undefined);
    return [status, reason];
  };

  test('holds once the ListenerSet is programmed and the route accepted', () => {
    expect(said(listenerSet(taken), route(accepted))).toEqual(['True', 'Programmed']);
  });

  test.each<[string, AnyObject[]]>([
    ['there are no children yet', []],
    ['there is no route yet', [listenerSet(taken)]],
    ['nobody has reported', [object('ListenerSet', 'shop/web'), object('TCPRoute', 'shop/web')]],
    ['the ListenerSet is only accepted', [listenerSet([accepted]), route(accepted)]],
    ['the route hasn’t been seen', [listenerSet(taken), route()]],
    [
      'what was said is of an older generation',
      [listenerSet([accepted, condition('Programmed', 'True', 'Programmed', 1)]), route(accepted)],
    ],
  ])('is Unknown while %s', (_, children) => {
    expect(said(...children)).toEqual(['Unknown', 'Pending']);
  });

  test.each<[string, AnyObject[]]>([
    ['NotAllowed', [listenerSet([condition('Accepted', 'False', 'NotAllowed')]), route(accepted)]],
    [
      'TooManyListeners',
      [listenerSet([accepted, condition('Programmed', 'False', 'TooManyListeners')]), route(accepted)],
    ],
    [
      'PortUnavailable',
      [listenerSet(taken, [condition('Accepted', 'False', 'PortUnavailable')]), route(accepted)],
    ],
    [
      'ProtocolConflict',
      [listenerSet(taken, [condition('Conflicted', 'True', 'ProtocolConflict')]), route(accepted)],
    ],
    [
      'NotAllowedByListeners',
      [listenerSet(taken), route(condition('Accepted', 'False', 'NotAllowedByListeners'))],
    ],
  ])('is False for %s', (reason, children) => {
    expect(said(...children)).toEqual(['False', reason]);
  });

  const invalid = ['Accepted', 'Programmed'].map((type) => condition(type, 'False', 'ListenersNotValid'));
  const notAllowed = ['Accepted', 'Programmed'].map((type) => condition(type, 'False', 'NotAllowed'));
  test.each<[string, AnyObject[]]>([
    [
      'ProtocolConflict',
      [
        listenerSet(invalid, [
          condition('Programmed', 'False', 'Invalid'),
          condition('Conflicted', 'True', 'ProtocolConflict'),
        ]),
        route(condition('Accepted', 'False', 'NoMatchingParent')),
      ],
    ],
    [
      'UnsupportedProtocol',
      [listenerSet(invalid, [condition('Accepted', 'False', 'UnsupportedProtocol')]), route()],
    ],
    [
      'InvalidRouteKinds',
      [listenerSet(taken, [condition('ResolvedRefs', 'False', 'InvalidRouteKinds')]), route()],
    ],
    ['NotAllowed', [listenerSet(notAllowed, [condition('Programmed', 'False', 'Pending')]), route()]],
    ['ListenersNotValid', [listenerSet(invalid), route()]],
    [
      'NotAllowedByListeners',
      [
        listenerSet([accepted, condition('Programmed', 'False', 'Pending')]),
        route(condition('Accepted', 'False', 'NotAllowedByListeners')),
      ],
    ],
  ])('tells of several reasons the most particular: %s', (reason, children) => {
    expect(said(...children)).toEqual(['False', reason]);
  });

  test('is False where a child can’t be applied; whether it stalls is the failure’s to say', () => {
    const error = new OperatorError({ reason: 'KindNotInstalled', message: 'install it' });
    expect(programmedByGateway([], error)).toMatchObject({ reason: 'KindNotInstalled', stalls: true });
    const passing = new OperatorError({ reason: 'Unreachable', message: 'wait', retry: 'backoff' });
    expect(programmedByGateway([], passing)).toMatchObject({ status: 'False', stalls: false });
  });
});

test('ResolvedRefs mirrors what the Gateway says against the upstream', () => {
  const refused = condition('ResolvedRefs', 'False', 'RefNotPermitted');
  expect(refsByGateway([listenerSet(taken), route(accepted, refused)])).toEqual({
    ...{ status: 'False', reason: 'RefNotPermitted', message: 'RefNotPermitted it is' },
  });
  expect(refsByGateway([route(accepted, condition('ResolvedRefs', 'True'))])).toBeUndefined();
  expect(refsByGateway([])).toBeUndefined();
});
