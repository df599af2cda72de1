import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkNames } from '../author/definition.js';
import { OperatorError } from '../contract/error.js';
import type { Kind, StandaloneController } from '../contract/kind.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import { groupOf } from '../contract/object.js';
import { judge, KnownKinds, readCustomResources } from '../validate/custom-resource.js';
import { formatProblem, InputError } from '../validate/problem.js';
import { isObject, offlineInputs } from '../render/references.js';
import type { OfflineInputs } from '../render/references.js';
import { render as renderOne } from '../render/renderer.js';
import { suggest } from '../values/suggest.js';

/**
 * Renders what the operator applies for a custom resource, for snapshots: in memory, without a cluster.
 *
 * **Guarantees.** The custom resource is judged by its CRD and gets its defaults, as the API server would do it. The same
 * custom resource gives the same objects, in the same order, with the members of their maps sorted.
 *
 * @param kind a kind, or what `decorate` has made: then the object of others stands in place of the custom resource, and isn't judged
 * @param around policy and settings of the operator by kind, the objects that the custom resource refers to or that are related to it, and the children that it observes
 *
 * **Errors.** `InvalidInput` with each mistake in the custom resource; those of the renderer; `InvalidInput` too for a
 * kind that renders several custom resources together. `InvalidDefinition` for another member of `around`.
 */
export function render(
  kind: Kind | StandaloneController,
  cr: object,
  around: OfflineInputs = {},
): AnyObject[] {
  checkNames(
    'render',
    around,
    AROUND,
    'give { policy }, { settings }, { references }, { observed }, { related }, { status } or { deleted }',
  );
  if (!('crd' in kind)) {
    if (!kind.renders)
      throw new OperatorError({ reason: 'InvalidInput', message: `${kind.name} renders nothing` });
    return renderOne(kind.renders, cr as CustomResource);
  }
  if (!('each' in kind.rendering))
    throw new OperatorError({
      reason: 'InvalidInput',
      message: `${kind.type.kind} renders its custom resources together; render them with \`reconstruct synth\``,
    });
  const version = new KnownKinds([kind]).find(cr);
  if (!('kind' in version)) throw new InputError([formatProblem(version)]);
  const candidate = version.withDefaults(cr);
  const problems = judge(version, candidate);
  if (problems.length > 0) throw new InputError(problems.map(formatProblem));
  const { each } = kind.rendering;
  const stored = version.stored(candidate) as CustomResource;
  return renderOne(each, stored, offlineInputs(each, stored, around));
}

const AROUND = ['policy', 'settings', 'references', 'observed', 'related', 'status', 'deleted'];

/** A custom resource of a file. */
export type SampleObject = AnyObject & { readonly spec: Readonly<Record<string, unknown>> };

/**
 * Reads the custom resources of a kind from a YAML file; objects of other kinds, such as those that they refer to, are left out.
 *
 * @returns them as they are written, at least one
 * @throws OperatorError `InvalidInput` with file, document, line and path of each mistake
 */
export async function readSamples(
  kind: Kind,
  file: string | URL,
): Promise<readonly [SampleObject, ...SampleObject[]]> {
  const path = file instanceof URL ? fileURLToPath(file) : file;
  const below = relative('.', path);
  const sources = [below.startsWith('..') ? path : below];
  const inputs = await readCustomResources({
    ...{ sources, kinds: [kind] },
    // Of another group, a name that is alike is no mistake.
    takes: ({ value }) =>
      isObject(value) &&
      (groupOf(value.apiVersion) === groupOf(kind.type.apiVersion)
        ? suggest(value.kind, [kind.type.kind]) === undefined
        : value.kind !== kind.type.kind),
  });
  return inputs.map(({ document }) => document.value) as [SampleObject, ...SampleObject[]];
}
