import { Command, Option } from 'commander';
import { CHILDREN } from './init/design.js';
import { list } from './options.js';
import { print } from './print.js';
import { untilInterrupted } from './until-interrupted.js';

interface InitOptions {
  readonly group?: string;
  readonly kind?: string;
  readonly children?: readonly string[];
  readonly package?: string;
}

const DEFAULT_CHILDREN = ['Deployment', 'Service'];

/** `reconstruct init`: a project for a kind of one's own. */
export function initCommand(): Command {
  return new Command('init')
    .summary('make a project for a kind of your own')
    .description(
      'Makes a project for a kind of your own, in a new folder: a CRD, a construct, tests, a sample and an image. ' +
        'Nothing is overwritten.',
    )
    .argument('<name>', 'the project and its folder, e.g. guest-book; or . for the folder that you are in')
    .option('--group <group>', 'the group of its API, a domain of yours (default: example.com)')
    .option('--kind <kind>', 'the kind (default: NAME in PascalCase)')
    .addOption(
      new Option(
        '--children <kinds>',
        `what it makes, of ${Object.keys(CHILDREN).join(', ')} (default: ${DEFAULT_CHILDREN.join()})`,
      ).argParser(list),
    )
    .option('--package <source>', 'this package, as a packed file (default: as it was installed)')
    .action((name: string, options: InitOptions) => init(name, options));
}

async function init(name: string, options: InitOptions): Promise<void> {
  const { initProject } = await import('./init/init.js');
  const props = { ...options, children: options.children ?? DEFAULT_CHILDREN };
  await untilInterrupted(async (signal) => {
    await print(await initProject(name, props, signal));
  });
}
