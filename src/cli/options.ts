import { InvalidArgumentError, Option } from 'commander';
import type { Command } from 'commander';
import type { FlagValues, KindFlag } from '../contract/kind.js';
import { builtInFlags } from '../kinds/flags.js';
import { durationSeconds } from '../kinds/job-watcher/duration.js';
import { LOG_FORMATS, LOG_LEVELS } from '../telemetry/logger.js';

/** Loaded from the working directory when no other file is named. */
export const CONFIG_FILE = 'reconstruct.config.mjs';

/** Splits `a,b`; used for options that may also be given several times. */
export function list(value: string, previous: readonly string[] | undefined): string[] {
  const items = value.split(',').map((item) => item.trim());
  if (items.includes('')) throw new InvalidArgumentError('Write names separated by commas.');
  return [...(previous ?? []), ...items];
}

/** Checks the name of a namespace, for `argParser`. */
export function namespace(value: string): string {
  if (value.length > 63 || !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(value))
    throw new InvalidArgumentError(`${value} can't name a namespace.`);
  return value;
}

/** Splits and checks names of namespaces, for `argParser`. */
export function namespaces(value: string, previous: readonly string[] | undefined): string[] {
  return list(value, previous).map(namespace);
}

export function positiveInteger(value: string): number {
  if (!/^[1-9]\d{0,5}$/.test(value)) throw new InvalidArgumentError('Write a whole number, 1 or more.');
  return Number(value);
}

/** Reads a duration as Go writes it, e.g. `5m` or `1m30s`, in milliseconds; for `argParser`. */
export function milliseconds(value: string): number {
  const seconds = durationSeconds(value);
  if (seconds === undefined || seconds === 0)
    throw new InvalidArgumentError('Write a duration such as 90s, 5m or 1h.');
  return seconds * 1000;
}

/** Options that several commands share; each call makes new ones. */
export const sharedOptions = {
  config: () => new Option('--config <file>', `kinds of your own (default: ${CONFIG_FILE}, if it exists)`),
  kinds: () =>
    new Option(
      '--kinds <names>',
      'only these kinds, e.g. appservice (default: all but those on request)',
    ).argParser(list),
  policy: (byDefault = 'everything') =>
    new Option('--policy <file>', `what an admin allows (default: ${byDefault})`),
  kubeconfig: () =>
    new Option('--kubeconfig <file>', 'default: $KUBECONFIG, ~/.kube/config, the cluster it runs in'),
  context: () => new Option('--context <name>', 'context of the kubeconfig (default: its current one)'),
  watchNamespace: () =>
    new Option(
      '--watch-namespace <namespaces>',
      'only these; Roles in them suffice then (default: all)',
    ).argParser(namespaces),
  logLevel: () => new Option('--log-level <level>', 'how much is logged').choices(LOG_LEVELS).default('info'),
  logFormat: () =>
    new Option('--log-format <format>', 'how it is logged').choices(LOG_FORMATS).default('json'),
};

/** Adds the flags of the kinds that come with the command. */
export function addKindFlags(command: Command): Command {
  for (const flag of builtInFlags) command.addOption(optionOf(flag));
  return command;
}

/** Returns the values that were given for the flags of kinds, by the flags' names. */
export function kindFlagValues(options: object): FlagValues {
  const given = options as Readonly<Record<string, FlagValues[string] | undefined>>;
  const values = builtInFlags.map((flag) => [flag.name, given[optionOf(flag).attributeName()]]);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined)) as FlagValues;
}

/** Returns the option of a kind's flag. */
export function optionOf({ name, value, description, list: isList, check }: KindFlag): Option {
  const checked = (text: string): string => {
    const why = check?.(text);
    if (why !== undefined) throw new InvalidArgumentError(why);
    return text;
  };
  const option = new Option(`${name} <${value}>`, description);
  return isList
    ? option.argParser((text, previous: readonly string[] | undefined) => list(text, previous).map(checked))
    : option.argParser(checked);
}
