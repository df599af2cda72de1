import { isCelError, parse, plan } from '@bufbuild/cel';
import type { CelResult, CelValue } from '@bufbuild/cel';
import { messageOf } from '../../contract/error.js';
import { ENVIRONMENT } from './environment.js';

/** What a rule may speak of. */
export interface Variables {
  readonly self: CelValue;
  readonly oldSelf?: CelValue;
}

export interface Program {
  readonly usesOldSelf: boolean;
  evaluate(variables: Variables): CelResult;
}

/** An expression that can't be judged here; `why` names what it uses. */
export interface Unknown {
  readonly why: string;
}

type Node = Readonly<Record<string, unknown>>;
type Expression = ReturnType<typeof parse>['expr'];

/**
 * Compiles an expression of CEL. Nothing of it is ever run as JavaScript.
 * @returns `Unknown` for what only the API server knows; that it is CEL at all, the API server has checked when the
 *   CRD was installed
 */
export function compile(expression: string): Program | Unknown {
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
export function failureOf(result: CelResult): string | undefined {
  return isCelError(result) ? messageOf(result) : undefined;
}
