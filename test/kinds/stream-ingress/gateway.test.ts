import { describe, expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/error.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { programmedByGateway, refsByGateway } from '../../../src/kinds/stream-ingress/gateway.js';
import { object } from './builders.js';

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
