import type { Condition } from '../../contract/conditions.js';
import { isMap } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import type { Fact, Verdict } from './document.js';

interface Status {
  readonly observedGeneration?: number;
  readonly conditions?: readonly Partial<Condition>[];
}

/** What of the status is as it should be: nobody holds those of a kind of one's own to a form. */
function statusOf({ status }: AnyObject): Status {
  const { observedGeneration, conditions } = isMap(status) ? status : {};
  return {
    ...(typeof observedGeneration === 'number' && { observedGeneration }),
    conditions: Array.isArray(conditions) ? conditions.filter(isMap).map(conditionOf) : [],
  };
}

/** Texts alone. */
function conditionOf(condition: Readonly<Record<string, unknown>>): Partial<Condition> {
  return Object.fromEntries(Object.entries(condition).filter(([, value]) => typeof value === 'string'));
}

/** In this order, since who is stalled may be reconciled too in somebody else's eyes. */
const WORDS = ['Stalled', 'Ready', 'Reconciling'] as const;

/** How a custom resource fares, by its own conditions. */
export function verdictOf(cr: AnyObject): Verdict {
  const { observedGeneration, conditions = [] } = statusOf(cr);
  const current = observedGeneration !== undefined && observedGeneration === cr.metadata.generation;
  for (const word of WORDS) {
    const condition = conditions.find(({ type, status }) => type === word && status === 'True');
    if (condition) return { word, ...told(condition), current };
  }
  const ready = conditions.find(({ type }) => type === 'Ready');
  if (ready) return { word: 'Reconciling', ...told(ready), current };
  return {
    word: 'Unknown',
    reason: 'NotSeen',
    message: 'No controller has said anything of it yet',
    current,
  };
}

function told({
  reason = '',
  message = '',
  lastTransitionTime,
}: Partial<Condition>): Omit<Verdict, 'word' | 'current'> {
  return { reason, message, ...(lastTransitionTime !== undefined && { since: lastTransitionTime }) };
}

/** The three that the verdict is made of, and those that a Deployment says as well. */
const KNOWN: ReadonlySet<string> = new Set([...WORDS, ...['Available', 'Progressing', 'ReplicaFailure']]);

/** Conditions that warn: there is something to tell where they are True. */
const WARNINGS: ReadonlySet<string> = new Set(['ScopeLimited', 'Overlapping', 'ClockSkewed']);

/** Every other condition: what a kind says in its own words. */
export function conditionFacts(cr: AnyObject): Fact[] {
  return (statusOf(cr).conditions ?? []).flatMap(({ type = '', status = 'Unknown', reason, message }) => {
    const isWarning = WARNINGS.has(type);
    if (KNOWN.has(type) || (isWarning && status !== 'True')) return [];
    const good = (status === 'True') !== isWarning;
    const why = good ? '' : ` (${[reason, message].filter(Boolean).join(': ')})`;
    return [{ name: type, text: `${status}${why}`, ...(status !== 'Unknown' && { good }) }];
  });
}
