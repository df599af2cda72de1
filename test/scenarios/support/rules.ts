import type { Matcher } from './proxied-request.js';

/** A fault that is in force until it is removed. */
export interface Rule {
  /** How many requests or events it was asked about. */
  readonly hits: number;
  remove(): void;
}

/** A rule as the proxy reads it. */
export interface ActiveRule<T> {
  readonly matches: Matcher;
  readonly fault: T;
  hits: number;
}

/** Adds a rule at the end; whoever has added it can remove it. */
export function addTo<T>(rules: ActiveRule<T>[], matches: Matcher, fault: T): Rule {
  const rule = { matches, fault, hits: 0 };
  rules.push(rule);
  return {
    get hits() {
      return rule.hits;
    },
    remove: () => {
      const index = rules.indexOf(rule);
      if (index >= 0) rules.splice(index, 1);
    },
  };
}
