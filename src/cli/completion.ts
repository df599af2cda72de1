import { Argument, Command } from 'commander';
import { print } from './print.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** `reconstruct completion`: a script for a shell, made of the commands and options that there are. */
export function completionCommand(): Command {
  return new Command('completion')
    .summary('print a script that completes commands and options')
    .description(
      'Prints a script for a shell, which completes commands, options and their values. ' +
        'bash: source <(reconstruct completion bash); zsh: source <(reconstruct completion zsh); ' +
        'fish: reconstruct completion fish | source. In the file that the shell reads at its start, it stays.',
    )
    .addArgument(new Argument('<shell>', 'whose script').choices(SHELLS))
    .action(async (shell: (typeof SHELLS)[number], _, command: Command) => {
      await print(await script(shell, command.parent ?? command));
    });
}

async function script(shell: (typeof SHELLS)[number], program: Command): Promise<string> {
  const { completedCommand } = await import('./completion/model.js');
  const model = completedCommand(program);
  switch (shell) {
    case 'bash':
      return (await import('./completion/bash.js')).bashCompletion(model);
    case 'zsh':
      return (await import('./completion/zsh.js')).zshCompletion(model);
    case 'fish':
      return (await import('./completion/fish.js')).fishCompletion(model);
  }
}
