import type { Kind, Policy } from '../contract/kind.js';
import { OperatorError } from '../contract/error.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import { judge, KnownKinds } from '../synth/custom-resource.js';
import { formatProblem, InputError } from '../synth/problem.js';
import { render as renderOne } from '../synth/render.js';

/**
 * What the operator applies for a custom resource, for snapshots: in memory, without a cluster.
 *
 * **Guarantees.** The custom resource is judged by its CRD and gets its defaults, as the API server would do it. The same
 * custom resource gives the same objects, in the same order, with the members of their maps sorted.
 *
 * **Errors.** `InvalidInput` with each mistake in the custom resource; what the renderer tells; `InvalidInput` too for a
 * kind that renders several custom resources together.
 */
export function render(kind: Kind, cr: object, policy?: Policy): AnyObject[] {
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
  return renderOne(kind.rendering.each, version.stored(candidate) as CustomResource, policy);
}
