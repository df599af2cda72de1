import { CommanderError } from 'commander';
import type { Command } from 'commander';
import type { AnyObject } from '../contract/object.js';
import { showValue } from '../synth/problem.js';
import { suggest } from '../contract/suggest.js';
import { CliError } from './exit.js';

/** What the functionConfig of a function may say. */
export interface FunctionConfig {
  /** Options by their names, as commander has them. */
  readonly given: object;
  /** The text of a policy. @default - none is given */
  readonly policy?: string;
}

/** A list may not name code to run, and a policy is given as text. */
const NOT_HERE: readonly string[] = ['config', 'policy'];

/**
 * Reads options from a ConfigMap, whose keys are their names without dashes; `policy` holds the policy itself. Anything
 * else gives none.
 * @param command that knows the options
 * @throws CliError with exit code 2
 */
export function readFunctionConfig(object: AnyObject | undefined, command: Command): FunctionConfig {
  if (!object || !isConfigMap(object)) return { given: {} };
  const data = Object.entries((object.data ?? {}) as Readonly<Record<string, unknown>>);
  const names = command.options.flatMap(({ long }) => (long ? [long.slice(2)] : []));
  const known = ['policy', ...names.filter((name) => !NOT_HERE.includes(name))];
  const args = data.flatMap(([key, value]) => {
    if (!known.includes(key)) {
      const near = suggest(key, known);
      const remedy = near ? `did you mean ${near}?` : `the keys are ${known.join(', ')}`;
      throw refusal(`data.${key}: there is no such option; ${remedy}`);
    }
    if (typeof value !== 'string')
      throw refusal(`data.${key}: ${showValue(value)} is not text; put it in quotes`);
    return key === 'policy' ? [] : [`--${key}=${value}`];
  });
  const policy = data.find(([key]) => key === 'policy')?.[1];
  return { given: parsed(command, args), ...(typeof policy === 'string' && { policy }) };
}

export function isConfigMap({ apiVersion, kind }: AnyObject): boolean {
  return apiVersion === 'v1' && kind === 'ConfigMap';
}

function parsed(command: Command, args: readonly string[]): object {
  try {
    return command
      .exitOverride()
      .configureOutput({ writeErr: () => undefined })
      .parse(args, { from: 'user' })
      .opts();
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    throw refusal(error.message.replace(/^error: /, ''));
  }
}

function refusal(message: string): CliError {
  return new CliError(`functionConfig: ${message}`, 2);
}
