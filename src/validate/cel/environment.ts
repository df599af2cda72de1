import {
  celList,
  isCelList,
  isCelMap,
  celEnv,
  celFunc,
  celMethod,
  CelScalar,
  isCelError,
  listType,
} from '@bufbuild/cel';
import type { CelList, CelValue, CelEnv, CelFunc } from '@bufbuild/cel';
import { strings } from '@bufbuild/cel/ext';
import { compileRegularExpression } from '../../values/regular-expression.js';

/** Identity of items in a list of type `set` or `map`: by themselves, or by these fields. */
type ItemKeys = readonly string[] | 'value';

/** Lists whose order means nothing. What isn't in here is compared item by item. */
const unordered = new WeakMap<CelList, ItemKeys>();

/** A list of the type that `x-kubernetes-list-type` says; the keys are escaped as fields are. */
export function typedList(items: readonly CelValue[], keys?: ItemKeys): CelList {
  const list = celList([...items]);
  if (keys !== undefined) unordered.set(list, keys);
  return list;
}

/** CEL without the changes of Kubernetes. */
const plain = celEnv();

/** Reports whether values are equal to Kubernetes: as in CEL, but the order of lists of type `set` and `map` is ignored. */
function equals(a: CelValue, b: CelValue): boolean {
  if (isCelList(a) && isCelList(b)) return a.size === b.size && equalLists(a, b);
  if (!isCelMap(a) || !isCelMap(b)) return plain.funcs.find('_==_')?.call(0, undefined, [a, b]) === true;
  return (
    a.size === b.size &&
    [...a].every(([key, value]) => {
      const other = b.get(key);
      return other !== undefined && equals(value, other);
    })
  );
}

function equalLists(a: CelList, b: CelList): boolean {
  const keys = unordered.get(a);
  const [items, others] = [[...a], [...b]];
  if (keys === undefined) return items.every((item, index) => equals(item, others[index] as CelValue));
  return others.every((other) => {
    const match = items.find((item) => isSameItem(item, other, keys));
    return match !== undefined && equals(match, other);
  });
}

function isSameItem(a: CelValue, b: CelValue, keys: ItemKeys): boolean {
  if (keys === 'value') return equals(a, b);
  if (!isCelMap(a) || !isCelMap(b)) return false;
  return keys.every((key) => {
    const [left, right] = [a.get(key), b.get(key)];
    return left === undefined || right === undefined ? left === right : equals(left, right);
  });
}

/** `+` of Kubernetes: a union for a list of type `set`, a merge for one of type `map`. */
function concatenate(a: CelList, b: CelList): CelList {
  const keys = unordered.get(a);
  const items = [...a];
  for (const added of b) {
    const at = keys === undefined ? -1 : items.findIndex((item) => isSameItem(item, added, keys));
    if (at === -1) items.push(added);
    else items[at] = added;
  }
  return typedList(items, keys);
}

const { BOOL, DYN, INT, STRING } = CelScalar;
const LIST = listType(DYN);

/** Functions of CEL that Kubernetes changes. */
const OVERRIDES: CelFunc[] = [
  celFunc('_==_', [DYN, DYN], BOOL, equals),
  celFunc('_!=_', [DYN, DYN], BOOL, (a, b) => !equals(a, b)),
  celFunc('@in', [DYN, LIST], BOOL, (item, list) => [...list].some((other) => equals(other, item))),
  celFunc('_+_', [LIST, LIST], LIST, concatenate),
];

/**
 * A duration as Go reads it: the library takes a text without any number for zero, and knows only one of the two
 * letters mu.
 */
const DURATIONS: CelFunc[] = [...(plain.funcs.find('duration') ?? [])]
  .filter((overload) => overload.arguments[0] === STRING)
  .map(({ result }) =>
    celFunc('duration', [STRING], result, (text) => {
      if (/^[-+]?$/.test(text)) throw new Error(`invalid duration: ${JSON.stringify(text)}`);
      return call('duration', text.replaceAll('\u03bc', '\u00b5'));
    }),
  );

/** @see https://pkg.go.dev/k8s.io/apiserver/pkg/cel/library#Lists */
const LISTS: CelFunc[] = [
  celMethod('isSorted', LIST, [], BOOL, function () {
    const items = [...this];
    return items.every((item, index) => index === 0 || !precedes(item, items[index - 1] as CelValue));
  }),
  celMethod('indexOf', LIST, [DYN], INT, function (item) {
    return BigInt([...this].findIndex((other) => equals(other, item)));
  }),
  celMethod('lastIndexOf', LIST, [DYN], INT, function (item) {
    return BigInt([...this].findLastIndex((other) => equals(other, item)));
  }),
  celMethod('min', LIST, [], DYN, function () {
    return extreme(this, 'min', precedes);
  }),
  celMethod('max', LIST, [], DYN, function () {
    return extreme(this, 'max', (a, b) => precedes(b, a));
  }),
];

/** `oldSelf` of a rule with `optionalOldSelf`: here a list of one item or none. */
const OPTIONALS: CelFunc[] = [
  celMethod('hasValue', LIST, [], BOOL, function () {
    return this.size > 0;
  }),
  celMethod('value', LIST, [], DYN, function () {
    const value = this.get(0);
    if (value === undefined) throw new Error('optional.none() dereference');
    return value;
  }),
  celMethod('orValue', LIST, [DYN], DYN, function (other) {
    return this.get(0) ?? other;
  }),
];

function precedes(a: CelValue, b: CelValue): boolean {
  return call('_<_', a, b) === true;
}

function extreme(list: CelList, name: string, better: (a: CelValue, b: CelValue) => boolean): CelValue {
  const [first, ...others] = list;
  if (first === undefined) throw new Error(`${name} called on empty list`);
  return others.reduce((best, item) => (better(item, best) ? item : best), first);
}

/** Calls an operator of plain CEL. */
function call(name: string, ...args: CelValue[]): CelValue {
  const result = plain.funcs.find(name)?.call(0, undefined, args);
  if (result === undefined) throw new Error(`no such overload: ${name}`);
  if (isCelError(result)) throw result;
  return result;
}

/** In 0.6.1, `'%d'.format([1])` is `NaN`. */
const known = strings.filter(({ name }) => name !== 'format');

/**
 * CEL as the API server speaks it, as far as it can be judged here. Its libraries for quantities, addresses, URLs,
 * named formats, optional fields, and `find` aren't there, see `findUnknown`.
 */
export const ENVIRONMENT: CelEnv = celEnv({
  funcs: [...known, ...LISTS, ...OPTIONALS, ...DURATIONS, ...OVERRIDES],
  re2: { compile: compileRegularExpression },
});
