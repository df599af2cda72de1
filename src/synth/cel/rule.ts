import { isCelError, parse, plan } from '@bufbuild/cel';
import type { CelResult, CelValue } from '@bufbuild/cel';
import type { StructuralSchema } from '../../contract/crd.js';
import { messageOf } from '../../contract/error.js';
import { showValue } from '../problem.js';
import type { Path, Problem } from '../problem.js';
import { ENVIRONMENT } from './environment.js';

/** An item of `x-kubernetes-validations`. */
export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly fieldPath?: string;
  readonly reason?: string;
  readonly optionalOldSelf?: boolean;
}

/** A rule that is ready to be judged. */
export interface Rule {
  readonly source: ValidationRule;
  readonly program: Program;
  /** Where its failure is told, below the value that it is about. */
  readonly fieldPath: Path;
  readonly messageProgram?: Program;
}

/** A rule that only the API server can judge. */
export interface UnknownRule {
  readonly rule: string;
  /** What it uses that isn't known here. */
  readonly why: string;
}

export function rulesOf(schema: StructuralSchema): readonly ValidationRule[] {
  return (schema['x-kubernetes-validations'] ?? []) as readonly ValidationRule[];
}

export function compileRule(source: ValidationRule): Rule | UnknownRule {
  const program = compile(source.rule);
  if ('why' in program) return { rule: source.rule.trim(), why: program.why };
  // A message that isn't known here is replaced by the plain one, as the API server does with one that fails.
  const message = source.messageExpression === undefined ? undefined : compile(source.messageExpression);
  return {
    source,
    program,
    fieldPath: parseFieldPath(source.fieldPath ?? ''),
    ...(message !== undefined && !('why' in message) && { messageProgram: message }),
  };
}

/** Takes `.a['b c'].d` apart. */
function parseFieldPath(fieldPath: string): string[] {
  return [...fieldPath.matchAll(/\.([^.[]+)|\['((?:[^'\\]|\\.)*)'\]/g)].map(
    ([, name, quoted = '']) => name ?? quoted.replace(/\\(.)/g, '$1'),
  );
}

/** What to do about a failure, by its `reason`. */
const REMEDIES: Readonly<Record<string, string>> = {
  FieldValueRequired: 'add it',
  FieldValueForbidden: 'remove it',
  FieldValueDuplicate: 'give another one',
};

/** A value that doesn't keep a rule. */
export interface Failure {
  readonly problem: Problem;
  /** The rule couldn't be evaluated. */
  readonly isError: boolean;
}

/** @returns nothing if the value keeps the rule */
export function judge(rule: Rule, variables: Variables, value: unknown, path: Path): Failure | undefined {
  const { source, program, fieldPath } = rule;
  const result = program.evaluate(variables);
  if (result === true) return undefined;
  const failure = failureOf(result);
  if (failure !== undefined) {
    const message = `${source.message?.trim() ?? `the rule ${source.rule.trim()} fails`} (${failure})`;
    const remedy = 'change it so that the rule can be judged';
    return { problem: { path, message: withValue(value, message), remedy }, isError: true };
  }
  const at = valueAt(value, fieldPath);
  const said = messageFor(rule, variables);
  const remedy = remedyFor(source.reason, said);
  const problem = {
    path: [...path, ...fieldPath],
    message: withValue(at, said),
    ...(remedy !== undefined && { remedy }),
  };
  return { problem, isError: false };
}

/** A rule whose message tells what to do needs no more. */
function remedyFor(reason: string | undefined, message: string): string | undefined {
  return /; |^give /.test(message) ? undefined : (REMEDIES[reason ?? ''] ?? 'change it');
}

function messageFor({ source, messageProgram }: Rule, variables: Variables): string {
  const made = messageProgram?.evaluate(variables);
  const text = typeof made === 'string' ? made.trim() : '';
  if (text !== '' && !text.includes('\n') && Buffer.byteLength(text) <= MAX_MESSAGE_BYTES) return text;
  return source.message?.trim() || `failed rule: ${source.rule.trim()}`;
}

/** What the API server takes of a `messageExpression`. */
const MAX_MESSAGE_BYTES = 5 * 1024;

function withValue(value: unknown, message: string): string {
  const isScalar = value !== null && value !== undefined && typeof value !== 'object';
  return isScalar ? `${showValue(value)} is refused: ${message}` : message;
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (at, step) => (at as Record<string, unknown> | null | undefined)?.[step],
    value,
  );
}

/** What a rule may speak of. */
interface Variables {
  readonly self: CelValue;
  readonly oldSelf?: CelValue;
}

interface Program {
  readonly usesOldSelf: boolean;
  evaluate(variables: Variables): CelResult;
}

/** An expression that can't be judged here; `why` names what it uses. */
interface Unknown {
  readonly why: string;
}

type Node = Readonly<Record<string, unknown>>;
type Expression = ReturnType<typeof parse>['expr'];

/**
 * Compiles an expression of CEL. Nothing of it is ever run as JavaScript.
 * @returns `Unknown` for what only the API server knows; that it is CEL at all, the API server has checked when the
 *   CRD was installed
 */
function compile(expression: string): Program | Unknown {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(expression);
  } catch (error) {
    return { why: `its syntax (${messageOf(error).split('\n')[0] ?? ''})` };
  }
  const unknown = findUnknown(parsed.expr);
  if (unknown !== undefined) return { why: `${unknown}()` };
  const run = plan(ENVIRONMENT, parsed);
  return {
    usesOldSelf: some(
      parsed.expr,
      ({ case: kind, value }) => kind === 'identExpr' && nameOf(value) === 'oldSelf',
    ),
    evaluate: (variables) => run({ ...variables }),
  };
}

/** What the evaluator does itself. */
const BUILT_IN = new Set(['_[_]', '_?_:_', '_&&_', '_||_', '@not_strictly_false', '__not_strictly_false__']);

/** The first function that isn't known here with so many arguments. */
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

/** Whether any node of an expression passes a test. */
function some(value: unknown, test: (node: Node) => boolean): boolean {
  if (value === null || typeof value !== 'object') return false;
  if (Array.isArray(value)) return value.some((item) => some(item, test));
  return test(value as Node) || Object.values(value).some((member) => some(member, test));
}

function nameOf(value: unknown): unknown {
  return (value as { readonly name?: unknown }).name;
}

/** The message of an evaluation that failed. */
function failureOf(result: CelResult): string | undefined {
  return isCelError(result) ? messageOf(result) : undefined;
}
