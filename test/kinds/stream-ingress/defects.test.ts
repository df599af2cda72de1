import { describe, expect, test } from 'vitest';
import { storedVersion } from '../../../src/contract/crd.js';
import { streamIngress as kind } from '../../../src/kinds/stream-ingress/kind.js';
import { object, streamIngress } from './builders.js';
import { applied, conditions, controllers, nginxService, reconcile, tcpServices, upstream } from './world.js';

const { statuses, shared } = controllers();
const cr = streamIngress();
const service = 'Service ingress-nginx-controller';
const written = (...objects: object[]) => applied(reconcile(shared!, objects));
const told = (...objects: object[]) => conditions(reconcile(statuses, objects)).web!;

/** What the spec can say, by the paths of its fields. */
const specFields = Object.keys(storedVersion(kind.crd).schema.openAPIV3Schema.properties!.spec!.properties!);

describe('defects of others that this one doesn’t have', () => {
  test('an upstream that isn’t there is told: Service, port, protocol, endpoints', () => {
    const [db, slice] = upstream;
    const unready = { ...slice, endpoints: [{ conditions: { ready: false } }] };
    const reason = (given: Parameters<typeof streamIngress>[0], ...objects: object[]) =>
      told(streamIngress(given), ...objects).ResolvedRefs;
    expect(reason({})).toBe('False ServiceNotFound');
    expect(reason({ upstream: { port: 1 } }, db!)).toBe('False PortNotFound');
    expect(reason({ protocol: 'UDP' }, db!)).toBe('False ProtocolMismatch');
    expect(reason({}, db!, unready)).toBe('False NoReadyEndpoints');
    expect(reason({}, db!)).toBe('False NoReadyEndpoints');
  });

  test('nobody publishes the Services of another namespace without its permission', () => {
    const dns = object('Service', 'kube-system/kube-dns', {
      spec: { ports: [{ name: 'dns', port: 53, protocol: 'UDP' }] },
    });
    const foreign = streamIngress({
      protocol: 'UDP',
      upstream: { namespace: 'kube-system', service: 'kube-dns', port: 53 },
    });
    expect(written(foreign, dns, nginxService())).toEqual([]);
    expect(told(foreign, dns, nginxService())).toMatchObject({
      ResolvedRefs: 'False RefNotPermitted',
      Stalled: 'True RefNotPermitted',
    });
  });

  test('no user names the proxy’s Service or ConfigMap: a target is the admin’s to describe', () => {
    expect(specFields).toEqual([
      'protocol',
      'listen',
      'upstream',
      'is_service',
      'className',
      'proxyProtocol',
    ]);
  });

  test('no finalizer keeps one from being deleted, be the operator dead or the ConfigMap gone', () => {
    const finalizing = (object: object) => JSON.stringify(object).includes('finalizers');
    const plans = [shared!, statuses].map((each) => reconcile(each, [cr, ...upstream, nginxService()]));
    expect(plans.flatMap(({ apply }) => apply).some(({ object }) => finalizing(object))).toBe(false);
    expect(written(nginxService(9000))).toEqual([`${service}: `]);
  });

  test('listen 443 doesn’t rewrite the port of HTTPS: it is reserved', () => {
    const https = streamIngress({ listen: 443 });
    expect(written(https, ...upstream, nginxService())).toEqual([]);
    expect(told(https, ...upstream, nginxService()).Accepted).toBe('False PortReserved');
  });

  test('nor does it where the admin has reserved nothing: the port is held by somebody else', () => {
    const open = controllers({ policy: { targets: [{ name: 'default', reservedPorts: [] }] } });
    const objects = [streamIngress({ listen: 443 }), ...upstream, nginxService()];
    expect(applied(reconcile(open.shared!, objects))).toEqual([]);
    const { status, events } = reconcile(open.statuses, objects);
    expect(conditions({ apply: [], delete: [], status, events }).web).toMatchObject({
      Programmed: 'False PortUnavailable',
    });
    expect(JSON.stringify(status[0]!.status([]))).toContain('the field manager helm');
  });

  test('what somebody removes comes back: entry and port are watched, and wanted whatever is there', () => {
    const both = ['ConfigMap tcp-services: 9000', `${service}: 9000/TCP`];
    expect(written(cr, ...upstream, nginxService(9000), tcpServices({}))).toEqual(both);
    expect(written(cr, ...upstream, nginxService(), tcpServices({ 9000: 'shop/db:5432' }))).toEqual(both);
    expect(written(cr, ...upstream, nginxService(9000))).toEqual(both);
    expect(shared!.watches.map(({ type }) => type.kind)).toEqual(
      expect.arrayContaining(['Service', 'ConfigMap']),
    );
  });
});

describe('how ingress-nginx reads its ConfigMap', () => {
  test('a ConfigMap that it isn’t told to read is TargetNotConfigured, and not Ready', () => {
    const looking = controllers({ flags: { '--ingress-controller': 'Deployment/nginx' } }).statuses;
    const nginx = {
      ...object('Deployment', 'ingress-nginx/nginx', {
        spec: { template: { spec: { containers: [{ args: [] }] } } },
      }),
      apiVersion: 'apps/v1',
    };
    const open = [...upstream, nginxService(9000), tcpServices({ 9000: 'shop/db:5432' })];
    expect(conditions(reconcile(looking, [cr, nginx, ...open])).web).toMatchObject({
      Stalled: 'True TargetNotConfigured',
    });
  });

  test('it reloads for nothing: endpoints that come and go are no reason to write, and the same is the same', () => {
    expect(shared!.watches.map(({ type }) => type.kind)).not.toContain('EndpointSlice');
    const objects = [cr, ...upstream, nginxService()];
    expect(JSON.stringify(reconcile(shared!, objects).apply)).toBe(
      JSON.stringify(reconcile(shared!, [...objects].reverse()).apply),
    );
  });
});
