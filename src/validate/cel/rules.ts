import { celMap, CelScalar, isCelError, parse, plan } from '@bufbuild/cel';
import type { CelInput, CelValue, CelResult } from '@bufbuild/cel';
import type { StructuralSchema } from '../../contract/crd.js';
import { messageOf } from '../../contract/error.js';
import { parseDuration } from '../formats.js';
import { showValue } from '../../values/path.js';
import type { Path, Problem } from '../problem.js';
import { objectSchema } from '../structural.js';
import type { Ruled } from '../structural.js';
import { isUnchanged, schemasBelow } from '../unchanged.js';
import { ENVIRONMENT, typedList } from './environment.js';
import { isMap, valueAt } from '../../values/json.js';

const compiled = new WeakMap<StructuralSchema, readonly (Rule | UnknownRule)[]>();

/** Compiled when they are first needed, and once. */
function rulesOf(schema: StructuralSchema): readonly (Rule | UnknownRule)[] {
  const { 'x-kubernetes-validations': sources = [] } = schema;
  const rules = compiled.get(schema) ?? (sources as readonly ValidationRule[]).map(compileRule);
  compiled.set(schema, rules);
  return rules;
}

/** Returns the rules of a schema and all below that aren't judged here, since they use what only the API server has. */
export function unknownRules(schema: StructuralSchema): UnknownRule[] {
  const below = Object.values(schemasBelow(schema)).flatMap(unknownRules);
  return [...rulesOf(schema).filter((rule) => 'why' in rule), ...below];
}

/**
 * Judges a value that has passed its schema. Rules that compare it with what it was (`oldSelf`) are judged only where there is
 * an old value.
 */
export function judgeRules({ given, schema, place }: Ruled): Problem[] {
  const { value, path, pair, nearest } = place;
  if (value === null) return [];
  const old = pair?.old;
  const self = toCelValue(value, schema);
  const oldSelf = old === undefined || old === null ? undefined : toCelValue(old, schema);
  return rulesOf(given).flatMap((rule) => {
    if ('why' in rule) return [];
    const { usesOldSelf } = rule.program;
    const optional = rule.source.optionalOldSelf === true;
    if (usesOldSelf && oldSelf === undefined && !optional) return [];
    const before = optional ? typedList(oldSelf === undefined ? [] : [oldSelf]) : oldSelf;
    const failure = judge(rule, { self, ...(before !== undefined && { oldSelf: before }) }, value, path);
    // What can't be evaluated is refused however old it is.
    const wasThere = !usesOldSelf && !failure?.isError && nearest !== undefined && isUnchanged(nearest);
    return failure && !wasThere ? [failure.problem] : [];
  });
}

/**
 * A value as rules see it: integers are `int`, other numbers `double`, text with the format of a time is a time. A
 * field that is null is absent. The value has passed the schema already.
 * @see https://github.com/kubernetes/kubernetes/blob/master/staging/src/k8s.io/apiserver/pkg/cel/common/valuesunstructured.go
 */
function toCelValue(value: unknown, schema: StructuralSchema | undefined): CelValue {
  if (value === null || value === undefined) return null;
  if (schema?.['x-kubernetes-int-or-string'] === true) return withoutSchema(value);
  switch (schema?.type) {
    case 'object':
      return isMap(value) ? mapValue(value, schema) : withoutSchema(value);
    case 'array':
      return Array.isArray(value) ? listValue(value, schema) : withoutSchema(value);
    case 'string':
      return typeof value === 'string' ? textValue(value, schema.format) : withoutSchema(value);
    case 'number':
      return value as number;
    case 'integer':
    case 'boolean':
    case undefined:
      return withoutSchema(value);
  }
}

function mapValue(value: Readonly<Record<string, unknown>>, given: StructuralSchema): CelValue {
  const schema = given['x-kubernetes-embedded-resource'] === true ? objectSchema(given) : given;
  const { properties, additionalProperties } = schema;
  const items = typeof additionalProperties === 'object' ? additionalProperties : undefined;
  const entries = new Map<string, CelInput>();
  for (const [key, member] of Object.entries(value)) {
    if (properties === undefined) {
      entries.set(key, toCelValue(member, items));
    } else if (member !== null && member !== undefined) {
      const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
      const field = toCelValue(member, property);
      entries.set(escapeField(key) ?? key, field);
      // Since Kubernetes 1.32, most of these words can be written as they are, too.
      if (RESERVED.has(key)) entries.set(key, field);
    }
  }
  return celMap(entries);
}

function listValue(list: readonly unknown[], schema: StructuralSchema): CelValue {
  const items = list.map((item) => toCelValue(item, schema.items));
  const { 'x-kubernetes-list-type': type, 'x-kubernetes-list-map-keys': keys = [] } = schema;
  if (type === 'map')
    return typedList(
      items,
      keys.map((key) => escapeField(key) ?? key),
    );
  return typedList(items, type === 'set' ? 'value' : undefined);
}

function textValue(text: string, format: string | undefined): CelValue {
  if (format === 'date') return converted(timestamp, `${text}T00:00:00Z`);
  if (format === 'date-time') return converted(timestamp, /Z$|[+-]\d\d:\d\d$/.test(text) ? text : `${text}Z`);
  if (format === 'duration') return converted(duration, `${((parseDuration(text) ?? 0) / 1e9).toFixed(9)}s`);
  if (format !== 'byte') return text;
  return /[+/]/.test(text) ? UNREADABLE : Uint8Array.from(Buffer.from(text, 'base64'));
}

const timestamp = plan(ENVIRONMENT, parse('timestamp(text)'));
const duration = plan(ENVIRONMENT, parse('duration(text)'));

/** Something that no rule can do anything with: it fails, as on the API server, whose messages say why. */
const UNREADABLE: CelValue = CelScalar.DYN;

function converted(conversion: typeof timestamp, text: string): CelValue {
  const value = conversion({ text });
  return isCelError(value) ? UNREADABLE : value;
}

/** Returns a value that no schema describes: no rule can see into it, it is only ever compared. */
function withoutSchema(value: unknown): CelValue {
  if (Array.isArray(value)) return typedList(value.map(withoutSchema));
  if (isMap(value)) {
    return celMap(
      new Map(Object.entries(value).map(([key, member]) => [key, withoutSchema(member)] as const)),
    );
  }
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value;
  return typeof value === 'string' || typeof value === 'boolean' ? value : null;
}

/** Words that CEL keeps for itself; a field with such a name may be written `__namespace__`. */
const RESERVED = new Set(
  (
    'true false null in as break const continue else for function if import let loop package namespace return var ' +
    'void while'
  ).split(' '),
);

const SEQUENCES: Readonly<Record<string, string>> = {
  __: '__underscores__',
  '.': '__dot__',
  '-': '__dash__',
  '/': '__slash__',
};

/**
 * The name of a field in a rule; nothing for a name that no rule can say.
 * @see https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#available-validation-libraries
 */
function escapeField(name: string): string | undefined {
  if (RESERVED.has(name)) return `__${name}__`;
  if (!/^[A-Za-z_./-][A-Za-z0-9_./-]*$/.test(name)) return undefined;
  return name.replace(/__|[-./]/g, (found) => SEQUENCES[found] ?? found);
}

/** An item of `x-kubernetes-validations`. */
interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly fieldPath?: string;
  readonly reason?: string;
  readonly optionalOldSelf?: boolean;
}

/** A rule that is ready to be judged. */
interface Rule {
  readonly source: ValidationRule;
  readonly program: Program;
  /** Path of its failure, below the value that it is about. */
  readonly fieldPath: Path;
  readonly messageProgram: Program | undefined;
}

/** A rule that only the API server can judge. */
export interface UnknownRule {
  readonly rule: string;
  /** Function that isn't known here. */
  readonly why: string;
}

function compileRule(source: ValidationRule): Rule | UnknownRule {
  const program = compile(source.rule);
  if ('why' in program) return { rule: source.rule.trim(), why: program.why };
  // A message that isn't known here is replaced by the plain one, as the API server does with one that fails.
  const message = source.messageExpression === undefined ? undefined : compile(source.messageExpression);
  const messageProgram = message && !('why' in message) ? message : undefined;
  return { source, program, fieldPath: parseFieldPath(source.fieldPath ?? ''), messageProgram };
}

/** Takes `.a['b c'].d` apart. */
function parseFieldPath(fieldPath: string): string[] {
  return [...fieldPath.matchAll(/\.([^.[]+)|\['((?:[^'\\]|\\.)*)'\]/g)].map(
    ([, name, quoted = '']) => name ?? quoted.replace(/\\(.)/g, '$1'),
  );
}

/** Remedies by the `reason` of a failure. */
const REMEDIES: Readonly<Record<string, string>> = {
  FieldValueRequired: 'add it',
  FieldValueForbidden: 'remove it',
  FieldValueDuplicate: 'give another one',
};

/** @returns undefined if the value keeps the rule; `isError` if the rule couldn't be evaluated */
function judge(
  { source, program, fieldPath, messageProgram }: Rule,
  variables: Variables,
  value: unknown,
  path: Path,
): { readonly problem: Problem; readonly isError: boolean } | undefined {
  const result = program.evaluate(variables);
  if (result === true) return undefined;
  if (isCelError(result)) {
    const message = `${source.message?.trim() ?? `the rule ${source.rule.trim()} fails`} (${messageOf(result)})`;
    const remedy = 'change it so that the rule can be judged';
    return { problem: { path, message: withValue(value, message), remedy }, isError: true };
  }
  const made = messageProgram?.evaluate(variables);
  const text = typeof made === 'string' ? made.trim() : '';
  const isTaken = text !== '' && !text.includes('\n') && Buffer.byteLength(text) <= MAX_MESSAGE_BYTES;
  const said = isTaken ? text : source.message?.trim() || `failed rule: ${source.rule.trim()}`;
  // A rule whose message says what to do needs no more.
  const hasRemedy = /; |^give /.test(said);
  const problem = {
    path: [...path, ...fieldPath],
    message: withValue(valueAt(value, fieldPath), said),
    ...(!hasRemedy && { remedy: REMEDIES[source.reason ?? ''] ?? 'change it' }),
  };
  return { problem, isError: false };
}

/** Maximum length of a message that the API server takes of a `messageExpression`. */
const MAX_MESSAGE_BYTES = 5 * 1024;

function withValue(value: unknown, message: string): string {
  const isScalar = value !== null && value !== undefined && typeof value !== 'object';
  return isScalar ? `${showValue(value)} is refused: ${message}` : message;
}

interface Variables {
  readonly self: CelValue;
  readonly oldSelf?: CelValue;
}

interface Program {
  readonly usesOldSelf: boolean;
  evaluate(variables: Variables): CelResult;
}

type Node = Readonly<Record<string, unknown>>;
type Expression = ReturnType<typeof parse>['expr'];

/**
 * Compiles an expression of CEL. Nothing of it is ever run as JavaScript.
 * @returns `why` for what only the API server knows; that it is CEL at all, the API server has checked when the CRD was installed
 */
function compile(expression: string): Program | { readonly why: string } {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(expression);
  } catch (error) {
    return { why: `its syntax (${messageOf(error).split('\n')[0] ?? ''})` };
  }
  const unknown = findUnknown(parsed.expr);
  if (unknown !== undefined) return { why: `${unknown}()` };
  const run = plan(ENVIRONMENT, parsed);
  const isOldSelf = ({ case: kind, value }: Node): boolean =>
    kind === 'identExpr' && (value as { readonly name?: unknown }).name === 'oldSelf';
  return { usesOldSelf: some(parsed.expr, isOldSelf), evaluate: (variables) => run({ ...variables }) };
}

/** Operators of the evaluator itself. */
const BUILT_IN = new Set(['_[_]', '_?_:_', '_&&_', '_||_', '@not_strictly_false', '__not_strictly_false__']);

/** The first function that isn't known here with its number of arguments. */
function findUnknown(expression: Expression): string | undefined {
  let found: string | undefined;
  some(expression, ({ case: kind, value }) => {
    if (kind !== 'callExpr') return false;
    const { function: name, target, args } = value as { function: string; target?: unknown; args: unknown[] };
    if (BUILT_IN.has(name)) return false;
    const overloads = [...(ENVIRONMENT.funcs.find(name) ?? [])];
    const isKnown = overloads.some(
      (overload) =>
        (overload.target === undefined) === (target === undefined) &&
        overload.arguments.length === args.length,
    );
    if (!isKnown) found = name;
    return !isKnown;
  });
  return found;
}

function some(value: unknown, test: (node: Node) => boolean): boolean {
  if (value === null || typeof value !== 'object') return false;
  if (Array.isArray(value)) return value.some((item) => some(item, test));
  return test(value as Node) || Object.values(value).some((member) => some(member, test));
}
