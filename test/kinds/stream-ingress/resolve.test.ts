import { describe, expect, test } from 'vitest';
import type { Grant, KeptService } from '../../../src/kinds/stream-ingress/watched.js';
import { resolve } from '../../../src/kinds/stream-ingress/claims.js';
import { streamIngress } from './builders.js';
import type { Given } from './builders.js';

const db: KeptService = {
  ports: [
    { name: 'sql', port: 5432, protocol: 'TCP' },
    { name: 'dns', port: 53, protocol: 'TCP' },
    { name: 'dns-udp', port: 53, protocol: 'UDP' },
    { name: 'udp-only', port: 54, protocol: 'UDP' },
  ],
};

interface Known {
  readonly services?: Readonly<Record<string, KeptService>>;
  readonly ready?: readonly string[];
  readonly grants?: readonly Grant[] | undefined;
}

function judge(given: Given, known: Known = {}) {
  const { services = { 'shop/db': db }, ready = ['sql/TCP', 'dns/TCP', 'dns-udp/UDP'] } = known;
  return resolve(streamIngress(given), {
    service: (key) => services[key],
    readyPorts: () => new Set(ready),
    grants: 'grants' in known ? known.grants : [],
  });
}

describe('ResolvedRefs', () => {
  test('holds where Service, port, protocol and an endpoint are there', () => {
    expect(judge({})).toEqual({
      ...{ status: 'True', reason: 'ResolvedRefs', message: 'Service shop/db has port 5432', gate: 'open' },
      port: 5432,
    });
  });

  test('PortNotFound, with the ports that are there', () => {
    expect(judge({ upstream: { port: 1 } })).toMatchObject({
      ...{ reason: 'PortNotFound', gate: 'keep' },
      message: 'Service shop/db has no port 1; its ports are sql, dns, dns-udp, udp-only',
    });
  });

  test('ProtocolMismatch: the number is there, with the other protocol alone', () => {
    expect(judge({ upstream: { port: 54 } })).toMatchObject({ reason: 'ProtocolMismatch', gate: 'keep' });
    expect(judge({ upstream: { port: 'dns-udp' } })).toMatchObject({ reason: 'ProtocolMismatch' });
  });

  test('NoReadyEndpoints is told, and nothing waits for it', () => {
    expect(judge({}, { ready: [] })).toMatchObject({
      status: 'False',
      reason: 'NoReadyEndpoints',
      gate: 'open',
    });
  });

  test('a Service that stands for a host name has no endpoints to wait for', () => {
    const external = { 'shop/db': { ...db, external: true as const } };
    expect(judge({}, { services: external, ready: [] })).toMatchObject({ status: 'True' });
  });
});

describe('another namespace', () => {
  const upstream = { namespace: 'infra' };
  const services = { 'infra/db': db };
  const grant: Grant = { namespace: 'infra', from: ['shop'], to: ['db'] };

  test('RefNotPermitted without its permission, and the port is closed at once', () => {
    expect(judge({ upstream }, { services })).toMatchObject({
      ...{ status: 'False', reason: 'RefNotPermitted', gate: 'shut' },
    });
  });

  test('is permitted by a ReferenceGrant for the Service, or for all of them', () => {
    expect(judge({ upstream }, { services, grants: [grant] })).toMatchObject({ status: 'True' });
    expect(judge({ upstream }, { services, grants: [{ ...grant, to: ['*'] }] })).toMatchObject({
      status: 'True',
    });
  });

  test.each<[string, Grant]>([
    ['in another namespace', { ...grant, namespace: 'shop' }],
    ['for another namespace', { ...grant, from: ['other'] }],
    ['for another Service', { ...grant, to: ['cache'] }],
  ])('isn’t permitted by a ReferenceGrant %s', (_, other) => {
    expect(judge({ upstream }, { services, grants: [other] })).toMatchObject({ reason: 'RefNotPermitted' });
  });

  test('what isn’t permitted isn’t told either: whether there is such a Service, and which ports it has', () => {
    const answers = [services, {}].map((known) => judge({ upstream }, { services: known }));
    expect(answers[0]).toEqual(answers[1]);
    expect(answers[0]!.message).not.toContain('db');
  });

  test('is_service false skips the checks, but not the permission, also for a Service that doesn’t exist', () => {
    const unchecked = { is_service: false, upstream };
    expect(judge(unchecked, { services: {} })).toMatchObject({ reason: 'RefNotPermitted', gate: 'shut' });
    expect(judge(unchecked, { services: {}, grants: [grant] })).toMatchObject({
      status: 'True',
      gate: 'open',
    });
    expect(judge({ is_service: false }, { services: {} })).toMatchObject({ status: 'True', gate: 'open' });
  });

  test('where annotations count, that of the Service permits', () => {
    const allowed = (allowFrom: readonly string[]) =>
      judge({ upstream }, { services: { 'infra/db': { ...db, allowFrom } }, grants: undefined }).reason;
    expect(allowed(['other', 'shop'])).toBe('ResolvedRefs');
    expect(allowed(['*'])).toBe('ResolvedRefs');
    expect(allowed(['other'])).toBe('RefNotPermitted');
    expect(judge({ upstream }, { services, grants: undefined }).reason).toBe('RefNotPermitted');
  });
});
