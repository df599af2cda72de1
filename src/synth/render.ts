import { ApiObject, App, Chart } from 'cdk8s';
import type { IResolver, Lazy, ResolutionContext } from 'cdk8s';
import { unsteadiness } from '../contract/deterministic.js';
import { messageOf, OperatorError } from '../contract/error.js';
import type { CustomResourceProps, Policy, Render, RenderedKind } from '../contract/kind.js';
import { childLabels } from '../contract/names.js';
import { describeRef, isMap, refOf } from '../contract/object.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import { originOf } from '../contract/origin.js';
import { checkChildren } from './children.js';
import { copyPlain, spelledForCdk8s } from './plain.js';

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

/** Where jsii notes which class it is, whatever copy of its package the class comes from. */
const RUNTIME_TYPE = Symbol.for('jsii.rtti');

/** Whether it is a lazy value, of our copy of cdk8s or of another: an author's project may bring its own. */
function isLazy(value: unknown): value is Lazy {
  const { produce } = (value ?? {}) as Partial<Lazy>;
  // Asked of every value that is rendered, and nearly all of them answer here.
  if (typeof produce !== 'function') return false;
  const type = (value as Lazy).constructor as { readonly [RUNTIME_TYPE]?: { readonly fqn?: string } };
  return type[RUNTIME_TYPE]?.fqn === 'cdk8s.Lazy';
}

/**
 * Produces lazy values of any copy of cdk8s; its own resolver knows only those of the same copy. Comes first, so it also
 * keeps maps from being taken for something else.
 */
const lazyResolver: IResolver = {
  resolve(context: ResolutionContext): void {
    if (isLazy(context.value)) context.replaceValue(context.value.produce());
    const spelled = spelledForCdk8s(context.value);
    if (spelled) context.replaceValue(spelled);
  },
};

/**
 * A Secret with its `stringData` encoded into `data`, where the API server would put it. Applied as it is, it would be
 * owned for ever and empty: what is dropped from it would stay in `data`, and each comparison would find it missing.
 * Anything else is returned as it is.
 * @see https://github.com/kubernetes/kubernetes/issues/108008
 */
export function withEncodedSecret(object: AnyObject): AnyObject {
  if (object.apiVersion !== 'v1' || object.kind !== 'Secret' || !isMap(object.stringData)) return object;
  const { stringData, data, ...rest } = object;
  const encoded = Object.entries(stringData).map(([key, value]) => [key, encode(value)] as const);
  const merged = [...Object.entries(isMap(data) ? data : {}), ...encoded];
  // Last wins, as in the API server.
  const sorted = [...new Map(merged)].sort(([a], [b]) => (a < b ? -1 : 1));
  return { ...rest, data: Object.fromEntries(sorted) };
}

/** What isn't text is for the API server to refuse. */
function encode(value: unknown): unknown {
  return typeof value === 'string' ? Buffer.from(value, 'utf8').toString('base64') : value;
}
