import { OperatorError } from '../../contract/error.js';
import type { FlagValues, KindFlag, KindContext } from '../../contract/kind.js';

/** What the admin decides, and no JobWatcher can. */
export interface Settings {
  /** Namespaces whose JobWatchers may act in other namespaces too. */
  readonly adminNamespaces: readonly string[];
  /** Namespaces in which nothing is deleted; `*` stands for any characters. */
  readonly protectedNamespaces: readonly string[];
}

/** @param operatorNamespace where the operator runs; undefined where that isn't known, as outside of a cluster */
export function defaultSettings(operatorNamespace?: string): Settings {
  // `default` is anybody's: an operator that runs there makes nobody an admin, and protects no Job.
  const own = operatorNamespace === undefined || operatorNamespace === 'default' ? [] : [operatorNamespace];
  return { adminNamespaces: own, protectedNamespaces: ['kube-*', ...own] };
}

/** Whether a namespace is one of those that a list of names and `*` describes. */
export function isListed(list: readonly string[], namespace: string): boolean {
  return list.some((pattern) => covers(pattern, namespace));
}

function covers(pattern: string, name: string): boolean {
  const [first = '', ...others] = pattern.split('*');
  if (others.length === 0) return name === first;
  const last = others.pop() ?? '';
  if (!name.startsWith(first) || !name.endsWith(last)) return false;
  let at = first.length;
  for (const part of others) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= name.length - last.length;
}

const ADMIN_NAMESPACES = '--jobwatcher-admin-namespaces';
const PROTECTED_NAMESPACES = '--jobwatcher-protected-namespaces';
const DELETES_PER_SECOND = '--jobwatcher-deletes-per-second';

const DEFAULT_DELETES_PER_SECOND = 10;
const MAX_DELETES_PER_SECOND = 1000;

const NAMESPACE = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
/** With `*` for any characters. */
const NAMESPACES = /^[-a-z0-9*]+$/;

export const flags: readonly KindFlag[] = [
  {
    name: ADMIN_NAMESPACES,
    value: 'namespaces',
    description:
      "namespaces whose JobWatchers may act in others too (default: the operator's own, but not default)",
    list: true,
    check: (value) => checkName(value, NAMESPACE),
    schema: { type: 'string', maxLength: 63, pattern: NAMESPACE.source },
  },
  {
    name: PROTECTED_NAMESPACES,
    value: 'namespaces',
    description:
      "namespaces in which no Job is deleted, * for any characters (default: kube-* and the operator's own)",
    list: true,
    check: (value) => checkName(value, NAMESPACES),
    schema: { type: 'string', maxLength: 63, pattern: NAMESPACES.source },
  },
  {
    name: DELETES_PER_SECOND,
    value: 'number',
    description: `Jobs deleted per second at most (default: ${DEFAULT_DELETES_PER_SECOND})`,
    check: checkRate,
    schema: { type: 'integer', minimum: 1, maximum: MAX_DELETES_PER_SECOND },
  },
];

function checkName(value: string, pattern: RegExp): string | undefined {
  return value.length <= 63 && pattern.test(value) ? undefined : `"${value}" is not the name of a namespace`;
}

function checkRate(value: string): string | undefined {
  const number = /^\d+$/.test(value) ? Number(value) : 0;
  return number >= 1 && number <= MAX_DELETES_PER_SECOND
    ? undefined
    : `"${value}" is not a whole number from 1 to ${MAX_DELETES_PER_SECOND}`;
}

/** What the flags say, and else the defaults. */
export function settingsOf({ flags: given = {}, operatorNamespace }: KindContext): Settings {
  const defaults = defaultSettings(operatorNamespace);
  return {
    adminNamespaces: listOf(given, ADMIN_NAMESPACES) ?? defaults.adminNamespaces,
    protectedNamespaces: listOf(given, PROTECTED_NAMESPACES) ?? defaults.protectedNamespaces,
  };
}

export function deletesPerSecondOf({ flags: given = {} }: KindContext): number {
  const value = given[DELETES_PER_SECOND];
  if (typeof value !== 'string') return DEFAULT_DELETES_PER_SECOND;
  const problem = checkRate(value);
  if (problem !== undefined)
    throw new OperatorError({ reason: 'InvalidInput', message: `${DELETES_PER_SECOND}: ${problem}` });
  return Number(value);
}

function listOf(given: FlagValues, name: string): readonly string[] | undefined {
  const value = given[name];
  return typeof value === 'string' ? [value] : value;
}
