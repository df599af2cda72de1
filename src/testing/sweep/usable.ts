import { storedVersion } from '../../contract/crd.js';
import { OperatorError } from '../../contract/error.js';
import type { Kind } from '../../contract/kind.js';
import type { AnyObject } from '../../contract/object.js';
import { suggest } from '../../contract/suggest.js';
import { judge } from '../../synth/custom-resource.js';
import { KnownKinds } from '../../synth/known-kinds.js';
import { formatProblem, showValue } from '../../synth/problem.js';
import { leavesOf } from '../walk/shape.js';
import { madeBy, removedBy } from './made.js';
import { ANY_SITE, contextOf } from './surroundings.js';
import type { MakeSurroundings } from './surroundings.js';

/** What of the options is looked at. */
interface Given {
  readonly surroundings?: MakeSurroundings;
  readonly checks?: readonly string[];
  readonly notWalked?: readonly string[];
}

/** @throws OperatorError `InvalidInput` where a kind can't be swept with these */
export function requireUsable(
  kind: Kind,
  samples: readonly AnyObject[],
  { surroundings, checks, notWalked = [] }: Given,
  known: readonly string[],
): void {
  const { type } = kind;
  if (samples.length === 0) throw unusable(`give at least one ${type.kind}`);
  if (!type.namespaced)
    throw unusable(`${type.kind} is cluster-scoped, and only namespaced kinds can be swept`);
  const other = samples.find(
    ({ apiVersion, kind: of }) => apiVersion !== type.apiVersion || of !== type.kind,
  );
  if (other)
    throw unusable(
      `a sample is a ${other.kind} of ${other.apiVersion}; give samples of ${type.kind} of ${type.apiVersion}`,
    );
  for (const [index, sample] of samples.entries()) requireValid(kind, sample, index);
  if (checks?.length === 0) throw unusable(`checks is empty; leave it out to run all: ${known.join(', ')}`);
  requireKnown('checks', checks ?? [], known);
  requireKnown('notWalked', notWalked, fieldsOf(kind));
  requireSurroundings(kind, surroundings);
}

/** Else a sweep would find that a refused custom resource doesn't do anything wrong. */
function requireValid(kind: Kind, { apiVersion, kind: of, metadata, spec }: AnyObject, index: number): void {
  const version = new KnownKinds([kind]).find({ apiVersion, kind: of });
  if (!('kind' in version)) throw unusable(formatProblem(version));
  const { labels, annotations } = metadata;
  const named = {
    name: 'swept',
    namespace: 'sweep',
    ...(labels && { labels }),
    ...(annotations && { annotations }),
  };
  const problems = judge(version, version.withDefaults({ apiVersion, kind: of, metadata: named, spec }));
  if (problems.length > 0)
    throw unusable(problems.map((problem) => `sample ${index + 1}: ${formatProblem(problem)}`).join('\n'));
}

function requireKnown(option: string, given: readonly string[], known: readonly string[]): void {
  const unknown = given.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const near = suggest(unknown, known);
  const meant = near === undefined ? `known are ${known.join(', ')}` : `did you mean ${near}?`;
  throw unusable(`${option}: there is no ${showValue(unknown)}; ${meant}`);
}

/** Every field of the spec, and all that holds some. */
function fieldsOf({ crd }: Kind): string[] {
  const leaves = leavesOf(storedVersion(crd).schema.openAPIV3Schema.properties?.spec ?? {});
  const paths = leaves.flatMap((path) => path.map((_, index) => path.slice(0, index + 1).join('.')));
  return [...new Set(paths)];
}

function requireSurroundings(kind: Kind, surroundings: MakeSurroundings | undefined): void {
  const context = contextOf(surroundings?.(ANY_SITE) ?? {});
  const [removed] = removedBy(kind, context);
  if (removed && !surroundings)
    throw unusable(
      `${kind.type.kind} deletes objects of the kind ${removed.kind}; give some of them by the option surroundings`,
    );
  for (const { type, namespaces = [] } of madeBy(kind, context)) {
    const elsewhere = namespaces.find((namespace) => namespace !== ANY_SITE.elsewhere);
    if (elsewhere !== undefined)
      throw unusable(
        `${kind.type.kind} shares a ${type.kind} in the namespace ${elsewhere}, which all trials would have in common; lead it to site.elsewhere, by flags or policy of the option surroundings`,
      );
  }
}

function unusable(message: string): OperatorError {
  return new OperatorError({ reason: 'InvalidInput', message: `sweep: ${message}` });
}
