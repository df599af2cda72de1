import { describe, expect, test } from 'vitest';
import type { Change } from '../../../src/contract/change.js';
import { OperatorError } from '../../../src/contract/error.js';
import { object, streamIngress } from './builders.js';
import { applied, conditions, controllers, nginxService, reconcile, tcpServices, upstream } from './world.js';

const { statuses, shared } = controllers();
const cr = streamIngress();
const cluster = [...upstream, nginxService()];
const open = [...upstream, nginxService(9000), tcpServices({ 9000: 'shop/db:5432' })];
const service = 'Service ingress-nginx-controller';

describe('the statuses', () => {
  test('of a port that is about to be opened, and of one that is open', () => {
    expect(conditions(reconcile(statuses, [cr, ...cluster])).web).toMatchObject({
      ...{ Accepted: 'True Accepted', ResolvedRefs: 'True ResolvedRefs', Programmed: 'Unknown Pending' },
    });
    const plan = reconcile(statuses, [cr, ...open]);
    expect(conditions(plan).web).toMatchObject({ Ready: 'True Programmed', Programmed: 'True Programmed' });
    expect(plan.status[0]!.status([])).toMatchObject({
      upstream: 'shop/db:5432',
      addresses: ['1.2.3.4:9000'],
    });
    expect([plan.apply, plan.delete]).toEqual([[], []]);
  });

  test('of an immutable ConfigMap name it with the remedy, to open a port as to close one, and not where it is right', () => {
    const immutable = (ours: Readonly<Record<string, string>>) => ({ ...tcpServices(ours), immutable: true });
    const opening = reconcile(statuses, [cr, ...cluster, immutable({})]);
    expect(conditions(opening).web).toMatchObject({
      ...{ Programmed: 'False TargetNotConfigured', Stalled: 'True TargetNotConfigured' },
    });
    const shut = streamIngress({ upstream: { namespace: 'infra' } });
    const closing = reconcile(statuses, [shut, ...cluster, immutable({ 9000: 'infra/db:5432' })]);
    for (const plan of [opening, closing])
      expect(JSON.stringify(plan.status[0]!.status([]))).toContain(
        'ConfigMap ingress-nginx/tcp-services is immutable; delete it',
      );
    const right = [...upstream, nginxService(9000), immutable({ 9000: 'shop/db:5432' })];
    expect(conditions(reconcile(statuses, [cr, ...right])).web).toMatchObject({ Ready: 'True Programmed' });
  });

  test('of a class that is none are written too', () => {
    const other = streamIngress({ className: 'other' });
    expect(statuses.watches[0]!.mapsTo(other as never)).toEqual(['other']);
    expect(conditions(reconcile(statuses, [other], 'other')).web).toMatchObject({
      Accepted: 'False ClassNotFound',
    });
  });
});

describe('the shared objects', () => {
  const plan = (...objects: object[]) => reconcile(shared!, objects);

  test('of what it shares, it watches and wakes for the objects of the target alone', () => {
    const named = shared!.watches.filter(({ name }) => name !== undefined);
    expect(named.map(({ type, namespaces, name }) => [type.kind, namespaces, name])).toEqual([
      ['Service', ['ingress-nginx'], 'ingress-nginx-controller'],
      ['ConfigMap', ['ingress-nginx'], 'tcp-services'],
      ['ConfigMap', ['ingress-nginx'], 'udp-services'],
    ]);
    expect(shared!.watches.filter(({ type }) => type.kind === 'ConfigMap')).toHaveLength(2);
    expect(named[1]!.mapsTo(object('ConfigMap', 'ingress-nginx/tcp-services'))).toEqual(['default']);
  });

  test('no port of others is written where the admin has reserved nothing, and they are named', () => {
    const policy = { targets: [{ name: 'default', reservedPorts: [] }] };
    const { shared: writing, statuses: judging } = controllers({ policy });
    const objects = [streamIngress({ listen: 443 }), ...cluster];
    expect(applied(reconcile(writing!, objects))).toEqual([]);
    const judged = reconcile(judging, objects);
    expect(conditions(judged).web).toMatchObject({ Programmed: 'False PortUnavailable' });
    expect(JSON.stringify(judged.status[0]!.status([]))).toContain('the field manager helm');
  });

  test('what is missing of a port is written again, the same whatever the order', () => {
    const both = ['ConfigMap tcp-services: 9000', `${service}: 9000/TCP`];
    const [map, port] = [tcpServices({ 9000: 'shop/db:5432' }), nginxService(9000)];
    for (const left of [[port, tcpServices({})], [nginxService(), map], [port]])
      expect(applied(plan(cr, ...upstream, ...left))).toEqual(both);
    const objects = [cr, ...cluster];
    expect(JSON.stringify(plan(...objects).apply)).toBe(JSON.stringify(plan(...objects.reverse()).apply));
  });

  describe('in the light of what became of the steps before', () => {
    const ports = (object: unknown) =>
      ((object as { spec?: { ports: { port: number }[] } } | undefined)?.spec?.ports ?? []).map(
        ({ port }) => port,
      );
    const crs = [cr, streamIngress({ name: 'b', listen: 9001 })];
    const done = (given: Partial<Change>, kindOf = 'ConfigMap', name = 'tcp-services'): Change => ({
      ref: { apiVersion: 'v1', kind: kindOf, namespace: 'ingress-nginx', name },
      action: 'configured',
      ...given,
    });
    const failed: Partial<Change> = {
      action: 'failed',
      error: new OperatorError({ reason: 'Forbidden', message: 'no' }),
    };

    test('a port isn’t opened whose entry another writer has got meanwhile', () => {
      const { apply } = plan(...crs, ...cluster);
      expect(ports(apply[1]!.shared!.revise!([done({})]))).toEqual([9000, 9001]);
      const conflicts = [{ field: '.data.9001', manager: 'helm' }];
      expect(ports(apply[1]!.shared!.revise!([done({ conflicts })]))).toEqual([9000]);
      expect(ports(apply[1]!.shared!.revise!([done({ conflicts }, 'ConfigMap', 'udp-services')]))).toEqual([
        9000, 9001,
      ]);
    });

    test('no port is opened where the entries couldn’t be written, and none is closed', () => {
      const { apply } = plan(...crs, ...upstream, nginxService(9000));
      expect(ports(apply[1]!.shared!.revise!([done(failed)]))).toEqual([9000]);
    });

    const toService = (given: Partial<Change>): Change => done(given, 'Service', 'ingress-nginx-controller');

    test('those whose port can’t be closed are reported in an event, and those who wait learn what concerns them', () => {
      const shut = streamIngress({ upstream: { namespace: 'infra' } });
      const map = tcpServices({ 9000: 'infra/db:5432' });
      const { apply, events } = plan(shut, crs[1]!, ...upstream, nginxService(9000), map);
      expect(apply).toHaveLength(3);
      const told = (...changes: Change[]) =>
        Object.fromEntries(
          events.map(({ regarding, event }) => {
            const { action, reason } = event(changes) ?? {};
            return [regarding.name, action && `${action} ${reason ?? ''}`];
          }),
        );
      const [b, web] = ['Open Forbidden', 'Close Forbidden'];
      expect(told(toService(failed), done({}), toService({}))).toEqual({ b: undefined, web });
      expect(told(toService({}), done(failed), toService({}))).toEqual({ b, web });
      expect(told(toService({}), done({}), toService(failed))).toEqual({ b, web: undefined });
    });

    test('so is who isn’t allowed any more, unless another writer is to have the port', () => {
      const policy = { targets: [{ name: 'default', namespaces: ['shop'] }] };
      const { shared: limited, statuses: told } = controllers({ policy });
      const refused = streamIngress({ name: 'old', namespace: 'zoo' });
      const map = tcpServices({ 9000: 'zoo/db:5432' });
      const closing = reconcile(limited!, [refused, nginxService(9000), map]);
      expect(closing.events.map(({ event }) => event([toService(failed)])?.action)).toEqual(['Close']);
      expect(conditions(reconcile(told, [refused, nginxService(9000), map])).old).toMatchObject({
        ...{ Accepted: 'False NamespaceNotPermitted', Programmed: 'False NotClosed' },
      });
      const taken = [refused, cr, ...upstream, nginxService(9000), map];
      expect(reconcile(limited!, taken).events.map(({ regarding }) => regarding.name)).toEqual(['web']);
      expect(conditions(reconcile(told, taken)).old).toMatchObject({ Programmed: 'False Pending' });
    });

    test('a conflict on the Service is met with the ports that were meant last', () => {
      const { apply } = plan(...crs, ...cluster);
      apply[1]!.shared!.revise!([done({ conflicts: [{ field: '.data.9001', manager: 'helm' }] })]);
      const field = '.spec.ports[port=9000,protocol="TCP"].targetPort';
      expect(ports(apply[1]!.shared!.onConflict!([{ field, manager: 'helm' }]))).toEqual([]);
    });
  });
});
