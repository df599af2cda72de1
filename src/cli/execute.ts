import { CommanderError } from 'commander';
import type { Command } from 'commander';
import { OperatorError } from '../contract/error.js';
import { AddressError } from '../telemetry/address-error.js';
import { BUG, CliError } from './exit.js';
import { plain } from './plain.js';

/** Bad input or usage. */
const USAGE = 2;

/** Runs a command with the arguments of this process, whose exit code becomes the command's. */
export async function execute(command: Command): Promise<void> {
  try {
    checkNode();
    await throwInsteadOfExit(command).parseAsync(process.argv);
  } catch (error) {
    process.exitCode = exitCodeFor(error);
  }
}

/** Errors that are meant for the user are told without a stack; anything else is a bug, and told with one. */
function exitCodeFor(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : USAGE;
  if (error instanceof CliError) {
    for (const line of error.lines) process.stderr.write(`${plain(line)}\n`);
    return error.exitCode;
  }
  if (error instanceof OperatorError || error instanceof AddressError) {
    process.stderr.write(`${plain(error.message)}\n`);
    return USAGE;
  }
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return BUG;
}

/** Commands made on their own don't inherit this. */
function throwInsteadOfExit(command: Command): Command {
  command.exitOverride();
  command.commands.forEach(throwInsteadOfExit);
  return command;
}

/** What undici 8 and client-node 2 need; older ones fail late and without a word of this. */
function checkNode(): void {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 19)) return;
  throw new CliError(`Node 22.19 or newer is needed, this is ${process.versions.node}`, USAGE);
}
