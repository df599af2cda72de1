import { describe, expect, test } from 'vitest';
import { openings } from '../../../src/kinds/stream-ingress/openings.js';
import type { Resolution } from '../../../src/kinds/stream-ingress/resolve.js';
import type { StreamIngress } from '../../../src/kinds/stream-ingress/spec.js';
import type { NginxTarget } from '../../../src/kinds/stream-ingress/targets.js';
import { heldBy, openPort, OURS, resolution, shared, streamIngress, target } from './builders.js';
import type { StateProps } from './builders.js';

interface Case {
  readonly crs?: readonly StreamIngress[];
  readonly gate?: Resolution['gate'];
  readonly state?: StateProps;
  readonly of?: NginxTarget;
}

function judge({ crs = [streamIngress()], gate = 'open', state = {}, of = target }: Case) {
  const { entries, obstacles } = openings(of, crs, () => resolution(gate), shared(state));
  return {
    open: entries.map(({ listen, protocol, value }) => `${listen}/${protocol} ${value}`),
    obstacles: [...obstacles.values()],
  };
}

const open = ['9000/TCP shop/db:5432'];
const ours = { tcp: { 9000: { value: 'shop/db:5432', ...OURS } } };

describe('a port', () => {
  test('is opened where its upstream is there', () => {
    expect(judge({})).toEqual({ open, obstacles: [] });
  });

  test('waits for Service, port and protocol before it is opened for the first time', () => {
    expect(judge({ gate: 'keep' })).toEqual({ open: [], obstacles: [] });
  });

  test('stays open through a later loss', () => {
    expect(judge({ gate: 'keep', state: ours })).toEqual({ open, obstacles: [] });
  });

  test('stays open where another port of the same Service is asked for, which isn’t there yet', () => {
    const cr = streamIngress({ upstream: { port: 5433 } });
    expect(judge({ crs: [cr], gate: 'keep', state: ours }).open).toEqual(['9000/TCP shop/db:5433']);
  });

  test('isn’t kept open for another Service, be it that of its last holder', () => {
    const cr = streamIngress({ upstream: { service: 'other' } });
    expect(judge({ crs: [cr], gate: 'keep', state: ours }).open).toEqual([]);
  });

  test('isn’t kept open where the entry is somebody else’s', () => {
    const state = { tcp: { 9000: { value: 'shop/db:5432', ...heldBy('helm') } } };
    expect(judge({ gate: 'keep', state }).open).toEqual([]);
  });

  test('is closed at once where it isn’t permitted any more', () => {
    expect(judge({ gate: 'shut', state: ours }).open).toEqual([]);
  });
});

describe('is PortUnavailable, with the name of the manager, and written to neither object', () => {
  test.each<[string, StateProps]>([
    [
      'key 9000 of ConfigMap ingress-nginx/tcp-services is held by the field manager helm',
      { tcp: { 9000: { value: 'x/y:1', ...heldBy('helm') } } },
    ],
    [
      'port 9000/TCP of Service ingress-nginx/ingress-nginx-controller is held by the field manager helm',
      { open: [openPort(9000, 'TCP', heldBy('helm'))] },
    ],
    [
      'port 9000/TCP of Service ingress-nginx/ingress-nginx-controller is held by the field manager helm',
      { ...ours, open: [openPort(9000, 'TCP', { ours: true, others: ['helm'] })] },
    ],
    ['the name si-9000-tcp stands on port 9001', { open: [{ ...openPort(9001), name: 'si-9000-tcp' }] }],
  ])('%s', (message, state) => {
    expect(judge({ state })).toEqual({
      open: [],
      obstacles: [{ reason: 'PortUnavailable', message: expect.stringContaining(message) as string }],
    });
  });

  test('our name on the same number of the other protocol is in the way', () => {
    const state = { open: [{ ...openPort(9000, 'UDP', heldBy('helm')), name: 'si-9000-tcp' }] };
    expect(judge({ state }).obstacles).toMatchObject([{ reason: 'PortUnavailable' }]);
  });

  test('the other protocol’s is in nobody’s way', () => {
    const state = {
      udp: { 9000: { value: 'x/y:1', ...heldBy('helm') } },
      open: [openPort(9000, 'UDP', heldBy('helm'))],
    };
    expect(judge({ state })).toEqual({ open, obstacles: [] });
  });

  test('one foreign port never blocks the others', () => {
    const crs = [streamIngress(), streamIngress({ name: 'b', listen: 9001 })];
    const state = { open: [openPort(9000, 'TCP', heldBy('helm'))] };
    expect(judge({ crs, state }).open).toEqual(['9001/TCP shop/db:5432']);
  });
});

describe('the Service', () => {
  test('is TargetNotFound while it isn’t there: nothing is opened, and nothing is closed', () => {
    const crs = [streamIngress(), streamIngress({ name: 'b', listen: 9001 })];
    const found = judge({ crs, state: { ...ours, service: null } });
    expect(found.open).toEqual(open);
    expect(found.obstacles.map(({ reason }) => reason)).toEqual(['TargetNotFound', 'TargetNotFound']);
  });

  test('while it isn’t there, an entry of somebody else isn’t taken for one of ours', () => {
    const state = { tcp: { 9000: { value: 'shop/db:5432', ...heldBy('helm') } }, service: null };
    expect(judge({ state }).open).toEqual([]);
  });

  test('is TargetNotConfigured where its one port has no name, since then there can be no second', () => {
    const state = { open: [{ port: 80, protocol: 'TCP', ...heldBy('helm') }] };
    expect(judge({ state })).toMatchObject({ open: [], obstacles: [{ reason: 'TargetNotConfigured' }] });
  });

  test('has as many ports as the admin allows: who is open stays, then the oldest come', () => {
    const crs = [1, 2, 3].map((minute) =>
      streamIngress({ name: `n${minute}`, listen: 9000 + minute, minute }),
    );
    const of = { ...target, maxListeners: 2 };
    expect(judge({ crs, of }).open).toEqual(['9001/TCP shop/db:5432', '9002/TCP shop/db:5432']);
    const state = { tcp: { 9003: { value: 'shop/db:5432', ...OURS } } };
    const found = judge({ crs, of, state });
    expect(found.open).toEqual(['9003/TCP shop/db:5432', '9001/TCP shop/db:5432']);
    expect(found.obstacles).toMatchObject([{ reason: 'TooManyListeners' }]);
  });
});
