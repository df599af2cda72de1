import { describe, expect, test } from 'vitest';
import type { Change } from '../../../src/contract/change.js';
import type { Plan } from '../../../src/contract/plan.js';
import { OperatorError } from '../../../src/contract/error.js';
import type { StreamIngressStatus } from '../../../src/kinds/stream-ingress/spec.js';
import { object, streamIngress } from './builders.js';
import { applied, conditions, controllers, nginxService, reconcile, sharing } from './world.js';
import { tcpServices, upstream } from './world.js';

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
    expect(plan.conclude([]).status[0]!.status).toMatchObject({
      upstream: 'shop/db:5432',
      addresses: ['1.2.3.4:9000'],
    });
    expect(plan.steps).toEqual([]);
  });

  test('keep what the API server has refused of this generation, until it is open or has another obstacle', () => {
    const told = (generation: number) => ({
      ...cr,
      metadata: { ...cr.metadata, generation: 1 },
      status: {
        conditions: [
          {
            ...{ type: 'Programmed', status: 'False', reason: 'TargetRefused', message: 'no; ask' },
            ...{ observedGeneration: generation, lastTransitionTime: '2026-01-01T00:00:00Z' },
          },
        ],
      },
    });
    const judged = (generation: number, ...objects: object[]) =>
      conditions(reconcile(statuses, [told(generation), ...objects])).web;
    const kept = { Programmed: 'False TargetRefused', Ready: 'False TargetRefused' };
    expect(judged(1, ...cluster)).toMatchObject({ ...kept, Stalled: 'True TargetRefused' });
    expect(judged(0, ...cluster)).toMatchObject({ Programmed: 'Unknown Pending' });
    expect(judged(1, ...open)).toMatchObject({ Programmed: 'True Programmed' });
    expect(judged(1, ...upstream)).toMatchObject({ Programmed: 'False TargetNotFound' });
  });

  test('keep what was refused of an opening for an opening alone, and of a closing for a closing', () => {
    const told = (what: string, namespace: string) => {
      const condition = {
        type: 'Programmed',
        status: 'False',
        reason: 'TargetRefused',
        observedGeneration: 1,
      };
      const status = { conditions: [{ ...condition, message: `The port ${what}; no` }] };
      const given = streamIngress({ upstream: { namespace }, status });
      const objects = [given, ...upstream, nginxService(), tcpServices({ 9000: `${namespace}/db:5432` })];
      return conditions(reconcile(statuses, objects)).web!.Programmed;
    };
    // Nothing permits the references to infra.
    expect(told("can't be opened", 'infra')).toBe('False NotClosed');
    expect(told('has yet to be closed: it is there', 'infra')).toBe('False TargetRefused');
    expect(told("can't be opened", 'shop')).toBe('False TargetRefused');
    expect(told('has yet to be closed: it is there', 'shop')).toBe('Unknown Pending');
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
    expect(JSON.stringify(judged.conclude([]).status)).toContain('the field manager helm');
  });

  test('what is missing of a port is written again, the same whatever the order', () => {
    const both = ['ConfigMap tcp-services: 9000', `${service}: 9000/TCP`];
    const [map, port] = [tcpServices({ 9000: 'shop/db:5432' }), nginxService(9000)];
    for (const left of [[port, tcpServices({})], [nginxService(), map], [port]])
      expect(applied(plan(cr, ...upstream, ...left))).toEqual(both);
    const objects = [cr, ...cluster];
    expect(JSON.stringify(plan(...objects).steps)).toBe(JSON.stringify(plan(...objects.reverse()).steps));
  });

  test('open at most a hundred ports of one namespace, the oldest and those that are open, and keep room for others', () => {
    const many = Array.from({ length: 102 }, (_, index) =>
      streamIngress({
        name: `n${index}`,
        namespace: 'zoo',
        listen: 9000 + index,
        minute: index % 60,
        is_service: false,
        ...(index === 59 && {
          status: { conditions: [{ type: 'Programmed', status: 'True', message: '' }] },
        }),
      }),
    );
    const younger = streamIngress({ name: 'other', listen: 9500, minute: 59 });
    // Of the youngest minute, so it is the last but for that it is open.
    const map = tcpServices({ 9059: 'zoo/db:5432' });
    const objects = [...many, younger, ...upstream, nginxService(9059), map];
    const closed = many.filter(({ spec }) => spec.listen === 9057 || spec.listen === 9058);
    const given = plan(...objects);
    const written = sharing(given)[0]!.object as { data?: object };
    const wanted = [...many.filter((one) => !closed.includes(one)), younger].map(({ spec }) => spec.listen);
    expect(Object.keys(written.data!).map(Number)).toEqual(wanted);
    const judged = reconcile(statuses, objects);
    expect(conditions(judged).n58).toMatchObject({ Stalled: 'True TooManyListeners' });
    expect(JSON.stringify(judged.conclude([]).status.map(({ status }) => status))).toContain(
      'opens 100 ports for each namespace, which are taken; this one is opened once another is closed, or an admin raises maxListenersPerNamespace',
    );
  });

  test('a port that another namespace leaves is no room beyond a bound', () => {
    const policy = { targets: [{ name: 'default', maxListenersPerNamespace: 1, maxListeners: 2 }] };
    const { shared: bounded, statuses: judging } = controllers({ policy });
    const zoo = { namespace: 'zoo', is_service: false };
    const crs = [streamIngress({ ...zoo, name: 'a' }), streamIngress({ ...zoo, name: 'b', listen: 9001 })];
    // The StreamIngress of shop that has won this port from b was deleted.
    const map = tcpServices({ 9000: 'zoo/db:5432', 9001: 'shop/db:5432' });
    const closing = reconcile(bounded!, [...crs, nginxService(9000, 9001), map]);
    expect(applied(closing)).toEqual([`${service}: 9000/TCP`, 'ConfigMap tcp-services: 9000']);
    const closed = [...crs, nginxService(9000), tcpServices({ 9000: 'zoo/db:5432' })];
    expect(conditions(reconcile(judging, closed)).b).toMatchObject({ Stalled: 'True TooManyListeners' });
  });

  test.each([
    ['the loser of a port that another namespace leaves', 'False Pending', [9000]],
    ['one beyond the bound', 'False TooManyListeners', [9000]],
    ['one whose port has yet to be closed', 'False NotClosed', [9000]],
    ['one whose port can’t be closed', 'False TargetRefused The port has yet to be closed', [9000]],
    ['one that was open when the bound was lowered', 'True Programmed', [9000, 9001]],
    ['such a one whose upstream was edited', 'Unknown Pending', [9000, 9001]],
    ['such a one whose edit was refused', 'False TargetRefused The port can’t be opened', [9000, 9001]],
    ['such a one while the Service isn’t there', 'False TargetNotFound', [9000, 9001]],
    ['such a one whose load balancer fails', 'False LoadBalancerPortsError', [9000, 9001]],
  ])('beyond a bound, %s (%s) leaves open %s', (_, told, ports) => {
    const policy = {
      targets: [{ name: 'default', maxListenersPerNamespace: 1 }],
      crossNamespace: 'Annotation',
    } as const;
    const metadata = { annotations: { 'nginx-stream.jeffthecoder.xyz/allow-from': 'zoo' } };
    const db = object('Service', 'shop/db', { metadata });
    const asked = (name: string, listen: number, minute: number, programmed: string) => {
      const [status, reason, ...message] = programmed.split(' ');
      return streamIngress({
        ...{ name, listen, minute, namespace: 'zoo', is_service: false, upstream: { namespace: 'shop' } },
        status: { conditions: [{ type: 'Programmed', status, reason, message: message.join(' ') }] },
      });
    };
    const crs = [asked('old', 9001, 0, told), asked('young', 9000, 1, 'True Programmed')];
    const map = tcpServices({ 9000: 'shop/db:5432', 9001: 'shop/db:5432' });
    const made = reconcile(controllers({ policy }).shared!, [...crs, db, nginxService(9000, 9001), map]);
    const data = sharing(made).flatMap(({ object: { data: keys } }) => Object.keys(keys ?? {}));
    expect(data.map(Number)).toEqual(ports);
  });

  test.each([
    ['the mode that doesn’t read it', undefined, 'zoo', false],
    ['the mode that reads it', 'Annotation', 'zoo', true],
    ['20,000 characters', 'Annotation', ','.repeat(20_000), true],
    ['more of them', 'Annotation', ','.repeat(20_001), false],
  ] as const)('in %s, keeps the annotation of a Service or not', (_, crossNamespace, text, isKept) => {
    const { watches } = controllers(crossNamespace && { policy: { crossNamespace } }).statuses;
    const annotations = { 'nginx-stream.jeffthecoder.xyz/allow-from': text };
    const db = object('Service', 'shop/db', { metadata: { annotations } });
    const every = watches.find(({ type, name }) => type.kind === 'Service' && name === undefined);
    expect('allowFrom' in every!.keep!(db)!).toBe(isKept);
  });

  describe('in the light of what became of the steps before', () => {
    const ports = (object: unknown) =>
      ((object as { spec?: { ports: { port: number }[] } } | undefined)?.spec?.ports ?? []).map(
        ({ port }) => port,
      );
    const resolved = { type: 'ResolvedRefs', status: 'True', reason: 'ResolvedRefs', message: 'so' };
    const status = { conditions: [{ ...resolved, observedGeneration: 1 }] };
    const crs = [streamIngress({ status }), streamIngress({ name: 'b', listen: 9001, status })];
    const done = (given: Partial<Change>, kindOf = 'ConfigMap', name = 'tcp-services'): Change => ({
      ref: { apiVersion: 'v1', kind: kindOf, namespace: 'ingress-nginx', name },
      action: 'configured',
      ...given,
    });
    const failed: Partial<Change> = {
      action: 'failed',
      error: new OperatorError({ reason: 'Invalid', message: 'no; ask' }),
    };

    test('a port isn’t opened whose entry another writer has got meanwhile', () => {
      const { revise } = sharing(plan(...crs, ...cluster))[1]!;
      expect(ports(revise!([done({})]))).toEqual([9000, 9001]);
      const conflicts = [{ field: '.data.9001', manager: 'helm' }];
      expect(ports(revise!([done({ conflicts })]))).toEqual([9000]);
      expect(ports(revise!([done({ conflicts }, 'ConfigMap', 'udp-services')]))).toEqual([9000, 9001]);
    });

    test('no port is opened where its entries couldn’t be written, and none is closed; those of the other protocol are', () => {
      const dns = object('Service', 'shop/dns', {
        spec: { ports: [{ name: 'dns', port: 53, protocol: 'UDP' }] },
      });
      const udp = streamIngress({
        ...{ name: 'udp', listen: 9053, protocol: 'UDP', upstream: { service: 'dns', port: 53 } },
      });
      const { revise } = sharing(plan(...crs, udp, ...upstream, dns, nginxService(9000)))[2]!;
      const changes = [done(failed), done({}, 'ConfigMap', 'udp-services')];
      expect(ports(revise!(changes))).toEqual([9000, 9053]);
    });

    const toService = (given: Partial<Change>): Change => done(given, 'Service', 'ingress-nginx-controller');
    /** What those told of a refusal are told: condition and event. */
    const toldBy = (given: Plan, ...changes: Change[]) => {
      const { status, events } = given.conclude(changes);
      const told = status.map(({ target: { metadata }, status: of }) => {
        const programmed = (of as StreamIngressStatus).conditions?.find(({ type }) => type === 'Programmed');
        const { event } = events.find(({ regarding }) => regarding.name === metadata.name) ?? {};
        return [metadata.name, [programmed?.reason, programmed?.message, event?.reason]];
      });
      expect(events.length).toBeLessThanOrEqual(status.length);
      return Object.fromEntries(told) as object;
    };

    test('those whose port can’t be opened or closed are told of what concerns them, with its remedy', () => {
      const shut = streamIngress({ upstream: { namespace: 'infra' }, status });
      const map = tcpServices({ 9000: 'infra/db:5432' });
      const given = plan(shut, crs[1]!, ...upstream, nginxService(9000), map);
      expect(sharing(given)).toHaveLength(3);
      const told = (...changes: Change[]) => toldBy(given, ...changes);
      const b = ['TargetRefused', "The port can't be opened: no; ask", 'TargetRefused'];
      const left =
        'key 9000 of ConfigMap ingress-nginx/tcp-services and port 9000/TCP of Service ingress-nginx/ingress-nginx-controller are still there';
      const web = ['TargetRefused', `The port has yet to be closed: ${left}; no; ask`, 'TargetRefused'];
      expect(told(toService(failed), done({}), toService({}))).toEqual({ web });
      expect(told(toService({}), done(failed), toService({}))).toEqual({ b, web });
      expect(told(toService({}), done({}), toService(failed))).toEqual({ b });
      expect(told(done(failed, 'ConfigMap', 'udp-services'))).toEqual({});
    });

    test.each([
      ['is told while a right is missing', 'Forbidden', 'backoff', ['web']],
      ['is told while a quota is used up', 'QuotaExceeded', 'backoff', ['web']],
      ['is told while nothing but a change helps', 'Anything', 'onChange', ['web']],
      ['is told nothing while the cause may pass', 'ServerOverloaded', 'backoff', []],
    ] as const)('one that waits %s', (_, reason, retry, told) => {
      const error = new OperatorError({ reason, message: 'no', retry });
      expect(Object.keys(toldBy(plan(crs[0]!, ...cluster), done({ action: 'failed', error })))).toEqual(told);
    });

    test('one whose references were judged for an earlier generation is told nothing until they are judged again', () => {
      const stale = streamIngress({ status: { conditions: [{ ...resolved, observedGeneration: 0 }] } });
      expect(toldBy(plan(stale, ...cluster), done(failed))).toEqual({});
    });

    test('so is who isn’t allowed any more, unless another writer is to have the port', () => {
      const policy = { targets: [{ name: 'default', namespaces: ['shop'] }] };
      const { shared: limited, statuses: told } = controllers({ policy });
      const refused = streamIngress({ name: 'old', namespace: 'zoo', status });
      const map = tcpServices({ 9000: 'zoo/db:5432' });
      const closing = reconcile(limited!, [refused, nginxService(9000), map]);
      expect(toldBy(closing, toService(failed))).toMatchObject({ old: { 0: 'TargetRefused' } });
      expect(conditions(reconcile(told, [refused, nginxService(9000), map])).old).toMatchObject({
        ...{ Accepted: 'False NamespaceNotPermitted', Programmed: 'False NotClosed' },
      });
      const taken = [refused, crs[0]!, ...upstream, nginxService(9000), map];
      const all = [done(failed), toService(failed)];
      expect(Object.keys(toldBy(reconcile(limited!, taken), ...all))).toEqual(['web']);
      expect(conditions(reconcile(told, taken)).old).toMatchObject({ Programmed: 'False Pending' });
    });

    test('a conflict on the Service is met with the ports that were meant last', () => {
      const { revise, onConflict } = sharing(plan(...crs, ...cluster))[1]!;
      const meant = revise!([done({ conflicts: [{ field: '.data.9001', manager: 'helm' }] })])!;
      const field = '.spec.ports[port=9000,protocol="TCP"].targetPort';
      expect(ports(onConflict!([{ field, manager: 'helm' }], meant))).toEqual([]);
    });
  });
});
