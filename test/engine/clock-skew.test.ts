import { describe, expect, it } from 'vitest';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import type { JobWatcherStatus } from '../../src/kinds/job-watcher/spec.js';
import { render } from '../../src/render/renderer.js';
import { anObject } from './support/builders.js';
import type { ApiRequest, ApiResponse, ApiStream } from '../../src/client/transport.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { startedManager } from './support/started-manager.js';
import { VirtualClock } from './support/virtual-clock.js';

const JOB = { apiVersion: 'batch/v1', kind: 'Job', plural: 'jobs', namespaced: true };
const HOUR = 3_600_000;
let uids = 0;

/** An API server that gives the time with its answers: the time that passes, whatever our wall clock is set to. */
class PunctualServer extends FakeApiServer {
  givesTime = true;

  constructor(private readonly clock: VirtualClock) {
    super();
  }

  private get date(): { dateMilliseconds?: number } {
    return this.givesTime ? { dateMilliseconds: this.clock.monotonic() } : {};
  }

  override async request(request: ApiRequest): Promise<ApiResponse> {
    return { ...(await super.request(request)), ...this.date };
  }

  override async stream(request: ApiRequest): Promise<ApiStream> {
    return { ...(await super.stream(request)), ...this.date };
  }
}

describe.each([
  ['forward', HOUR],
  ['back', -HOUR],
])('A JobWatcher whose operator has its clock set %s by an hour', (_, shift) => {
  /** Jobs that finished at the start, and a JobWatcher that deletes them two hours later. */
  async function setup(more = {}) {
    const clock = new VirtualClock();
    const start = clock.monotonic();
    const server = new PunctualServer(clock);
    const finished = { type: 'Complete', status: 'True', lastTransitionTime: new Date(start).toISOString() };
    const addJob = (name: string): void => {
      server.put(JOB, anObject(JOB, name, { uid: `uid-${++uids}` }, { status: { conditions: [finished] } }));
    };
    const deletions: string[] = [];
    const onDelete = { call: () => undefined };
    server.intercept = ({ method, path }) => {
      if (method === 'DELETE') {
        deletions.push(`${path.split('/').at(-1)} ${((clock.monotonic() - start) / HOUR).toFixed(2)}`);
        onDelete.call();
      }
      // Its streams are silent for too long, so it is asked whether it is there.
      return ['/version', '/readyz'].includes(path) ? { status: 200, body: {} } : undefined;
    };
    addJob('a');
    const watcher = { spec: { completedTTL: '2h', ...more }, status: { observedGeneration: -1 } };
    server.put(jobWatcher.type, anObject(jobWatcher.type, 'sweeper', { generation: 1 }, watcher));
    await startedManager({ server, clock, controllers: jobWatcher.controllers({ render }), freeze: false });
    return { clock, server, addJob, deletions, onDelete };
  }

  it('deletes each Job when its time has come by the API server, though that gives no time meanwhile', async () => {
    const { clock, server, addJob, deletions } = await setup();
    await clock.advance(HOUR);
    server.givesTime = false;
    clock.setWallBy(shift);
    addJob('b');
    await clock.advance(0.99 * HOUR);
    expect(deletions).toEqual([]);
    await clock.advance(2 * HOUR);
    expect(deletions).toEqual(['a 2.00', 'b 2.00']);
  });

  it('keeps to the times of its limits and of its status, also where it happens in the middle of a run', async () => {
    const { clock, server, addJob, deletions, onDelete } = await setup({
      limits: { maxPerRun: 1, mode: 'Throttle' },
      frequency: '1h',
    });
    addJob('b');
    onDelete.call = () => {
      if (deletions.length === 1) clock.setWallBy(shift);
      return undefined;
    };
    await clock.advance(2.5 * HOUR);
    const { status } = server.get(jobWatcher.type, 'shop/sweeper') as { status?: JobWatcherStatus };
    expect(status?.lastFinished).toBe(
      new Date(clock.monotonic() - 0.5 * HOUR).toISOString().replace('.000', ''),
    );
    await clock.advance(2 * HOUR);
    expect(deletions).toEqual(['a 2.00', 'b 3.00']);
  });
});
