import type { StructuralSchema } from '../../contract/crd.js';
import type { Path, Problem } from '../problem.js';
import { showValue } from '../problem.js';
import { compile, failureOf } from './program.js';
import type { Program, Variables } from './program.js';

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
