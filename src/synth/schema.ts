import type { CrdVersion, StructuralSchema } from '../contract/crd.js';
import type { UnknownRule } from './cel/rule.js';
import { compileRules } from './cel/rules.js';
import type { Rules } from './cel/rules.js';
import { compileOpenApi } from './open-api.js';
import { UNKNOWN_FIELD } from './problem.js';
import type { Problem } from './problem.js';
import { checkReplicas, replicasPath } from './scale.js';

/**
 * Names everything that is wrong with a custom resource; it must have its defaults already.
 * @param old what the cluster has. With it, rules on the change (`oldSelf`) are judged too, and what was wrong before
 *   and stays as it is passes, as in an update. Without it, the value is judged as if it were to be created.
 */
export type Validate = (value: unknown, old?: unknown) => Problem[];

export interface SchemaOptions {
  /**
   * Whether the kind has the subresource `status`: then the API server drops what a create or an update says about it.
   * @default false
   */
  readonly hasStatus?: boolean;
  /** Where the subresource `scale` reads replicas from. @default - there is no such subresource */
  readonly replicasPath?: string;
}

/** How a version of a CRD is judged. */
export function optionsFor(version: CrdVersion): SchemaOptions {
  const path = replicasPath(version);
  const hasStatus = version.subresources?.status !== undefined;
  return { hasStatus, ...(path !== undefined && { replicasPath: path }) };
}

/**
 * A validator with the verdict that the API server has under `fieldValidation=Strict`, names and the rules of
 * `unknownRules` aside. As there, the rules in CEL aren't asked about a value that the schema refuses for its form.
 * @throws Error if the schema itself is wrong, e.g. has a pattern that is no regular expression
 */
export function compileSchema(
  schema: StructuralSchema,
  { hasStatus = false, replicasPath: replicas }: SchemaOptions = {},
): Validate {
  const validate = compileOpenApi(schema);
  return (given, old) => {
    const value = hasStatus ? withStatusOf(given, old) : given;
    const { problems: found, blocksRules } = validate(value, old);
    const known = new Set(found.map(({ path }) => path.join('.')));
    const ofScale = checkReplicas(value, replicas).filter(({ path }) => !known.has(path.join('.')));
    const problems = [...found, ...ofScale];
    const dropped = value === given ? [] : unknownInStatus(validate(given).problems);
    if (blocksRules || dropped.length > 0) return [...problems, ...dropped];
    return [...problems, ...rulesFor(schema).judge(value, old)];
  };
}

/** The rules of a schema that aren't judged here, since they use what only the API server has. */
export function unknownRules(schema: StructuralSchema): readonly UnknownRule[] {
  return rulesFor(schema).unknown;
}

const compiled = new WeakMap<StructuralSchema, Rules>();

/** Compiled when they are first needed, and once. */
function rulesFor(schema: StructuralSchema): Rules {
  const rules = compiled.get(schema) ?? compileRules(schema);
  compiled.set(schema, rules);
  return rules;
}

/** What is written keeps the status that is there; what is new has none. */
function withStatusOf(value: unknown, old: unknown): unknown {
  if (value === null || typeof value !== 'object') return value;
  const hadStatus = old !== null && typeof old === 'object' && Object.hasOwn(old, 'status');
  if (hadStatus) return { ...value, status: (old as { readonly status: unknown }).status };
  if (!Object.hasOwn(value, 'status')) return value;
  return Object.fromEntries(Object.entries(value).filter(([key]) => key !== 'status'));
}

/** What is read before the status is dropped: the names of its fields. */
function unknownInStatus(problems: readonly Problem[]): Problem[] {
  return problems.filter(
    ({ path, message }) => path[0] === 'status' && path.length > 1 && message === UNKNOWN_FIELD,
  );
}
