import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { elapsed } from '../../src/client/clock.js';
import { Elector } from '../../src/engine/loop/leader.js';
import { silentLogger } from '../../src/telemetry/logger.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { FakeApiServer } from './support/fake-api-server.js';
import { SimulatedProcess } from './support/simulated-process.js';
import { settled, VirtualClock } from './support/virtual-clock.js';

interface Trouble {
  readonly who: number;
  readonly afterMilliseconds: number;
  readonly kind: 'stop' | 'suspend' | 'ahead' | 'back' | 'end';
  readonly milliseconds: number;
}

const troubles: fc.Arbitrary<Trouble[]> = fc.array(
  fc.record({
    who: fc.integer({ min: 0, max: 2 }),
    afterMilliseconds: fc.integer({ min: 0, max: 12_000 }),
    kind: fc.constantFrom('stop', 'suspend', 'ahead', 'back', 'end'),
    milliseconds: fc.integer({ min: 1, max: 40_000 }),
  }),
  { maxLength: 8 },
);

/** From none to one that is longer than any timeout; some are lost. */
const delays = fc.infiniteStream(
  fc.oneof(
    { weight: 8, arbitrary: fc.integer({ min: 0, max: 100 }) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 12_000 }) },
    { weight: 1, arbitrary: fc.constant(-1) },
  ),
);

const machines = fc.tuple(
  ...Array.from({ length: 3 }, () =>
    fc.record({
      skew: fc.integer({ min: -3_600_000, max: 3_600_000 }),
      rate: fc.double({ min: 0.9, max: 1.1, noNaN: true }),
    }),
  ),
);

describe('Electors on machines whose clocks differ, that are stopped at any time, before a server that is slow', () => {
  it('never admit writes of two at once, and one of them leads once all is well', async () => {
    let terms = 0;
    await fc.assert(
      fc.asyncProperty(machines, troubles, delays, async (clocks, schedule, delay) => {
        const world = new VirtualClock();
        const server = new FakeApiServer();
        const suspends = schedule.some(({ kind }) => kind === 'suspend');
        let well = false;
        const processes = clocks.map((props, index) => {
          const process = new SimulatedProcess({ world, ...props });
          const transport = process.wire(server, () => (well ? 1 : (delay.next().value as number)));
          const elector = new Elector({
            ...{ transport, namespace: 'ops', identity: `process-${index}`, clock: process },
            ...{ random: () => 0.5, log: silentLogger, metrics: new Metrics() },
            onLeading: () => terms++,
            onLost: () => undefined,
          });
          void elector.run();
          return { process, elector };
        });
        // Without asking `admits`, which has effects, in processes that can't do anything at the moment.
        const admitting = (): string[] =>
          processes.flatMap(({ process, elector: { renewedAt } }, index) =>
            renewedAt && elapsed(process, renewedAt) < 10_000 ? [`process-${index}`] : [],
          );
        const goOn = async (milliseconds: number): Promise<void> => {
          for (let passed = 0; passed < milliseconds; passed += 250) {
            await world.advance(Math.min(250, milliseconds - passed));
            expect(admitting().length).toBeLessThanOrEqual(1);
          }
        };
        for (const { who, afterMilliseconds, kind, milliseconds } of schedule) {
          await goOn(afterMilliseconds);
          const { process, elector } = processes[who]!;
          if (kind === 'stop' || kind === 'suspend') process.stopFor(milliseconds, kind === 'suspend');
          else if (kind === 'ahead') process.setWallBy(milliseconds);
          // Setting it back while the machine is suspended is what can't be found out.
          else if (kind === 'back') process.setWallBy(suspends ? 0 : -milliseconds);
          else if (who > 0) void elector.release();
        }
        await goOn(20_000);
        well = true;
        await goOn(100_000);
        expect(admitting()).toHaveLength(1);
        for (const { elector } of processes) void elector.release();
        await settled();
      }),
      { numRuns: 60 },
    );
    // Most of the time, leadership has really changed hands.
    expect(terms).toBeGreaterThan(60);
  }, 120_000);
});
