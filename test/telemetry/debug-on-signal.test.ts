import { expect, it } from 'vitest';
import { debugOnSignal } from '../../src/telemetry/logger.js';
import { VirtualClock } from '../engine/support/virtual-clock.js';
import { logged } from './logged.js';

const MINUTE = 60_000;

/** The messages of a log of this level, with loggers that exist before the signal and one that is made after it. */
async function messages(
  level: 'trace' | 'info',
  act: (tools: { clock: VirtualClock; signal: () => void; tell: (message: string) => void }) => void,
): Promise<string[]> {
  const clock = new VirtualClock();
  const text = await logged({ level, format: 'json' }, (log) => {
    const grandchild = log.child({ controller: 'widget' }).child({ name: 'web' });
    const end = debugOnSignal(log, clock);
    try {
      act({
        clock,
        signal: () => void process.emit('SIGUSR2'),
        tell: (message) => {
          grandchild.debug(`${message}, old`);
          grandchild.child({}).debug(`${message}, new`);
        },
      });
    } finally {
      end();
    }
  });
  // A field of that name would take the place of the line's own level.
  expect(text).not.toMatch(/"level":.*"level":/);
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
}

it('raises the level for ten minutes, for loggers that exist and for new ones', async () => {
  const told = await messages('info', ({ clock, signal, tell }) => {
    tell('before');
    signal();
    tell('during');
    clock.jump(10 * MINUTE);
    tell('after');
  });
  expect(told).toEqual(['log level raised by SIGUSR2', 'during, old', 'during, new', 'log level restored']);
});

it('starts the ten minutes anew with another signal', async () => {
  const told = await messages('info', ({ clock, signal, tell }) => {
    signal();
    clock.jump(9 * MINUTE);
    signal();
    clock.jump(9 * MINUTE);
    tell('still');
    clock.jump(MINUTE);
    tell('no more');
    expect(clock.timers).toBe(0);
  });
  expect(told.filter((message) => !message.startsWith('log level'))).toEqual(['still, old', 'still, new']);
  expect(told.filter((message) => message === 'log level restored')).toHaveLength(1);
});
