import { join } from 'node:path';
import type { DemoCluster, Stage } from './cluster.js';
import { Controller } from './controller.js';
import { readableLogLine } from './log-line.js';
import { shellCommand } from './text.js';
import { until } from './until.js';

/** Starts the controller and waits until it says that it works. */
export async function startController(stage: Stage, cluster: DemoCluster): Promise<Controller> {
  const { show, folder, watchdog, cleanUp, signal } = stage;
  show.say(
    'The operator is one process. It lists and watches AppServices and what belongs to them, and starts to work once ' +
      'it has the whole picture.',
  );
  const args = [
    ...['run', '--kinds', 'appservice', ...cluster.controllerArguments],
    ...['--metrics-bind-address', '0', '--health-bind-address', '0'],
  ];
  show.command(shellCommand(['reconstruct', ...args]));
  const controller = await Controller.start({ args, logFile: join(folder, 'controller.log'), watchdog });
  cleanUp.add('stop the controller', () => controller.stop());
  await until(
    'the controller to say "Controller started"',
    () => {
      const log = controller.log();
      const started = log.some((line) => line.includes('"Controller started"'));
      return started ? { found: true } : { seen: log.at(-1) ?? 'nothing in its log' };
    },
    { deadlineMilliseconds: cluster.deadlineMilliseconds, controller, signal },
  );
  show.output(controller.log().map(readableLogLine).join('\n'));
  show.seen(`It runs, as process ${controller.pid}.`);
  return controller;
}
