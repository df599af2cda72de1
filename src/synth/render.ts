import { ApiObject, App, Chart } from 'cdk8s';
import type { IResolver, ResolutionContext } from 'cdk8s';
import { unsteadiness } from '../contract/deterministic.js';
import { messageOf, OperatorError } from '../contract/error.js';
import type { CustomResourceProps, Policy, Render, RenderedKind } from '../contract/kind.js';
import { childLabels } from '../contract/names.js';
import { describeRef, refOf } from '../contract/object.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import { originOf } from '../contract/origin.js';
import { checkChildren } from './children.js';
import { isLazy, lazyResolver } from './lazy.js';
import { copyPlain } from './plain.js';
import { withEncodedSecret } from './secrets.js';

/**
 * Renders a custom resource with the construct of its kind.
 *
 * **Guarantees.** In memory, without I/O; the same input gives the same objects, with the keys of their maps
 * sorted, whatever the environment says. The custom resource isn't changed. Every object is plain JSON, is of a
 * type that the kind declares, and is there once; namespaced ones are in the namespace of the custom resource.
 *
 * **Assumptions.** The custom resource is valid and has its defaults. The construct depends on its props alone: the
 * first time that it renders in a process, it is run twice, with another clock and other random numbers, and compared.
 *
 * **Errors.** An OperatorError that the construct throws comes through as it is. Others: `RenderFailed`,
 * `UndeclaredChild`, `DuplicateChild`, `NameTooLong`, `ForeignNamespace`, `NotDeterministic`.
 */
export const render: Render = (kind, cr, policy) => {
  const objects = renderOnce(kind, cr, policy);
  if (!compared.has(kind.construct)) {
    const owner = describeRef({ ...refOf(cr), kind: kind.type.kind });
    const error = unsteadiness(owner, objects, () => renderOnce(kind, cr, policy));
    if (error) throw error;
    compared.add(kind.construct);
  }
  return objects;
};

/** Constructs that have made the same objects twice. */
const compared = new WeakSet<RenderedKind['construct']>();

const renderOnce: Render = (kind, cr, policy) => {
  let objects: AnyObject[];
  try {
    objects = synthesize(kind, cr, policy, lazyResolver);
  } catch (error) {
    throw asOperatorError(kind, cr, policy, error);
  }
  return checkChildren(kind, cr, objects);
};

function synthesize(
  kind: RenderedKind,
  cr: CustomResource,
  policy: Policy | undefined,
  resolver: IResolver,
): AnyObject[] {
  const { name, namespace } = cr.metadata;
  const labels = childLabels(kind.type, name);
  // One App for each custom resource: many charts in one App take quadratic time.
  const chart = new Chart(new App({ resolvers: [resolver] }), namespace ? `${namespace}--${name}` : name, {
    ...(namespace && { namespace }),
    labels,
    disableResourceNameHashes: true,
  });
  const section = policy && (policy[kind.type.kind.toLowerCase()] ?? kind.policySchema?.default);
  const props = {
    metadata: { name, ...(namespace && { namespace }) },
    spec: copyPlain(cr.spec ?? {}, 'spec'),
    apiVersion: kind.type.apiVersion,
    ...(section !== undefined && { policy: section }),
  };
  new kind.construct(chart, name, props as CustomResourceProps<never>);
  const manifests: unknown[] = chart.toJson();
  if (chart.node.findAll().filter((node) => ApiObject.isApiObject(node)).length !== manifests.length) {
    throw new Error(
      'the construct makes a Chart of its own, whose objects would be lost; use a Construct instead',
    );
  }
  return manifests.map(inOrder);
}

/**
 * Copied and put in order, since JSON patches may have brought in anything and CDK8S_DISABLE_SORT switches off the
 * sorting by cdk8s.
 */
function inOrder(manifest: unknown): AnyObject {
  const { apiVersion, kind, metadata, ...rest } = copyPlain(manifest) as AnyObject;
  return withEncodedSecret({ apiVersion, kind, metadata, ...rest });
}

function asOperatorError(
  kind: RenderedKind,
  cr: CustomResource,
  policy: Policy | undefined,
  error: unknown,
): OperatorError {
  const lazy = findOperatorError(error) ? undefined : lazilyThrown(kind, cr, policy);
  const refusal = findOperatorError(error) ?? findOperatorError(lazy);
  if (refusal) return refusal;
  const hint = messageOf(error).includes("can't render non-simple object") ? '; give plain JSON' : '';
  const origin = originOf(lazy) ?? originOf(error);
  const place = origin === undefined ? '' : ` (at ${origin})`;
  return new OperatorError({
    reason: 'RenderFailed',
    message: `${describeRef({ ...refOf(cr), kind: kind.type.kind })} can't be rendered: ${messageOf(error)}${hint}${place}`,
    isBug: true,
    cause: error,
  });
}

function findOperatorError(error: unknown): OperatorError | undefined {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof OperatorError) return at;
  }
  return undefined;
}

/** What a lazy value threw: cdk8s keeps only its text, so the failed rendering is repeated with an ear to it. */
function lazilyThrown(kind: RenderedKind, cr: CustomResource, policy: Policy | undefined): unknown {
  let thrown: unknown;
  const listener = {
    resolve(context: ResolutionContext): void {
      if (!isLazy(context.value)) return;
      try {
        context.replaceValue(context.value.produce());
      } catch (error) {
        thrown ??= error;
        throw error;
      }
    },
  };
  try {
    synthesize(kind, cr, policy, listener);
  } catch {
    // It failed before and is known.
  }
  return thrown;
}
