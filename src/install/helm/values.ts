import type { FlagValues, KindFlag, Kind } from '../../contract/kind.js';
import { operatorRules } from '../access.js';
import { kindName } from '../arguments.js';
import { RUNBOOKS } from '../props.js';
import type { InstallProps } from '../props.js';

/** What a chart is made of: what it may install, and the values that it has by default. */
export interface ChartProps extends Omit<InstallProps, 'namespace' | 'managedBy'> {
  /** Those of the kinds that are installed unless the values say otherwise. */
  readonly on: readonly Kind[];
  /** Of the chart and of what it installs. */
  readonly version: string;
  /** The oldest Kubernetes that will do, e.g. `1.34`. */
  readonly oldestKubernetes: string;
}

/** Stands for the namespace of a release. */
export const RELEASE_NAMESPACE = 'zznamespacezz';

/** Stands for whoever manages a release: Helm. */
export const MANAGER = 'zzmanagerzz';

/** Stands for a namespace that is watched. */
export const WATCHED_NAMESPACE = 'zzwatchedzz';

/** Stands for where the pages of alerts are read. */
export const RUNBOOKS_PLACE = 'zzrunbookszz';

/** What stands for values that every installation has, by the expression of it. */
export const COMMON_PLACES: readonly (readonly [string, string])[] = [
  [RELEASE_NAMESPACE, '$.Release.Namespace'],
  [MANAGER, '$.Release.Service'],
  [RUNBOOKS_PLACE, `regexReplaceAll "/+$" ($.Values.monitoring.runbooks | default "${RUNBOOKS}") ""`],
];

/** Stands for the image. */
export const IMAGE = 'zzimagezz';

/** An installation of all kinds, with what stands for values in place of them. */
export function renderProps({ kinds }: ChartProps): InstallProps {
  return { kinds, namespace: RELEASE_NAMESPACE, image: IMAGE, replicas: 1, managedBy: MANAGER };
}

/** How a kind is called among the values: by its name alone where no other is called so. */
export function kindKey(kind: Kind, kinds: readonly Kind[]): string {
  return kinds.some((other) => other !== kind && other.name === kind.name) ? kindName(kind) : kind.name;
}

/** Whether a kind is to be installed, as an expression of a template. */
export function kindOn(kind: Kind, kinds: readonly Kind[]): string {
  return `index $.Values.kinds ${JSON.stringify(kindKey(kind, kinds))}`;
}

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

type RightsProps = Pick<InstallProps, 'namespace' | 'flags' | 'policy'>;

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
