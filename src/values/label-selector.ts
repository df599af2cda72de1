import { OperatorError } from '../contract/error.js';

/** `metav1.LabelSelector`. */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values?: readonly string[];
  }[];
}

/**
 * Reports whether labels match a selector; an empty one matches any.
 * @see
 * https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#resources-that-support-set-based-requirements
 */
export function selects(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Readonly<Record<string, string>>,
): boolean {
  const valueOf = (key: string): string | undefined => (Object.hasOwn(labels, key) ? labels[key] : undefined);
  return (
    Object.entries(matchLabels).every(([key, value]) => valueOf(key) === value) &&
    matchExpressions.every(({ key, operator, values = [] }) => {
      const value = valueOf(key);
      if (operator === 'Exists' || operator === 'DoesNotExist')
        return (value !== undefined) === (operator === 'Exists');
      return (value !== undefined && values.includes(value)) === (operator === 'In');
    })
  );
}

const NAME = '[A-Za-z0-9](?:[-\\w.]{0,61}[A-Za-z0-9])?';
const KEY = `(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?${NAME}`;
const EXISTS = new RegExp(`^(!?)\\s*(${KEY})$`);
const EQUALS = new RegExp(`^(${KEY})\\s*(=|==|!=)\\s*((?:${NAME})?)$`);

/** Reports whether an object can have a label with this value. */
export function isLabel(key: string, value: string): boolean {
  const [, label, sign, its] = EQUALS.exec(`${key}=${value}`) ?? [];
  return label === key && sign === '=' && its === value;
}

/** Returns a selector as text, as requests take it; the same text for the same requirements. */
export function selectorText({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string {
  const equal = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`);
  const others = matchExpressions.map(({ key, operator, values = [] }) => {
    if (operator === 'Exists') return key;
    if (operator === 'DoesNotExist') return `!${key}`;
    return `${key} ${operator.toLowerCase()} (${values.toSorted().join()})`;
  });
  return [...equal, ...others].sort().join();
}

const OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'];

/** Returns why a selector can't be asked for, as it may be what a user has written. */
export function mistakeInSelector(selector: LabelSelector): string | undefined {
  const { matchLabels = {}, matchExpressions = [] } = selector;
  const labels = Object.entries(matchLabels);
  const wrong = labels.find(([label, value]) => !isLabel(label, value));
  if (wrong) return `no object has the label ${wrong.join('=')}`;
  for (const { key, operator, values = [] } of matchExpressions) {
    const isList = operator === 'In' || operator === 'NotIn';
    if (!OPERATORS.includes(operator))
      return `${operator} is no operator; write In, NotIn, Exists or DoesNotExist`;
    if (isList !== values.length > 0) return `${operator} takes ${isList ? 'values' : 'no values'}`;
    const odd = (isList ? values : ['']).find((value) => !isLabel(key, value));
    if (odd !== undefined) return `no object has the label ${key}=${odd}`;
  }
  return undefined;
}

const IN = new RegExp(`^(${KEY})\\s+(in|notin)\\s*\\((.*)\\)$`);
const VALUE = new RegExp(`^(?:${NAME})?$`);

/**
 * Reads a selector as kubectl takes it: `team=shop,tier!=test,stage in (a,b),!canary`.
 * @throws OperatorError `InvalidInput`
 */
export function parseLabelSelector(text: string): LabelSelector {
  const parts: string[] = [];
  for (const piece of text.split(',')) {
    const before = parts.at(-1) ?? '';
    // Commas between brackets separate values.
    if (before.includes('(') && !before.includes(')')) parts[parts.length - 1] = `${before},${piece}`;
    else parts.push(piece);
  }
  return { matchExpressions: parts.map((part) => requirementOf(part.trim())) };
}

/** Reports whether a text is such a selector; an empty one isn't, as it would select everything. */
export function isSelector(text: string): boolean {
  try {
    parseLabelSelector(text);
    return true;
  } catch {
    return false;
  }
}

function requirementOf(part: string): NonNullable<LabelSelector['matchExpressions']>[number] {
  const [, not, label] = EXISTS.exec(part) ?? [];
  if (label !== undefined) return { key: label, operator: not ? 'DoesNotExist' : 'Exists' };
  const [, key, sign, value = ''] = EQUALS.exec(part) ?? [];
  if (key !== undefined) return { key, operator: sign === '!=' ? 'NotIn' : 'In', values: [value] };
  const [, of, word, list = ''] = IN.exec(part) ?? [];
  const values = list.split(',').map((each) => each.trim());
  if (of !== undefined && values.every((each) => VALUE.test(each)))
    return { key: of, operator: word === 'in' ? 'In' : 'NotIn', values };
  const message = `${JSON.stringify(part)} selects no labels: write name=value, name!=value, name in (a,b), name or !name, separated by commas`;
  throw new OperatorError({ reason: 'InvalidInput', message });
}
