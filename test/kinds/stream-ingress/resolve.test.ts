import { expect, test } from 'vitest';
import { permittedBy, type Grant, type KeptService } from '../../../src/kinds/stream-ingress/watched.js';
import { resolve } from '../../../src/kinds/stream-ingress/claims.js';
import { streamIngress, type Given } from './builders.js';

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
    permitted: 'grants' in known ? known.grants && permittedBy(known.grants) : permittedBy([]),
  });
}

const upstream = { namespace: 'infra' };
const services = { 'infra/db': db };
const grant: Grant = { namespace: 'infra', from: ['shop'], to: ['db'] };
const external = { 'shop/db': { ...db, external: true as const } };
const allowing = (...allowFrom: string[]) => ({
  services: { 'infra/db': { ...db, allowFrom: `,${allowFrom.join()},` } },
  grants: undefined,
});

test.each<[verdict: string, of: string, given: Given, known?: Known]>([
  ['ResolvedRefs open', 'a port that is there', {}],
  ['PortNotFound keep', 'a number that is none', { upstream: { port: 1 } }],
  ['ProtocolMismatch keep', 'the number with the other protocol alone', { upstream: { port: 54 } }],
  ['ProtocolMismatch keep', 'the name of the other protocol', { upstream: { port: 'dns-udp' } }],
  ['NoReadyEndpoints open', 'nothing ready', {}, { ready: [] }],
  ['ResolvedRefs open', 'a host name, which has no endpoints', {}, { services: external, ready: [] }],
  ['ServiceNotFound keep', 'no Service', {}, { services: {} }],
  ['ResolvedRefs open', 'no Service, unchecked', { is_service: false }, { services: {} }],
  ['RefNotPermitted shut', 'another namespace', { upstream }, { services }],
  ['RefNotPermitted shut', 'another namespace, and no Service', { upstream }, { services: {} }],
  ['RefNotPermitted shut', 'the same, unchecked', { is_service: false, upstream }, { services: {} }],
  ['ResolvedRefs open', 'a grant for the Service', { upstream }, { services, grants: [grant] }],
  ['ResolvedRefs open', 'a grant for all', { upstream }, { services, grants: [{ ...grant, to: ['*'] }] }],
  [
    'ResolvedRefs open',
    'a grant, unchecked',
    { is_service: false, upstream },
    { services: {}, grants: [grant] },
  ],
  ...[{ namespace: 'shop' }, { from: ['other'] }, { to: ['cache'] }].map(
    (other): [string, string, Given, Known] => [
      'RefNotPermitted shut',
      `a grant of ${JSON.stringify(other)}`,
      { upstream },
      { services, grants: [{ ...grant, ...other }] },
    ],
  ),
  ['ResolvedRefs open', 'an annotation', { upstream }, allowing('other', 'shop')],
  ['ResolvedRefs open', 'an annotation for all', { upstream }, allowing('*')],
  ['RefNotPermitted shut', 'an annotation for others', { upstream }, allowing('other')],
  ['RefNotPermitted shut', 'no annotation', { upstream }, { services, grants: undefined }],
])('%s: %s', (verdict, _, given, known) => {
  const { status, reason, gate } = judge(given, known);
  expect(`${reason} ${gate}`).toBe(verdict);
  expect(status === 'True').toBe(reason === 'ResolvedRefs');
});

test('names the port, and those that are there', () => {
  expect(judge({})).toMatchObject({ message: 'Service shop/db has port 5432', port: 5432 });
  expect(judge({ upstream: { port: 1 } }).message).toBe(
    'Service shop/db has no port 1; its ports are sql, dns, dns-udp, udp-only',
  );
});

test('reads each grant once for all custom resources of a namespace', () => {
  let reads = 0;
  const grants = Array.from({ length: 100 }, () => ({
    ...grant,
    get from() {
      reads++;
      return ['other'];
    },
  }));
  const known = {
    service: () => undefined,
    readyPorts: () => new Set<string>(),
    permitted: permittedBy(grants),
  };
  for (let listen = 9000; listen < 9100; listen++)
    expect(resolve(streamIngress({ listen, upstream }), known).reason).toBe('RefNotPermitted');
  expect(reads).toBe(100);
});

test('says nothing of what isn’t permitted: whether there is such a Service, and which ports it has', () => {
  const [some, none] = [services, {}].map((known) => judge({ upstream }, { services: known }));
  expect(some).toEqual(none);
});
