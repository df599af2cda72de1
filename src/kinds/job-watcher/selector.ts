import type { LabelExpression, LabelSelector } from './spec.js';

type Labels = Readonly<Record<string, string>>;

/**
 * Whether labels are as a selector wants them; an empty one takes any.
 * @see
 * https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#resources-that-support-set-based-requirements
 */
export function selects(selector: LabelSelector, labels: Labels): boolean {
  return (
    Object.entries(selector.matchLabels ?? {}).every(([key, value]) => valueOf(labels, key) === value) &&
    (selector.matchExpressions ?? []).every((expression) => holds(expression, labels))
  );
}

function holds({ key, operator, values = [] }: LabelExpression, labels: Labels): boolean {
  const value = valueOf(labels, key);
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
}

function valueOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}
