import { describe, expect, test } from 'vitest';
import { OperatorError } from '../../../src/contract/error.js';
import type { Plan } from '../../../src/contract/plan.js';
import { streamIngress, type Given } from './builders.js';
import { conditions, controllers, reconcile, upstream } from './world.js';

const cr = streamIngress();

describe('a Gateway', () => {
  const policy = { targets: [{ name: 'edge', kind: 'Gateway', gateway: 'gateways/edge' } as const] };
  const { statuses: edge } = controllers({ policy });
  const plan = (...objects: object[]) => reconcile(edge, objects, 'edge');
  const made = (...given: Parameters<typeof streamIngress>) =>
    ownSteps(plan(streamIngress(...given), ...upstream)).map(({ object: child, owner }) => ({
      ...child,
      metadata: {
        ...child.metadata,
        uid: `${child.kind} ${child.metadata.name}`,
        generation: 1,
        ownerReferences: [owner],
      },
    }));
  const ownSteps = ({ steps }: Plan) => steps.filter((step) => step.do === 'own');
  /** Steps in their order, such as `own TCPRoute web`. */
  const words = ({ steps }: Plan) =>
    steps.map((step) =>
      step.do === 'barrier' ? step.do : `${step.do} ${step.object.kind} ${step.object.metadata.name}`,
    );
  const opening = (name: string) => [`own ListenerSet ${name}`, `own TCPRoute ${name}`];

  /** The children of `cr`, whose route has these backends. */
  const leadingTo = (...backendRefs: object[]) =>
    made().map((child) =>
      child.kind === 'TCPRoute' ? { ...child, spec: { rules: [{ backendRefs }] } } : child,
    );

  test('waits for the upstream, and keeps what is open when it is lost', () => {
    for (const { steps } of [plan(cr), plan(cr, ...made())]) expect(steps).toEqual([]);
  });

  describe('leaves a listener open, and no route to another Service, when the upstream is edited to', () => {
    test('a Service that isn’t seen yet: the route moves', () => {
      const edited = streamIngress({ upstream: { service: 'missing' } });
      const moved = plan(edited, ...upstream, ...made());
      expect(words(moved)).toEqual(opening('web'));
      expect(JSON.stringify(ownSteps(moved)[1]?.object.spec)).toContain('{"name":"missing","port":5432}');
    });

    test.each<[string, Given]>([
      [
        'a Service that isn’t seen yet, by the name of its port',
        { upstream: { service: 'missing', port: 'sql' } },
      ],
      ['a port that can’t be rendered', { is_service: false, upstream: { service: 'other', port: 'sql' } }],
    ])('%s: the route goes', (_, given) => {
      expect(words(plan(streamIngress(given), ...upstream, ...made()))).toEqual(['prune TCPRoute web']);
    });

    test('a Service of that name in another namespace, and of another in that', () => {
      for (const ref of [
        { name: 'db', namespace: 'infra' },
        { name: 'other', namespace: 'shop' },
      ])
        expect(ownSteps(plan(cr, ...leadingTo(ref))), JSON.stringify(ref)).toHaveLength(2);
    });
  });

  test.each([
    ['NotAllowed', 'True'],
    ['ParentNotProgrammed', 'False'],
  ])('what it refuses for %s waits for an edit: %s', (reason, stalled) => {
    const said = { type: 'Accepted', status: 'False', reason, message: reason };
    const children = made().map((child) => ({ ...child, status: { conditions: [said] } }));
    expect(conditions(plan(cr, ...upstream, ...children)).web).toMatchObject({
      ...{ Ready: `False ${reason}`, Stalled: `${stalled} ${reason}` },
    });
  });

  test('a failure is reported on those whom it concerns, and on no other', () => {
    const error = new OperatorError({ reason: 'OwnershipConflict', message: 'not ours' });
    const ref = {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'TCPRoute',
      namespace: 'shop',
      name: 'web',
    };
    const found = conditions(plan(cr, streamIngress({ name: 'b', listen: 9001 }), ...upstream), [
      { ref, action: 'failed', error },
    ]);
    expect(found).toMatchObject({
      web: { Stalled: 'True OwnershipConflict' },
      b: { Programmed: 'Unknown Pending' },
    });
  });

  test('a port that can’t be rendered is reported, and the others are made', () => {
    const named = streamIngress({ is_service: false, upstream: { port: 'sql' } });
    const result = plan(named, streamIngress({ name: 'b', listen: 9001 }), ...upstream);
    expect(words(result)).toEqual(opening('b'));
    expect(conditions(result).web).toMatchObject({
      Programmed: 'False PortNotFound',
      Stalled: 'True PortNotFound',
    });
  });

  describe('opens as many as the admin allows', () => {
    const limited = controllers({
      policy: { targets: [{ ...policy.targets[0]!, maxListeners: 1 }] },
    }).statuses;
    const second = streamIngress({ name: 'b', listen: 9001, minute: 1 });
    const limitedPlan = (...objects: object[]) => reconcile(limited, objects, 'edge');

    test('of which those that are open stay open, also while their upstream is lost', () => {
      const younger = made({ name: 'b', listen: 9001, minute: 1 });
      const result = limitedPlan(cr, second, ...upstream, ...younger);
      expect(words(result)).toEqual(opening('b'));
      const elsewhere = streamIngress({ is_service: false, upstream: { service: 'elsewhere' } });
      const lost = limitedPlan(elsewhere, second, ...younger);
      expect(lost.steps).toEqual([]);
      expect(conditions(lost).web).toMatchObject({ Programmed: 'False TooManyListeners' });
    });

    test('and a route alone, which its user may have written, is no open port', () => {
      const [, route] = made({ name: 'b', listen: 9001, minute: 1 });
      const result = limitedPlan(cr, second, ...upstream, ...made(), route!);
      expect(words(result)).toEqual(['prune TCPRoute b', ...opening('web')]);
    });

    test('and what its user has written beyond the bound of a namespace takes no room of others', () => {
      const bounds = { maxListeners: 2, maxListenersPerNamespace: 1 };
      const { statuses } = controllers({ policy: { targets: [{ ...policy.targets[0]!, ...bounds }] } });
      const other = streamIngress({
        name: 'c',
        namespace: 'zoo',
        listen: 9002,
        minute: 2,
        is_service: false,
      });
      const open = [...made(), ...made({ name: 'b', listen: 9001, minute: 1 })];
      const result = reconcile(statuses, [cr, second, other, ...upstream, ...open], 'edge');
      expect(words(result)).toContain('own ListenerSet c');
    });

    test.each<[string, Given]>([
      ['waits for its upstream', { upstream: { service: 'missing' } }],
      ['isn’t permitted', { upstream: { namespace: 'infra' } }],
      ['can’t be rendered', { is_service: false, upstream: { port: 'sql' } }],
    ])('and one that %s takes the place of none', (_, given) => {
      const result = limitedPlan(streamIngress(given), second, ...upstream);
      expect(words(result)).toEqual(opening('b'));
      expect(conditions(result).b).toMatchObject({ Programmed: 'Unknown Pending' });
      expect(conditions(result).web!.Programmed).not.toContain('TooManyListeners');
    });
  });
});
