import { CommanderError } from 'commander';
import type { Command } from 'commander';
import { OperatorError } from '../contract/error.js';
import { CliError, printError } from './output.js';

/** Exit code of a bug: `EX_SOFTWARE` of sysexits.h. */
export const BUG = 70;

/** Runs a command with the arguments of this process, and sets the exit code. */
export async function execute(command: Command): Promise<void> {
  try {
    await throwInsteadOfExit(command).parseAsync(process.argv);
  } catch (error) {
    process.exitCode = reported(error);
  }
}

/** Prints errors that are meant for the user without a stack; any other is a bug, and has one. */
function reported(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (error instanceof CliError || error instanceof OperatorError) {
    printError(error.message);
    return error instanceof CliError ? error.exitCode : 2;
  }
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return BUG;
}

/** Subcommands that are added later don't inherit this. */
function throwInsteadOfExit(command: Command): Command {
  command.exitOverride();
  command.commands.forEach(throwInsteadOfExit);
  return command;
}

interface InterruptOptions {
  /** @default SIGINT and SIGTERM */
  readonly signals?: readonly NodeJS.Signals[];
  /** Called with a signal before it interrupts the work, or, as the second one, ends the process. */
  readonly onSignal?: (signal: NodeJS.Signals, isSecond: boolean) => void;
}

/** Works until it is done, or until Ctrl-C or SIGTERM; a second one ends the process the hard way. */
export async function untilInterrupted(
  work: (signal: AbortSignal) => Promise<void>,
  { signals = ['SIGINT', 'SIGTERM'], onSignal }: InterruptOptions = {},
): Promise<void> {
  const interrupted = new AbortController();
  const leave = (): void => {
    for (const name of signals) process.off(name, stop);
  };
  const stop = (name: NodeJS.Signals): void => {
    const isSecond = interrupted.signal.aborted;
    onSignal?.(name, isSecond);
    interrupted.abort();
    if (!isSecond) return;
    leave();
    process.kill(process.pid, name);
  };
  for (const name of signals) process.on(name, stop);
  // Sockets and timers of the engine don't keep the process alive.
  const keepAlive = setInterval(() => undefined, 2 ** 30);
  try {
    await work(interrupted.signal);
  } finally {
    clearInterval(keepAlive);
    leave();
  }
}
