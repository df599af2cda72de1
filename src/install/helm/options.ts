import type { Kind } from '../../contract/kind.js';
import type { FlagValues, KindFlag } from '../../contract/kind-flag.js';
import { operatorRules } from '../access.js';
import type { InstallProps } from '../props.js';

/** A flag of a kind as a value of the chart, and what it does to the rights that the kind needs. */
export type ChartOption = { readonly flag: KindFlag } & (
  | { readonly use: 'free' }
  /** It names what rights are about: this, unless it is given. */
  | { readonly use: 'names'; readonly byDefault: string }
  /** Where it is given, there are rights beside the others, by its form. */
  | { readonly use: 'adds'; readonly forms: readonly string[] }
  /** What it does can't be told by a template: it is as it was when the chart was made. */
  | { readonly use: 'fixed' }
);

/** How a flag is called among the values: `--ingress-namespace` is `ingressNamespace`. */
export function optionName({ name }: KindFlag): string {
  return name.slice(2).replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** What stands for a flag's value in whatever is made for a template; it can name an object and a namespace. */
export function placeOf(flag: KindFlag): string {
  return `zz${optionName(flag).toLowerCase()}zz`;
}

export type RightsProps = Pick<InstallProps, 'namespace' | 'flags' | 'policy'>;

/** The flags of a kind, each tried out on the rights that the kind needs. */
export function chartOptions(kind: Kind, props: RightsProps): ChartOption[] {
  // A policy may name whatever flags name too.
  const isFixed = hasOwnPolicy(kind, props);
  return (kind.flags ?? []).map((flag) => {
    const option = tried(kind, flag, props);
    return isFixed && option.use !== 'free' ? { flag, use: 'fixed' } : option;
  });
}

/** Whether rights follow from what the admin allows of a kind. */
export function hasOwnPolicy({ policyAtStart, name }: Kind, { policy }: RightsProps): boolean {
  return policyAtStart === true && policy?.parsed[name] !== undefined;
}

function tried(kind: Kind, flag: KindFlag, { namespace, policy }: RightsProps): ChartOption {
  const rulesWith = (flags: FlagValues): unknown =>
    operatorRules([kind], { namespace, flags, ...(policy && { policy }) });
  const { forms = ['*'] } = flag;
  const values = forms.map((form) => form.replace('*', placeOf(flag)));
  // A number names nothing.
  if (values.some((value) => flag.check?.(value) !== undefined)) return { flag, use: 'free' };
  const before = rulesWith({});
  const after = values.map((value) => rulesWith({ [flag.name]: flag.list ? [value] : value }));
  if (after.every((rules) => isSame(rules, before))) return { flag, use: 'free' };
  const [first] = after;
  const replaced = new Set(differences(before, first));
  const [byDefault] = replaced;
  if (flag.list !== true && typeof byDefault === 'string' && replaced.size === 1)
    return { flag, use: 'names', byDefault };
  const all = before as readonly unknown[];
  const adds = after.every((rules) =>
    all.every((rule) => (rules as readonly unknown[]).some((other) => isSame(rule, other))),
  );
  return flag.list !== true && adds ? { flag, use: 'adds', forms } : { flag, use: 'fixed' };
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** What stands in the one in whose place the other has a string; undefined among it where they are built otherwise. */
function differences(a: unknown, b: unknown): unknown[] {
  if (isSame(a, b)) return [];
  if (typeof a === 'string' && typeof b === 'string') return [a];
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return [undefined];
  const [ofA, ofB] = [Object.entries(a), Object.entries(b)] as [[string, unknown][], [string, unknown][]];
  if (!isSame(Object.keys(a), Object.keys(b))) return [undefined];
  return ofA.flatMap(([, value], index) => differences(value, ofB[index]?.[1]));
}
