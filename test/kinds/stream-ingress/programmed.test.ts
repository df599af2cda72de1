import { describe, expect, test } from 'vitest';
import { addressesOf, openings, programmed } from '../../../src/kinds/stream-ingress/openings.js';
import type { KeptArguments } from '../../../src/kinds/stream-ingress/kept.js';
import type { Resolution } from '../../../src/kinds/stream-ingress/resolve.js';
import { heldBy, openPort, OURS, resolution, shared, streamIngress, target } from './builders.js';
import type { StateProps } from './builders.js';

const cr = streamIngress();
const written: StateProps = { tcp: { 9000: { value: 'shop/db:5432', ...OURS } }, open: [openPort(9000)] };
const looked = { ...target, controller: { kind: 'Deployment', name: 'nginx' } as const };

function judge(props: StateProps, gate: Resolution['gate'] = 'open', controller?: KeptArguments | null) {
  const state = shared(props);
  const opened = openings(target, [cr], () => resolution(gate), state);
  const readBack = { state, openings: opened, ...(controller !== undefined && { controller }) };
  const { status, reason, message } = programmed(controller === undefined ? target : looked, cr, readBack);
  return [status, reason, message];
}

describe('Programmed', () => {
  test('holds once both are read back', () => {
    expect(judge(written)).toEqual([
      ...['True', 'Programmed', 'Service ingress-nginx/ingress-nginx-controller has port 9000/TCP'],
    ]);
  });

  test.each<[string, StateProps]>([
    ['the entry is missing', { open: written.open! }],
    ['the entry leads elsewhere', { ...written, tcp: { 9000: { value: 'shop/db:1', ...OURS } } }],
    ['the port is missing', { tcp: written.tcp! }],
    ['the port leads elsewhere', { ...written, open: [{ ...openPort(9000), targetPort: 1 }] }],
    ['the port has another name', { ...written, open: [{ ...openPort(9000), name: 'a' }] }],
  ])('is Pending while %s', (_, state) => {
    expect(judge(state)).toEqual(['Unknown', 'Pending', 'The port has yet to be opened']);
  });

  test('is Pending while the upstream isn’t there', () => {
    expect(judge({}, 'keep').slice(0, 2)).toEqual(['False', 'Pending']);
    expect(judge({}, 'shut').slice(0, 2)).toEqual(['False', 'Pending']);
    const others = { 9000: { value: 'shop/db:5432', ...heldBy('helm') } };
    expect(judge({ tcp: others }, 'shut').slice(0, 2)).toEqual(['False', 'PortUnavailable']);
  });

  const map = 'key 9000 of ConfigMap ingress-nginx/tcp-services';
  const port = 'port 9000/TCP of Service ingress-nginx/ingress-nginx-controller';

  test.each<[string, StateProps, string]>([
    ['both are there', written, `${map} and ${port} are still there`],
    ['the entry is there', { tcp: written.tcp! }, `${map} is still there`],
    ['the port is there', { open: written.open! }, `${port} is still there, with nothing behind it`],
    ['the Service is missing', { tcp: written.tcp!, service: null }, `${map} is still there`],
  ])('is NotClosed while it is to be closed and %s', (_, state, left) => {
    expect(judge(state, 'shut')).toEqual(['False', 'NotClosed', `The port has yet to be closed: ${left}`]);
  });

  test.each<[string, StateProps]>([
    ['TargetNotFound', { ...written, service: null }],
    ['PortUnavailable', { tcp: { 9000: { value: 'a/b:1', ...heldBy('helm') } } }],
    ['TargetNotConfigured', { open: [{ port: 80, protocol: 'TCP', ...heldBy('helm') }] }],
    ['LoadBalancerPortsError', { ...written, service: { portsError: 'no mixture' } }],
    [
      'LoadBalancerPortsError',
      {
        ...written,
        service: {
          addresses: [
            { address: 'a', errors: [{ port: 9000, protocol: 'TCP', error: 'MixedProtocolNotSupported' }] },
          ],
        },
      },
    ],
  ])('is False for %s', (reason, state) => {
    expect(judge(state).slice(0, 2)).toEqual(['False', reason]);
  });

  test('is untouched by what the load balancer says of another port', () => {
    const errors = [{ port: 9000, protocol: 'UDP', error: 'MixedProtocolNotSupported' }];
    expect(judge({ ...written, service: { addresses: [{ address: 'a', errors }] } })[0]).toBe('True');
  });

  test('is TargetNotConfigured where the controller reads another ConfigMap, or none, or isn’t there', () => {
    expect(judge(written, 'open', { TCP: 'ingress-nginx/tcp-services' })[0]).toBe('True');
    expect(judge(written, 'open', { TCP: 'ingress-nginx/other' })).toEqual([
      ...['False', 'TargetNotConfigured'],
      'the port is written to ConfigMap ingress-nginx/tcp-services, and Deployment ingress-nginx/nginx reads ingress-nginx/other; set its argument --tcp-services-configmap=ingress-nginx/tcp-services',
    ]);
    expect(judge(written, 'open', { UDP: 'ingress-nginx/tcp-services' })[2]).toContain(
      'is not told to read any',
    );
    expect(judge(written, 'open', null)[2]).toContain("isn't there");
  });
});

test('it is reached at each address of the Service', () => {
  const addresses = ['1.2.3.4', '2001:db8::1', 'lb.example.com'].map((address) => ({ address, errors: [] }));
  expect(addressesOf(cr, shared({ service: { addresses } }))).toEqual([
    ...['1.2.3.4:9000', '[2001:db8::1]:9000', 'lb.example.com:9000'],
  ]);
  expect(addressesOf(cr, shared({ service: null }))).toEqual([]);
});
