import type { CrdVersion, StructuralSchema } from '../contract/crd.js';
import type { UnknownRule, Rules } from './cel/rules.js';
import { compileRules } from './cel/rules.js';
import { compileOpenApi } from './open-api.js';
import { showValue, UNKNOWN_FIELD } from './problem.js';
import type { Problem } from './problem.js';

/**
 * Names everything that is wrong with a custom resource; it must have its defaults already.
 * @param old what the cluster has. With it, rules on the change (`oldSelf`) are judged too, and what was wrong before
 *   and stays as it is passes, as in an update. Without it, the value is judged as if it were to be created.
 */
export type Validate = (value: unknown, old?: unknown) => Problem[];

interface SchemaOptions {
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

const MAX_REPLICAS = 2 ** 31 - 1;

/** The field that the subresource `scale` reads replicas from, as `.spec.replicas`; nothing without a `scale`. */
function replicasPath({ subresources }: CrdVersion): string | undefined {
  return (subresources?.scale as { readonly specReplicasPath?: string } | undefined)?.specReplicasPath;
}

/** Names what is wrong with replicas that have passed the schema, whose bounds may be wider than those of `scale`. */
function checkReplicas(value: unknown, fieldPath: string | undefined): Problem[] {
  if (fieldPath === undefined) return [];
  const path = fieldPath.split('.').filter((step) => step !== '');
  const replicas = path.reduce<unknown>(
    (at, step) => (at as Readonly<Record<string, unknown>> | null | undefined)?.[step],
    value,
  );
  if (typeof replicas !== 'number' || (replicas >= 0 && replicas <= MAX_REPLICAS)) return [];
  const message = `${showValue(replicas)} is not a number of replicas`;
  return [{ path, message, remedy: `give a number between 0 and ${MAX_REPLICAS}` }];
}
