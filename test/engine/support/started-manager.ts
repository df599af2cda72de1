import { onTestFinished } from 'vitest';
import type { Controller } from '../../../src/contract/controller.js';
import { Manager } from '../../../src/engine/loop/manager.js';
import type { ManagerProps } from '../../../src/engine/loop/manager.js';
import { Metrics } from '../../../src/telemetry/metrics.js';
import { recordingLogger } from './builders.js';
import type { LogLine } from './builders.js';
import { FakeApiServer } from './fake-api-server.js';
import { settled, VirtualClock } from './virtual-clock.js';

/** Whole engine on virtual time, before a fake API server. */
export interface StartedManager {
  readonly server: FakeApiServer;
  readonly clock: VirtualClock;
  readonly manager: Manager;
  readonly metrics: Metrics;
  readonly lines: LogLine[];
  /** Writes other than the lease's, of one type if it is named by its plural. */
  readonly writes: (plural?: string) => string[];
  readonly stop: () => Promise<void>;
}

interface Props extends Omit<Partial<ManagerProps>, 'clock' | 'transport'> {
  readonly controllers: readonly Controller[];
  readonly server?: FakeApiServer;
  readonly clock?: VirtualClock;
}

export async function startedManager({
  server = new FakeApiServer(),
  clock = new VirtualClock(),
  ...props
}: Props): Promise<StartedManager> {
  const lines: LogLine[] = [];
  const metrics = new Metrics();
  const manager = new Manager({
    ...{ transport: server, clock, metrics, log: recordingLogger(lines), instance: 'pod-1' },
    ...{ random: () => 0, freeze: true },
    ...props,
  });
  const stopping = new AbortController();
  const running = manager.run(stopping.signal);
  const stop = async (): Promise<void> => {
    stopping.abort();
    await running;
  };
  onTestFinished(async () => {
    server.intercept = () => undefined;
    await stop();
  });
  for (let turn = 0; turn < 20; turn++) await settled();
  const writes = (plural = ''): string[] =>
    server.requests
      .filter(({ method, lease, path }) => method !== 'GET' && !lease && path.includes(plural))
      .map(({ method, path }) => `${method} ${path}`);
  return { server, clock, manager, metrics, lines, writes, stop };
}
