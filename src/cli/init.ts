import { Command, Option } from 'commander';
import { CHILDREN } from './init/options.js';
import type { ProjectOptions } from './init/project.js';
import { list } from './options.js';
import { print } from './output.js';
import { untilInterrupted } from './exit.js';

const DEFAULT_CHILDREN = ['Deployment', 'Service'];

/** `reconstruct init`: creates a project for a new kind. */
export function initCommand(): Command {
  return new Command('init')
    .summary('create a project for a kind of your own')
    .description(
      'Creates a project for a kind of your own, in a new folder: a CRD, a construct, tests, a sample and an image. ' +
        'Nothing is overwritten.',
    )
    .argument('<name>', 'the project and its folder, e.g. guest-book; or . for the current folder')
    .option('--group <group>', 'the group of its API, a domain of yours (default: example.com)')
    .option('--kind <kind>', 'the kind (default: NAME in PascalCase)')
    .addOption(
      new Option(
        '--children <kinds>',
        `what it creates, of ${CHILDREN.join(', ')} (default: ${DEFAULT_CHILDREN.join()})`,
      ).argParser(list),
    )
    .option('--package <source>', 'this package, as a packed file (default: as it was installed)')
    .action(async (name: string, options: Partial<ProjectOptions>) => {
      const { createProject } = await import('./init/project.js');
      await untilInterrupted(async (signal) => {
        await print(await createProject(name, { children: DEFAULT_CHILDREN, ...options }, signal));
      });
    });
}
