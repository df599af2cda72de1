import { celEnv, celFunc, celMethod, CelScalar, isCelError, listType } from '@bufbuild/cel';
import type { CelEnv, CelFunc, CelList, CelValue } from '@bufbuild/cel';
import { strings } from '@bufbuild/cel/ext';
import { compileRegularExpression } from '../../contract/regular-expression.js';
import { concatenation, equality } from './lists.js';
import type { Equals } from './lists.js';

const { BOOL, DYN, INT, STRING } = CelScalar;
const LIST = listType(DYN);

/** `==` of plain CEL. */
const plain = celEnv();
const plainEquals: Equals = (a, b) => plain.funcs.find('_==_')?.call(0, undefined, [a, b]) === true;
const equals = equality(plainEquals);

/** What Kubernetes changes in CEL itself. */
const OVERRIDES: CelFunc[] = [
  celFunc('_==_', [DYN, DYN], BOOL, (a, b) => equals(a, b)),
  celFunc('_!=_', [DYN, DYN], BOOL, (a, b) => !equals(a, b)),
  celFunc('@in', [DYN, LIST], BOOL, (item, list) => [...list].some((other) => equals(other, item))),
  celFunc('_+_', [LIST, LIST], LIST, concatenation(equals)),
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
