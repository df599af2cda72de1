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
  const one = (type: string, reason: string) => [condition(type, 'False', reason)];
  const both = (reason: string) => ['Accepted', 'Programmed'].flatMap((type) => one(type, reason));
  const old = condition('Programmed', 'True', 'Programmed', 1);
  const conflict = condition('Conflicted', 'True', 'ProtocolConflict');

  test.each<[verdict: string, of: string, children: AnyObject[]]>([
    ['True Programmed', 'taken', [listenerSet(taken), route(accepted)]],
    ['Unknown Pending', 'no children', []],
    ['Unknown Pending', 'no route', [listenerSet(taken)]],
    ['Unknown Pending', 'silence', [object('ListenerSet', 'shop/web'), object('TCPRoute', 'shop/web')]],
    ['Unknown Pending', 'a set that is only accepted', [listenerSet([accepted]), route(accepted)]],
    ['Unknown Pending', 'a route that is not seen', [listenerSet(taken), route()]],
    ['Unknown Pending', 'an older generation', [listenerSet([accepted, old]), route(accepted)]],
    ['False NotAllowed', 'the set', [listenerSet(one('Accepted', 'NotAllowed')), route(accepted)]],
    [
      'False TooManyListeners',
      'the set later',
      [listenerSet([accepted, ...one('Programmed', 'TooManyListeners')]), route(accepted)],
    ],
    [
      'False PortUnavailable',
      'the listener',
      [listenerSet(taken, one('Accepted', 'PortUnavailable')), route(accepted)],
    ],
    ['False ProtocolConflict', 'a conflict', [listenerSet(taken, [conflict]), route(accepted)]],
    [
      'False NotAllowedByListeners',
      'the route, more particular than a listener that waits',
      [
        listenerSet([accepted, ...one('Programmed', 'Pending')]),
        route(...one('Accepted', 'NotAllowedByListeners')),
      ],
    ],
    [
      'False ProtocolConflict',
      'a conflict, more particular than its consequences',
      [
        listenerSet(both('ListenersNotValid'), [...one('Programmed', 'Invalid'), conflict]),
        route(...one('Accepted', 'NoMatchingParent')),
      ],
    ],
    [
      'False UnsupportedProtocol',
      'a listener, more particular than its set',
      [listenerSet(both('ListenersNotValid'), one('Accepted', 'UnsupportedProtocol')), route()],
    ],
    [
      'False InvalidRouteKinds',
      'the kinds of a listener',
      [listenerSet(taken, one('ResolvedRefs', 'InvalidRouteKinds')), route()],
    ],
    [
      'False NotAllowed',
      'the set, more particular than a listener that waits',
      [listenerSet(both('NotAllowed'), one('Programmed', 'Pending')), route()],
    ],
    ['False ListenersNotValid', 'a set alone', [listenerSet(both('ListenersNotValid')), route()]],
  ])('%s: %s', (verdict, _, children) => {
    const { status, reason } = programmedByGateway(children, undefined);
    expect(`${status} ${reason}`).toBe(verdict);
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
