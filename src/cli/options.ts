import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import type { Command as Commander } from 'commander';
import { messageOf } from '../contract/error.js';
import { parseLabelSelector } from '../author/label-selector.js';
import type { FlagValues, KindFlag } from '../contract/kind.js';
import { INSTALLATION_LABELS } from '../install/names.js';
import { MONITORING_PARTS } from '../install/props.js';
import type { MonitoringPart } from '../install/props.js';
import { builtInFlags, flagsByKind } from '../kinds/flags.js';
import { CONFIG_FILE } from './config.js';
import { packageVersion } from './package.js';

/** Options of each command that has a cluster. */
export interface ClusterOptions {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly as?: string;
  readonly asGroup?: readonly string[];
  /** In milliseconds. */
  readonly requestTimeout?: number;
  readonly verbose?: boolean;
}

export interface SharedOptions extends ClusterOptions {
  readonly config?: string;
  readonly kinds?: readonly string[];
  readonly policy?: string;
  readonly namespace?: string;
  readonly recursive?: boolean;
  readonly watchNamespace?: readonly string[];
  readonly operatorNamespace?: string;
}

export const CONFIG = new Option(
  '--config <file>',
  `kinds of your own (default: ${CONFIG_FILE}, if it exists)`,
);
export const KINDS = new Option(
  '--kinds <names>',
  'only these kinds, e.g. appservice (default: all but those on request)',
).argParser(list);
export const WATCH_NAMESPACE = new Option(
  '--watch-namespace <namespaces>',
  'only these; Roles in them suffice then (default: all)',
).argParser((value, previous: readonly string[] | undefined) => list(value, previous).map(namespace));
export const CLUSTER: readonly Option[] = [
  new Option('--kubeconfig <file>', 'default: $KUBECONFIG, ~/.kube/config, the cluster it runs in'),
  new Option('--context <name>', 'context of the kubeconfig (default: its current one)'),
  new Option('--as <user>', 'the user to impersonate'),
  new Option('--as-group <group>', 'a group of that user; may be given several times').argParser(several),
  new Option('--request-timeout <duration>', 'how long each answer may take (default: 45s)').argParser(
    milliseconds,
  ),
  new Option('-v, --verbose', 'print each request to standard error, without credentials and bodies'),
].map((option) => option.helpGroup('Options of the cluster:'));

export function policyOption(usual = 'everything'): Option {
  return new Option('--policy <file>', `what an admin allows (default: ${usual})`);
}

export function namespaceOption(usual = ''): Option {
  const description = `the namespace of custom resources that name none${usual}`;
  return new Option('-n, --namespace <name>', description).argParser(namespace);
}

export function operatorOption(description: string): Option {
  return new Option('--operator-namespace <name>', description).argParser(namespace);
}

export function withOptions<C extends Commander>(command: C, ...options: readonly Option[]): C {
  for (const option of options) command.addOption(option);
  return command;
}

/** Adds the options of `fn`, which may come from the ConfigMap of a list, too. */
export function withFnOptions<C extends Commander>(command: C): C {
  return withOptions(command, namespaceOption(), CONFIG, KINDS, policyOption(), ...kindOptions());
}

/** Returns the options of the built-in kinds. The help of a project that leaves these kinds out doesn't show them. */
export function kindOptions(): Option[] {
  const isHidden = leavesOutBuiltIns();
  return Object.entries(flagsByKind).flatMap(([kind, flags]) =>
    flags.map((flag) => optionOf(flag).helpGroup(`Options of ${kind}:`).hideHelp(isHidden)),
  );
}

/** Reads the text alone: `--help` runs no code of a project. */
function leavesOutBuiltIns(): boolean {
  try {
    const lines = readFileSync(resolve(CONFIG_FILE), 'utf8').split('\n');
    return lines.some((line) => /\bbuiltIn\s*:\s*false\b/.test(line.replace(/\/\/.*/, '')));
  } catch {
    return false;
  }
}

/** Returns the values that were given for the flags of kinds, by the flags' names. */
export function kindFlagValues(options: object): FlagValues {
  const given = options as Readonly<Record<string, FlagValues[string] | undefined>>;
  const values = builtInFlags.map((flag) => [flag.name, given[optionOf(flag).attributeName()]]);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined)) as FlagValues;
}

function optionOf({ name, value, description, list: isList, check }: KindFlag): Option {
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

export function several(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value];
}

export function boolean(value: string): boolean {
  if (value !== 'true' && value !== 'false') throw new InvalidArgumentError('Write true or false.');
  return value === 'true';
}

/** Splits `a,b`; used for options that may also be given several times. */
export function list(value: string, previous: readonly string[] = []): string[] {
  const items = value.split(',').map((item) => item.trim());
  if (items.includes('')) throw new InvalidArgumentError('Write names separated by commas.');
  return [...previous, ...items];
}

export function labelSelector(value: string): string {
  try {
    parseLabelSelector(value);
  } catch (error) {
    throw new InvalidArgumentError(messageOf(error));
  }
  return value;
}

export function namespace(value: string): string {
  if (value.length > 63 || !/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(value))
    throw new InvalidArgumentError(`${value} can't name a namespace.`);
  return value;
}

export function secretName(value: string): string {
  if (value.length > 253 || !/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(value))
    throw new InvalidArgumentError(`${value} can't name a Secret.`);
  return value;
}

export function positiveInteger(value: string): number {
  if (!/^[1-9]\d{0,5}$/.test(value)) throw new InvalidArgumentError('Write a whole number, 1 or more.');
  return Number(value);
}

export function count(value: string): number {
  if (!/^\d{1,6}$/.test(value)) throw new InvalidArgumentError('Write a whole number, 0 or more.');
  return Number(value);
}

const UNIT_MILLISECONDS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Reads a duration as Go writes it, e.g. `5m` or `1m30s`. */
export function milliseconds(value: string): number {
  const terms = [...value.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/gy)];
  const sum = terms.reduce(
    (all, [, number, unit = '']) => all + Number(number) * (UNIT_MILLISECONDS[unit] ?? 0),
    0,
  );
  if (sum < 1 || terms.map(([term]) => term).join('') !== value)
    throw new InvalidArgumentError('Write a duration such as 90s, 5m or 1h.');
  return Math.round(sum);
}

export function image(value: string): string {
  const reference = /^[a-z0-9][\w.-]*(:\d+)?(\/[\w.-]+)*(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$/i;
  if (!reference.test(value)) throw new InvalidArgumentError(`${value} can't name an image.`);
  const [first = ''] = value.split('/', 1);
  const start = value.includes('/') && (first === 'localhost' || /[.:]/.test(first)) ? first.length : 0;
  const path = value.slice(start).replace(/^[^:@]+/, (text) => text.toLowerCase());
  const lower = value.slice(0, start) + path;
  if (lower !== value)
    throw new InvalidArgumentError(`${value}: a repository has no capital letters; write ${lower}.`);
  if (!/(:[\w][\w.-]*|@sha256:[0-9a-f]{64})$/.test(value.slice(value.lastIndexOf('/') + 1)))
    throw new InvalidArgumentError(
      `${value} may be another image tomorrow: add a tag or a digest, as in ${value}:${packageVersion()}.`,
    );
  return value;
}

export function monitoringParts(value: string): MonitoringPart[] {
  const named = list(value);
  const unknown = named.find((name) => !MONITORING_PARTS.some((part) => part === name));
  if (unknown !== undefined)
    throw new InvalidArgumentError(`There is no ${unknown}: name some of ${MONITORING_PARTS.join(', ')}.`);
  return MONITORING_PARTS.filter((part) => named.includes(part));
}

const NAME = '[A-Za-z0-9]([-\\w.]{0,61}[A-Za-z0-9])?';
const LABEL = new RegExp(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?${NAME}=(${NAME})?$`);

export function labels(value: string): Record<string, string> {
  const wanted = list(value).map((label) => {
    if (!LABEL.test(label)) throw new InvalidArgumentError(`${label} is no label: write name=value.`);
    const [name = '', text = ''] = label.split('=');
    if (INSTALLATION_LABELS.includes(name))
      throw new InvalidArgumentError(`${name} is set by the installation itself: leave it out.`);
    return [name, text] as const;
  });
  return Object.fromEntries(wanted);
}

export function url(value: string): string {
  if (!URL.canParse(value) || !/^https?:/.test(value))
    throw new InvalidArgumentError(`${value} is no URL: write one that begins with https://.`);
  return value.replace(/(?<!\/)\/+$/, '');
}
