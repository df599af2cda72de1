import { messageOf } from '../../contract/error.js';
import { aborted, systemClock } from '../../engine/clock.js';
import { CliError } from '../exit.js';
import { paint } from '../paint.js';
import { untilInterrupted } from '../until-interrupted.js';
import { LineView } from './line-view.js';
import { LiveView } from './live-view.js';
import type { ProjectOptions } from './project.js';
import { Screen } from './screen.js';
import { Session } from './session.js';
import { loadStand } from './stand.js';
import type { Stand } from './stand.js';
import type { View } from './view.js';

const clock = systemClock;

/**
 * Runs until it is interrupted; a terminal that is closed interrupts too.
 * @throws CliError with exit code 2 where there is no sandbox in this package, 3 where it can't be started
 */
export async function runDev(options: ProjectOptions): Promise<void> {
  const { startGuard, startStand } = await loadStand();
  await untilInterrupted(
    async (signal) => {
      const view = openView();
      signal.addEventListener('abort', () => {
        view.close();
      });
      const guard = await startGuard();
      let up: Stand | undefined;
      view.told('The sandbox starts');
      const stand = startStand((line) => {
        if (!signal.aborted) view.told(line);
      }).then((started) => (up = started));
      const session = new Session({ ...{ options, view, clock, guard, stand, signal } });
      try {
        void session.begin();
        await Promise.race([aborted(signal), stand.then(() => aborted(signal))]);
      } catch (error) {
        throw new CliError(`The sandbox can't be started: ${messageOf(error)}`, 3);
      } finally {
        view.close();
        await session.close();
        // Of a sandbox that isn't up yet nobody can say how far it is; whatever there is of it ends with this process.
        if (signal.aborted && !up) process.exit();
        await up?.stop();
        await guard.release();
      }
    },
    ['SIGINT', 'SIGTERM', 'SIGHUP'],
  );
}

function openView(): View {
  const { stdout } = process;
  // A terminal that was closed takes nothing any more, which is no reason to leave anything behind.
  stdout.on('error', () => undefined);
  if (!stdout.isTTY) return new LineView({ clock, write: (text) => stdout.write(text) });
  const view = new LiveView({ clock, paint, screen: new Screen(stdout) });
  const redraw = (): void => {
    view.redraw();
  };
  stdout.on('resize', redraw);
  // After Ctrl-Z and fg.
  process.on('SIGCONT', redraw);
  process.on('exit', () => {
    view.close();
  });
  return view;
}
