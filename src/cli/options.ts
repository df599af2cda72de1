import { InvalidArgumentError, Option } from 'commander';
import type { Command } from 'commander';
import type { FlagValues, KindFlag } from '../contract/kind.js';
import { builtInFlags } from '../kinds/flags.js';
import { durationSeconds } from '../kinds/job-watcher/duration.js';

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

/** Values of the options that several commands share. */
export interface SharedOptions {
  readonly config?: string;
  readonly kinds?: readonly string[];
  readonly policy?: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly namespace?: string;
  readonly recursive?: boolean;
  readonly watchNamespace?: readonly string[];
  readonly operatorNamespace?: string;
}

/** Adds options that several commands share, in this order. A text in place of `true` describes the default. */
export function withShared(
  command: Command,
  names: Readonly<Partial<Record<keyof SharedOptions, true | string>>>,
): Command {
  const by = (name: keyof SharedOptions, usual: string): string =>
    typeof names[name] === 'string' ? names[name] : usual;
  const shared: Readonly<Record<keyof SharedOptions, () => Command>> = {
    config: () =>
      command.option('--config <file>', `kinds of your own (default: ${CONFIG_FILE}, if it exists)`),
    kinds: () =>
      command.option(
        '--kinds <names>',
        'only these kinds, e.g. appservice (default: all but those on request)',
        list,
      ),
    policy: () =>
      command.option('--policy <file>', `what an admin allows (default: ${by('policy', 'everything')})`),
    kubeconfig: () =>
      command.option('--kubeconfig <file>', 'default: $KUBECONFIG, ~/.kube/config, the cluster it runs in'),
    context: () => command.option('--context <name>', 'context of the kubeconfig (default: its current one)'),
    namespace: () =>
      command.option(
        '-n, --namespace <name>',
        `the namespace of custom resources that name none${by('namespace', '')}`,
        namespace,
      ),
    recursive: () => command.option('-R, --recursive', 'look into subfolders too'),
    watchNamespace: () =>
      command.option(
        '--watch-namespace <namespaces>',
        'only these; Roles in them suffice then (default: all)',
        namespaces,
      ),
    operatorNamespace: () =>
      command.option('--operator-namespace <name>', by('operatorNamespace', ''), namespace),
  };
  for (const name of Object.keys(names)) shared[name as keyof SharedOptions]();
  return command;
}

/** Returns the option of the form in which a command prints. */
export function outputFormat(): Option {
  return new Option('-o, --output <format>', 'for people or for programs')
    .choices(['text', 'json'])
    .default('text');
}

/** Describes the arguments that name custom resources. */
export const SOURCES = 'files, folders with .yaml, .yml and .json files, or - for standard input';

/** Describes the default of `--namespace` where a cluster is asked. */
export const OF_CONTEXT = " (default: the context's)";

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
