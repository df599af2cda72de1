import { Command } from 'commander';

/** What the user asked for. */
export interface DemoOptions {
  /** A context of the user's kubeconfig. @default - a sandbox of its own */
  readonly context?: string;
  /** Whether the sandbox stays when the demo has ended. */
  readonly keep: boolean;
  /** The image that the sample is to run. @default - the sample's own */
  readonly image?: string;
}

/**
 * Reads the command line, without the two words that start it.
 *
 * **Errors**: commander's, after it has printed what is wrong, or the help that was asked for.
 */
export function parseOptions(args: readonly string[]): DemoOptions {
  const command = new Command('npm run demo --')
    .description('Shows step by step what the operator does with an AppService, and times it')
    .option(
      '--context <name>',
      'use this context of your kubeconfig, in a namespace of its own, not a sandbox',
    )
    .option('--keep', 'leave the sandbox up, and say how to use it', false)
    .option('--image <image>', "image for the sample's pods, for a cluster that cannot pull its nginx:1.7.9")
    .allowExcessArguments(false)
    .showHelpAfterError()
    .exitOverride();
  command.parse(args, { from: 'user' });
  const options = command.opts<DemoOptions>();
  if (options.keep && options.context !== undefined) {
    command.error('error: --keep is for the sandbox; with --context there is none. Leave one of them out.');
  }
  return options;
}
