import { isDeepStrictEqual } from 'node:util';
import { servedType, storedVersion } from '../contract/crd.js';
import type { CrdVersion, CustomResourceDefinition, StructuralSchema } from '../contract/crd.js';
import { keyOf } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { DefinitionChange } from '../install/apply.js';
import type { ClusterApi } from '../client/cluster.js';
import { applyDefaults } from '../validate/defaults.js';
import { formatPath } from '../values/path.js';
import { UNKNOWN_FIELD } from '../validate/problem.js';
import type { Problem } from '../validate/problem.js';
import { compileSchema } from '../validate/schema.js';
import { CliError } from './output.js';

/** Maximum number of objects that a line names. */
const MAX_EXAMPLES = 3;

/**
 * Refuses CustomResourceDefinitions that stored objects would lose data to: the API server drops fields that a schema
 * doesn't name without an error, at the next write of each object.
 * @throws CliError with exit code 3 that names what would be lost, how often, and examples
 */
export async function refuseDataLoss(
  changes: readonly DefinitionChange[],
  cluster: ClusterApi,
): Promise<void> {
  const losses: string[] = [];
  for (const change of changes) {
    const { present, next } = change;
    if (isDeepStrictEqual(present.spec.versions, next.spec.versions)) continue;
    const served = servedVersion(present);
    if (!served && isDeepStrictEqual(storedVersion(present).schema, storedVersion(next).schema)) continue;
    const found = served
      ? dataLosses(change, served, await cluster.list(servedType(present, served)))
      : ["no version of it is served, so its stored objects can't be read and checked; serve one first"];
    losses.push(...found.map((loss) => `CustomResourceDefinition ${next.metadata.name}: ${loss}`));
  }
  if (losses.length === 0) return;
  const remedy =
    'Nothing was changed: keep these fields, versions and the looser rules in the CustomResourceDefinition, or change the objects first; ' +
    'add --accept-data-loss to apply it all the same';
  throw new CliError([...losses, remedy], 3);
}

/** Returns one line for each field and version that stored objects would lose, and each place that would be invalid. */
function dataLosses(change: DefinitionChange, served: CrdVersion, objects: readonly AnyObject[]): string[] {
  if (objects.length === 0) return [];
  const version = storedVersion(change.next);
  const all = `${objects.length} ${change.next.spec.names.kind} ${objects.length === 1 ? 'object' : 'objects'}`;
  const [before, after] = [judgeBy(served), judgeBy(version)];
  const placeOf = (problem: Problem): string => place(problem, version.schema.openAPIV3Schema);
  /** Losses by place, with the problem as the first of the objects has it. */
  const losses = new Map<string, { readonly problem: Problem; readonly keys: string[] }>();
  for (const object of objects) {
    const key = keyOf(object);
    const known = new Set(before(object).map(placeOf));
    for (const problem of after(object)) {
      const place = placeOf(problem);
      const loss = losses.get(place) ?? { problem, keys: [] };
      if (known.has(place) || loss.keys.at(-1) === key) continue;
      loss.keys.push(key);
      losses.set(place, loss);
    }
  }
  const described = Array.from(losses.values(), ({ problem: { path, message }, keys }) => {
    const examples = keys.slice(0, MAX_EXAMPLES).join(', ') + (keys.length > MAX_EXAMPLES ? ', ...' : '');
    return message === UNKNOWN_FIELD
      ? `${formatPath(path)} would be dropped from ${keys.length} of ${all}: ${examples}`
      : `${formatPath(path)} would be invalid in ${keys.length} of ${all}: ${examples} (${message})`;
  });
  return [...lostVersions(change).map((lost) => `${lost} (${all})`), ...described];
}

function lostVersions({ present, next }: DefinitionChange): string[] {
  const stored = present.status?.storedVersions ?? [];
  return present.spec.versions.flatMap(({ name, served }) => {
    const kept = next.spec.versions.find((version) => version.name === name);
    if (!kept && stored.includes(name))
      return [
        `the version ${name}, in which objects are stored, would be removed, which the API server refuses: keep it with served: true`,
      ];
    return served && !kept?.served ? [`the version ${name} would no longer be served`] : [];
  });
}

function servedVersion({ spec: { versions } }: CustomResourceDefinition): CrdVersion | undefined {
  return versions.find(({ storage, served }) => storage && served) ?? versions.find(({ served }) => served);
}

function judgeBy({ schema: { openAPIV3Schema: schema } }: CrdVersion): (object: AnyObject) => Problem[] {
  const validate = compileSchema(schema);
  return (object) => validate(applyDefaults(object, schema));
}

/** Returns a key for the place of a problem: the items of a list are one place, as are the entries of a map. */
function place({ path, message }: Problem, schema: StructuralSchema): string {
  let at: StructuralSchema | undefined = schema;
  const steps = path.map((step) => {
    const { properties, items, additionalProperties: entries } = at ?? {};
    const isField = Object.hasOwn(properties ?? {}, step);
    at = isField ? properties?.[step] : (items ?? (typeof entries === 'object' ? entries : undefined));
    return isField || !at ? step : '*';
  });
  return JSON.stringify([steps, message === UNKNOWN_FIELD]);
}
