import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { InvalidArgumentError, Option } from 'commander';
import { messageOf } from '../contract/error.js';
import { parseLabelSelector } from '../values/label-selector.js';
import type { FlagValues, KindFlag } from '../contract/kind.js';
import { INSTALLATION_LABELS } from '../install/names.js';
import { MONITORING_PARTS } from '../install/props.js';
import type { MonitoringPart } from '../install/props.js';
import { builtInFlags, flagsByKind } from '../kinds/flags.js';
import { CONFIG_FILE } from './config.js';
import { packageVersion } from './package.js';
import type { OnUpgrade } from './upgrades.js';

/** Options of each command that has a cluster. */
export interface ClusterOptions {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly as?: string;
  readonly asGroup?: readonly string[];
  /** Maximum time for a response, in milliseconds. */
  readonly requestTimeout?: number;
  readonly verbose?: boolean;
}

export interface SharedOptions extends ClusterOptions {
  readonly config?: string;
  readonly kinds?: readonly string[];
  readonly policy?: string;
  readonly settings?: string;
  readonly namespace?: string;
  readonly recursive?: boolean;
  readonly watchNamespace?: readonly string[];
  readonly operatorNamespace?: string;
}

/** Returns an option. @param parse reads its value; takes what it returned for an earlier one on the command line */
export function flag<T>(
  flags: string,
  description: string,
  parse?: (value: string, previous: T | undefined) => T,
  initial?: T,
): Option {
  const option = new Option(flags, description).default(initial);
  return parse ? option.argParser<T | undefined>(parse) : option;
}

export const CONFIG = flag('--config <file>', `kinds of your own (default: ${CONFIG_FILE}, if it exists)`);
export const KINDS = flag(
  '--kinds <names>',
  'only these kinds, e.g. appservice (default: all but those on request)',
  list,
);
export const WATCH_NAMESPACE = flag(
  '--watch-namespace <namespaces>',
  'only these, for which Roles are enough (default: all)',
  (value, previous?: readonly string[]) => list(value, previous).map(namespace),
);
export const CLUSTER: readonly Option[] = [
  flag('--kubeconfig <file>', 'default: $KUBECONFIG, ~/.kube/config, the cluster it runs in'),
  flag('--context <name>', 'context of the kubeconfig (default: its current one)'),
  flag('--as <user>', 'the user to impersonate'),
  flag('--as-group <group>', 'a group of that user; may be given several times', several),
  flag('--request-timeout <duration>', 'how long each response may take (default: 45s)', duration),
  flag('-v, --verbose', 'print each request to standard error, without credentials and bodies'),
].map((option) => option.helpGroup('Options of the cluster:'));

/** Returns the options of the admin's files. @param usual default of the policy @param defaults that of the settings */
export function adminOptions(usual = 'everything is allowed', defaults = 'those of the kinds'): Option[] {
  return [
    flag('--policy <file>', `file with the administrator's policy (default: ${usual})`),
    flag('--settings <file>', `file with the settings of the operator's kinds (default: ${defaults})`),
  ];
}

/** @param usual its default */
export function namespaceOption(usual?: string): Option {
  const suffix = usual === undefined ? '' : ` (default: ${usual})`;
  return flag('-n, --namespace <name>', `namespace of custom resources that name none${suffix}`, namespace);
}

export function operatorOption(description: string): Option {
  return flag('--operator-namespace <name>', description, namespace);
}

/** Returns the options of `fn`, which may come from the ConfigMap of a list, too. */
export function fnOptions(): Option[] {
  return [namespaceOption(), CONFIG, KINDS, ...adminOptions(), ...kindOptions()];
}

/** Returns the options of the built-in kinds. The help of a project that leaves these kinds out doesn't show them. */
export function kindOptions(): Option[] {
  const isHidden = leavesOutBuiltIns();
  return Object.entries(flagsByKind).flatMap(([kind, flags]) =>
    flags.map((flag) => optionOf(flag).helpGroup(`Options of ${kind}:`).hideHelp(isHidden)),
  );
}

/** Reports whether a project leaves the built-in kinds out. Reads the text alone: `--help` runs no code of a project. */
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
  const flags = `${name} <${value}>`;
  return isList
    ? flag(flags, description, (text, previous?: readonly string[]) => list(text, previous).map(checked))
    : flag(flags, description, checked);
}

export function several(value: string, previous: readonly string[] = []): string[] {
  return [...previous, value];
}

/** Splits `a,b`; used for options that may also be given several times. */
export function list(value: string, previous: readonly string[] = []): string[] {
  const items = value.split(',').map((item) => item.trim());
  if (items.includes('')) throw new InvalidArgumentError('Write names separated by commas.');
  return [...previous, ...items];
}

/** @throws InvalidArgumentError, which commander reports with the option */
function matching(value: string, pattern: RegExp, remedy: string): string {
  if (!pattern.test(value)) throw new InvalidArgumentError(remedy);
  return value;
}

export function boolean(value: string): boolean {
  return matching(value, /^(true|false)$/, 'Write true or false.') === 'true';
}

export function namespace(value: string): string {
  return matching(value, /^(?=.{1,63}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?$/, `${value} can't name a namespace.`);
}

export function secretName(value: string): string {
  return matching(value, /^(?=.{1,253}$)[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, `${value} can't name a Secret.`);
}

export function integer(value: string): number {
  return Number(matching(value, /^[1-9]\d{0,5}$/, 'Write a whole number, 1 or more.'));
}

/** Reads `apply`, `hold`, `hold=appservice,team`, or how many custom resources are updated at once. */
export function onUpgrade(value: string): OnUpgrade {
  const [mode = '', kinds] = value.split('=', 2);
  if (mode === 'hold')
    return { mode, ...(kinds !== undefined && { kinds: list(kinds).map((name) => name.toLowerCase()) }) };
  if (value === 'apply') return { mode: value };
  const remedy = 'Write apply, hold, hold=KIND,... or how many are updated at once.';
  return { mode: 'rollout', atOnce: Number(matching(value, /^[1-9]\d{0,5}$/, remedy)) };
}

export function count(value: string): number {
  return Number(matching(value, /^\d{1,6}$/, 'Write a whole number, 0 or more.'));
}

export function url(value: string): string {
  return matching(
    value.replace(/(?<!\/)\/+$/, ''),
    /^https?:\/\/[^\s/]/,
    `${value} is no URL: write one that begins with https://.`,
  );
}

const UNIT_MILLISECONDS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Reads a duration as Go writes it, e.g. `5m` or `1m30s`. */
export function duration(value: string): number {
  const terms = [...value.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/gy)];
  const parts = terms.map(([, number, unit = '']) => Number(number) * (UNIT_MILLISECONDS[unit] ?? 0));
  const sum = parts.reduce((a, b) => a + b, 0);
  if (sum < 1 || terms.map(([term]) => term).join('') !== value)
    throw new InvalidArgumentError('Write a duration such as 90s, 5m or 1h.');
  return Math.round(sum);
}

export function selector(value: string): string {
  try {
    parseLabelSelector(value);
  } catch (error) {
    throw new InvalidArgumentError(messageOf(error));
  }
  return value;
}

/** Host or port, repository in lower case, and a tag, a digest or both. */
const IMAGE =
  /^(?:[A-Za-z0-9][-\w]*[.:][\w\-.:]*\/)?[a-z0-9][a-z0-9._/-]*(?::\w[\w.-]{0,127}(?:@sha256:[0-9a-f]{64})?|@sha256:[0-9a-f]{64})$/;

export function image(value: string): string {
  const example = `registry.example.com/reconstruct:${packageVersion()}`;
  return matching(
    value,
    IMAGE,
    `${value}: write a repository in lower case, with a tag or a digest, as in ${example}.`,
  );
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
  const pairs = list(value).map((label) => {
    const [name = '', text = ''] = matching(label, LABEL, `${label} is no label: write name=value.`).split(
      '=',
    );
    if (INSTALLATION_LABELS.includes(name))
      throw new InvalidArgumentError(`${name} is set by the installation itself: leave it out.`);
    return [name, text] as const;
  });
  return Object.fromEntries(pairs);
}
