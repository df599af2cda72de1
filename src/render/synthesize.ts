import { ApiObject, App, Chart, DependencyGraph } from 'cdk8s';
import type { IResolver, Lazy, ResolutionContext } from 'cdk8s';
import type { IConstruct } from 'constructs';
import { messageOf, OperatorError } from '../contract/error.js';
import type { Render, RenderedKind, RenderInputs } from '../contract/kind.js';
import { childLabels } from '../contract/names.js';
import type { AnyObject, CustomResource } from '../contract/object.js';
import { originOf, thrownReading } from '../values/origin.js';
import { checkChildren, ownerOf } from './children.js';
import { copyPlain, spelledForCdk8s, withEncodedSecret } from './plain.js';
import { readOf } from './steadiness.js';

/** Renders with the construct of a kind, without a limit of time. */
export const synthesize: Render = (kind, cr, inputs) => {
  const resolver = new LazyResolver();
  let synthesized: ReturnType<typeof build>;
  try {
    synthesized = build(kind, cr, inputs, resolver);
  } catch (error) {
    const [thrown, lazy] = [error, resolver.thrown].map((one) => thrownReading(readOf(inputs), one));
    throw asOperatorError(ownerOf(kind, cr), thrown, lazy);
  }
  const { objects, before } = synthesized;
  const children = checkChildren(kind, cr, objects);
  if (before) {
    const named = [...before].map(([at, others]) => [children[at], others.map((other) => children[other])]);
    const value = new Map(named as [AnyObject, AnyObject[]][]);
    Object.defineProperty(children, 'dependencies', { value });
  }
  return children;
};

function build(
  kind: RenderedKind,
  cr: CustomResource,
  { policy, references, generated = kind.generated?.propsOf(cr), observed = [] }: RenderInputs = {},
  resolver: IResolver,
): { readonly objects: AnyObject[]; readonly before?: ReadonlyMap<number, readonly number[]> } {
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
    references,
    ...(generated && { generated }),
    ...(kind.observes && { observed }),
  };
  new kind.construct(chart, name, props as ConstructorParameters<typeof kind.construct>[2]);
  const all = chart.node.findAll();
  const depends = all.some(({ node }) => node.dependencies.length > 0);
  if (depends) checkDependencies(chart, all);
  const manifests: unknown[] = chart.toJson();
  const nodes = all.filter((node) => ApiObject.isApiObject(node));
  if (nodes.length !== manifests.length) {
    throw new Error(
      'the construct makes a Chart of its own, whose objects would be lost; use a Construct instead',
    );
  }
  const objects = manifests.map(inOrder);
  return { objects, ...(depends && { before: dependenciesOf(chart) }) };
}

/** Refuses dependencies on what is not of the chart, which is never applied here. */
function checkDependencies(chart: Chart, all: readonly IConstruct[]): void {
  for (const { node } of all)
    for (const { node: other } of node.dependencies) {
      const isAround = node.scopes.some((scope) => scope.node === other);
      if (!isAround && other.scopes.includes(chart)) continue;
      const why = isAround ? 'which contains it' : 'which is not rendered with this custom resource';
      throw new Error(
        `${node.path} depends on ${other.path || 'the App'}, ${why}; give addDependency another construct of the same custom resource`,
      );
    }
}

/** Returns by the place of each object in the chart those of what comes before it, of which cdk8s has noted the nearest. */
function dependenciesOf(chart: Chart): ReadonlyMap<number, readonly number[]> {
  const sorted: IConstruct[] = new DependencyGraph(chart.node).topology();
  const objects = sorted.filter((node): boolean => ApiObject.isApiObject(node));
  const before = new Map<number, readonly number[]>();
  for (const [at, { node }] of objects.entries()) {
    const nearest = node.dependencies.map((other) => objects.indexOf(other));
    const all = new Set(nearest.flatMap((other) => [other, ...(before.get(other) ?? [])]));
    // A construct that is depended on has no place itself, though the objects below it have.
    const places = [...objects.keys()].filter((place) => all.has(place));
    if (places.length > 0) before.set(at, places);
  }
  return before;
}

/**
 * Copied and put in order, since JSON patches may have brought in anything and CDK8S_DISABLE_SORT switches off the
 * sorting by cdk8s.
 */
function inOrder(manifest: unknown): AnyObject {
  const { apiVersion, kind, metadata, ...rest } = copyPlain(manifest) as AnyObject;
  return withEncodedSecret({ apiVersion, kind, metadata, ...rest });
}

/** @param lazy what a lazy value threw */
function asOperatorError(owner: string, error: unknown, lazy: unknown): OperatorError {
  const refusal = findOperatorError(error) ?? findOperatorError(lazy);
  if (refusal) return refusal;
  const hint = messageOf(error).includes("can't render non-simple object") ? '; give plain JSON' : '';
  const origin = originOf(lazy) ?? originOf(error);
  const place = origin === undefined ? '' : ` (at ${origin})`;
  return new OperatorError({
    reason: 'RenderFailed',
    message: `${owner} can't be rendered: ${messageOf(error)}${hint}${place}`,
    isBug: true,
    cause: error,
  });
}

function findOperatorError(error: unknown): OperatorError | undefined {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof OperatorError) return at;
  return undefined;
}

/** Symbol by which jsii notes the class, whatever copy of its package the class comes from. */
const RUNTIME_TYPE = Symbol.for('jsii.rtti');

/** Reports whether it is a lazy value, of our copy of cdk8s or of another: an author's project may bring its own. */
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
class LazyResolver implements IResolver {
  /** First error of a lazy value; cdk8s keeps only its text. */
  thrown: unknown;

  resolve(context: ResolutionContext): void {
    try {
      if (isLazy(context.value)) context.replaceValue(context.value.produce());
    } catch (error) {
      this.thrown ??= error;
      throw error;
    }
    const spelled = spelledForCdk8s(context.value);
    if (spelled) context.replaceValue(spelled);
  }
}
