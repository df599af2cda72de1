import { describe, expect, it } from 'vitest';
import type { LeaseSpec } from '../../src/engine/loop/leader.js';
import type { ApiResponse } from '../../src/client/transport.js';
import { failure } from './support/builders.js';
import { candidate, leaseOf, putLease, started } from './support/candidates.js';

const never = new Promise<undefined>(() => undefined);
const T0 = '2026-01-01T00:00:00.000000Z';

const held: LeaseSpec = {
  holderIdentity: 'other',
  leaseDurationSeconds: 15,
  acquireTime: T0,
  renewTime: T0,
  leaseTransitions: 4,
};

describe('An elector that looks for the lease', () => {
  it('makes it where there is none, with times of exactly six digits', async () => {
    const { server, leads, calls, messages } = await started();
    expect(leads()).toBe(true);
    expect(calls).toEqual(['leading']);
    expect(messages()).toEqual(['became leader']);
    expect(leaseOf(server)).toEqual({ ...held, holderIdentity: 'me', leaseTransitions: 0 });
  });

  it('waits for another holder for as long as that one has asked for, and says so once', async () => {
    const { server, clock, leads, messages } = await started((fake) => {
      putLease(fake, { ...held, leaseDurationSeconds: 40 });
    });
    await clock.advance(39_999);
    expect(leads()).toBe(false);
    expect(messages()).toEqual(['waiting for other']);
    expect(server.writes).toEqual([]);
    await clock.advance(1);
    expect(leads()).toBe(true);
    expect(leaseOf(server)).toMatchObject({ holderIdentity: 'me', leaseTransitions: 5 });
  });

  it.each([
    [
      'its namespace is missing',
      failure(404, 'NotFound', 'namespaces "ops" not found'),
      'POST',
      /; create namespace \S+, or name another namespace with --leader-election-namespace$/,
    ],
    [
      'it has no right to read it',
      failure(403, 'Forbidden', 'leases is forbidden'),
      'GET',
      /; grant get, create and update of leases in namespace \S+, or name another/,
    ],
  ] as [string, ApiResponse, string, RegExp][])(
    'goes on trying, and says once that %s, with the remedy',
    async (_, answer, verb, remedy) => {
      const { server, clock, leads, lines } = await started((fake) => {
        fake.intercept = ({ method }) => (method === verb ? answer : undefined);
      });
      await clock.advance(60_000);
      expect(lines).toMatchObject([
        {
          ...{ level: 'warn', message: 'failed to acquire or renew lease, retrying' },
          fields: { error: expect.stringMatching(remedy) as string },
        },
      ]);
      server.intercept = () => undefined;
      await clock.advance(2_000);
      expect(leads()).toBe(true);
    },
  );
});

describe('An elector that leads', () => {
  it('renews every two seconds, by one request that names the version', async () => {
    const { server, clock, leads } = await started();
    const before = server.requests.length;
    await clock.advance(60_000);
    expect(leads()).toBe(true);
    const renewals = server.requests.slice(before);
    expect(renewals).toHaveLength(30);
    for (const { method, lease } of renewals)
      expect({ method, lease }).toEqual({ method: 'PUT', lease: true });
    expect(leaseOf(server)).toMatchObject({ acquireTime: T0, renewTime: '2026-01-01T00:01:00.000000Z' });
  });

  it('knows that it has lost when another one has it', async () => {
    const { server, clock, leads, lines, calls, metrics } = await started();
    expect(await metrics.scrape()).toContain('leader_election_master_status{name="reconstruct"} 1');
    expect(await metrics.scrape()).toContain('reconstruct_leadership_losses_total{name="reconstruct"} 0');
    putLease(server, held);
    await clock.advance(2_000);
    expect(leads()).toBe(false);
    expect(calls).toEqual(['leading', 'lost']);
    expect(lines.slice(1)).toMatchObject([
      { message: 'lost the lease', fields: { why: 'other has it' } },
      { message: 'waiting for other' },
    ]);
    expect(await metrics.scrape()).toContain('leader_election_master_status{name="reconstruct"} 0');
    expect(await metrics.scrape()).toContain('reconstruct_leadership_losses_total{name="reconstruct"} 1');
  });

  it.each([
    ['does not answer', () => never],
    ['is out of reach', () => Promise.reject(new Error('connect ECONNREFUSED'))],
    ['fails', () => failure(500, 'InternalError', 'etcdserver: request timed out')],
  ])(
    'has lost ten seconds after its last renewal where the server %s, and regains it later',
    async (_, answer) => {
      const { server, clock, elector, calls, lines } = await started();
      server.intercept = answer;
      await clock.advance(9_999);
      expect(elector.admits()).toBe(true);
      await clock.advance(1);
      expect(calls).toEqual(['leading', 'lost']);
      expect(elector.admits()).toBe(false);
      const lost = lines.find(({ message }) => message === 'lost the lease');
      expect(String(lost?.fields.why)).toContain('not renewed for 10.0 s: ');
      server.intercept = () => undefined;
      await clock.advance(7_000);
      expect(calls).toEqual(['leading', 'lost', 'leading']);
    },
  );

  it('is unhealthy if it goes on believing that it leads, long after the lease has run out', async () => {
    const { clock, elector } = await started();
    expect(elector.unhealthy()).toEqual([]);
    clock.stopFor(35_001);
    expect(elector.unhealthy()).toEqual(['leader election: the lease was last renewed 35 s ago']);
    await clock.advance(1);
    expect(elector.unhealthy()).toEqual([]);
  });
});

describe('An elector that was stopped for a while and goes on', () => {
  it('admits no write, whatever is asked first, and looks at the lease before it renews', async () => {
    const { server, clock, elector, calls } = await started();
    clock.stopFor(30_000);
    putLease(server, held);
    expect(elector.admits()).toBe(false);
    const before = server.requests.length;
    await clock.advance(1);
    expect(calls).toEqual(['leading', 'lost']);
    expect(server.requests.slice(before).map(({ method }) => method)).toEqual(['GET']);
  });
});

describe('An elector that ends', () => {
  it('closes the fence, then gives the lease back, so that another one has it at its next turn', async () => {
    const { server, clock, elector, calls } = await started();
    const other = candidate({ identity: 'other', transport: server, clock });
    void other.elector.run();
    await clock.advance(5_000);
    let admitted: boolean | undefined;
    server.intercept = () => {
      admitted ??= elector.admits();
      return undefined;
    };
    await elector.release();
    expect(admitted).toBe(false);
    expect(leaseOf(server)).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
    await clock.advance(2_000);
    expect(other.leads()).toBe(true);
    expect(calls).toEqual(['leading']);
  });
});
