import type { KindContext, KindFlag } from '../../contract/kind.js';
import { matching } from '../common.js';

/** Decisions of the admin, which no JobWatcher can change. */
export interface Settings {
  /** Namespaces whose JobWatchers may act in other namespaces too. */
  readonly adminNamespaces: readonly string[];
  /** Namespaces in which nothing is deleted; `*` stands for any characters. */
  readonly protectedNamespaces: readonly string[];
  readonly deletesPerSecond: number;
}

const ADMIN_NAMESPACES = '--jobwatcher-admin-namespaces';
const PROTECTED_NAMESPACES = '--jobwatcher-protected-namespaces';
const DELETES_PER_SECOND = '--jobwatcher-deletes-per-second';

const DEFAULT_DELETES_PER_SECOND = 10;
const MAX_DELETES_PER_SECOND = 1000;

export const flags: readonly KindFlag[] = [
  {
    name: ADMIN_NAMESPACES,
    description:
      "namespaces whose JobWatchers may act in others too (default: the operator's own, but not default)",
    ...namespaces('[a-z0-9]([-a-z0-9]*[a-z0-9])?'),
  },
  {
    name: PROTECTED_NAMESPACES,
    description:
      "namespaces in which no Job is deleted, * for any characters (default: kube-* and the operator's own)",
    ...namespaces('[-a-z0-9*]+'),
  },
  {
    name: DELETES_PER_SECOND,
    value: 'number',
    description: `Jobs deleted per second at most (default: ${DEFAULT_DELETES_PER_SECOND})`,
    check: checkRate,
    schema: { type: 'integer', minimum: 1, maximum: MAX_DELETES_PER_SECOND },
  },
];

function namespaces(pattern: string) {
  return { ...matching(pattern, 63, 'the name of a namespace'), value: 'namespaces', list: true } as const;
}

function checkRate(value: string): string | undefined {
  const number = /^\d+$/.test(value) ? Number(value) : 0;
  return number >= 1 && number <= MAX_DELETES_PER_SECOND
    ? undefined
    : `"${value}" is not a whole number from 1 to ${MAX_DELETES_PER_SECOND}`;
}

/** Reads the flags, which stand in place of the defaults. */
export function settingsOf({ flags: given = {}, operatorNamespace }: KindContext): Settings {
  // Everyone may work in `default`: an operator that runs there makes no one an admin, and protects no Job.
  const own = operatorNamespace === undefined || operatorNamespace === 'default' ? [] : [operatorNamespace];
  return {
    adminNamespaces: [given[ADMIN_NAMESPACES] ?? own].flat(),
    protectedNamespaces: [given[PROTECTED_NAMESPACES] ?? ['kube-*', ...own]].flat(),
    deletesPerSecond: Number(given[DELETES_PER_SECOND] ?? DEFAULT_DELETES_PER_SECOND),
  };
}
