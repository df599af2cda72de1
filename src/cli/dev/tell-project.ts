import { CliError } from '../exit.js';
import type { LoadOutcome, ProjectOptions } from './project.js';
import { failureOf, readProject } from './read-project.js';

/** Loads a project and tells the parent process, which has asked for it. */
export async function tellProject(options: ProjectOptions): Promise<void> {
  try {
    await tell({ project: await readProject(options) });
  } catch (error) {
    await tell({ failure: failureOf(error) });
    // Of some mistakes Node tells the place only when it prints what nobody has caught.
    setImmediate(() => {
      throw error;
    });
  }
}

async function tell(outcome: LoadOutcome): Promise<void> {
  if (!process.send) throw new CliError('This command is for "reconstruct dev" alone; run that', 2);
  await new Promise<void>((resolve) => {
    process.send?.(outcome, undefined, undefined, () => {
      resolve();
    });
  });
}
