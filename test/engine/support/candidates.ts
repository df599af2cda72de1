import { resourceType } from '../../../src/contract/resource.js';
import { Elector } from '../../../src/engine/loop/leader.js';
import type { Lease, LeaseSpec } from '../../../src/engine/loop/leader.js';
import type { Transport } from '../../../src/client/transport.js';
import { Metrics } from '../../../src/telemetry/metrics.js';
import { anObject, recordingLogger } from './builders.js';
import type { LogLine } from './builders.js';
import { FakeApiServer } from './fake-api-server.js';
import { settled, VirtualClock } from './virtual-clock.js';

export const LEASE = resourceType({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' });

/** The lease as the server has it. */
export function leaseOf(server: FakeApiServer): LeaseSpec | undefined {
  return (server.get(LEASE, 'ops/reconstruct') as Lease | undefined)?.spec;
}

/** Somebody else writes the lease. */
export function putLease(server: FakeApiServer, spec: LeaseSpec): void {
  server.put(LEASE, anObject(LEASE, 'reconstruct', { namespace: 'ops' }, { spec }));
}

/** One process that wants to lead. */
export interface Candidate {
  readonly elector: Elector;
  readonly metrics: Metrics;
  readonly lines: LogLine[];
  /** `leading` and `lost`, as its callbacks were called. */
  readonly calls: string[];
  readonly leads: () => boolean;
  readonly messages: () => string[];
}

export interface CandidateProps {
  readonly identity?: string;
  readonly transport: Transport;
  readonly clock: VirtualClock;
}

export function candidate({ identity = 'me', transport, clock }: CandidateProps): Candidate {
  const metrics = new Metrics();
  const lines: LogLine[] = [];
  const calls: string[] = [];
  const elector = new Elector({
    ...{ transport, clock, metrics, identity, namespace: 'ops' },
    random: () => 0,
    log: recordingLogger(lines),
    onLeading: () => calls.push('leading'),
    onLost: () => calls.push('lost'),
  });
  return {
    ...{ elector, metrics, lines, calls },
    leads: () => elector.renewedAt !== undefined,
    messages: () => lines.map(({ message }) => message),
  };
}

export interface Started extends Candidate {
  readonly server: FakeApiServer;
  readonly clock: VirtualClock;
}

/** A candidate that has made its first try. */
export async function started(prepare: (server: FakeApiServer) => void = () => undefined): Promise<Started> {
  const server = new FakeApiServer();
  const clock = new VirtualClock();
  prepare(server);
  const one = candidate({ transport: server, clock });
  void one.elector.run();
  await settled();
  return { ...one, server, clock };
}
