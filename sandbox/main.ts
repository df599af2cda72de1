import { Command } from 'commander';
import { down, kubeconfig, status, up } from './commands.js';

const program = new Command('npm run sandbox --')
  .description('A real Kubernetes control plane on loopback, for development')
  .showHelpAfterError();

const print = (text: string): void => {
  process.stdout.write(`${text}\n`);
};

program
  .command('up')
  .description('start a sandbox in the background')
  .option('--name <name>', 'name of the sandbox', 'default')
  .option('--api-only', 'only etcd and the API server: no controllers, no nodes', false)
  .action(async ({ name, apiOnly }: { name: string; apiOnly: boolean }) => {
    print(await up(name, apiOnly));
  });

program
  .command('down')
  .description('stop a sandbox and remove all of it')
  .option('--name <name>', 'name of the sandbox', 'default')
  .action(async ({ name }: { name: string }) => {
    print(await down(name));
  });

program
  .command('status')
  .description('say which sandboxes run')
  .option('--name <name>', 'name of one sandbox (default: all)')
  .action(async ({ name }: { name?: string }) => {
    print(await status(name));
  });

program
  .command('kubeconfig')
  .description('print the path of a kubeconfig')
  .argument('[user]', 'admin or operator', 'admin')
  .option('--name <name>', 'name of the sandbox', 'default')
  .action(async (user: string, { name }: { name: string }) => {
    print(await kubeconfig(name, user));
  });

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
