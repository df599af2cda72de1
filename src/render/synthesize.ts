import { ApiObject, App, Chart, DependencyGraph } from 'cdk8s';
import type { IResolver, Lazy, ResolutionContext } from 'cdk8s';
import type { IConstruct } from 'constructs';
import type { StructuralSchema } from '../contract/crd.js';
import { messageOf, OperatorError } from '../contract/error.js';
import { contributedType } from '../contract/kind.js';
import type { AdminFiles, ContributedType, Render, RenderedKind, RenderInputs } from '../contract/kind.js';
import { childLabels, isOwnAnnotation, LAST_APPLIED_ANNOTATION, NAMESPACE } from '../contract/names.js';
import { controllerOf, describeRef, objectId, refOf } from '../contract/object.js';
import type { AnyObject, CustomResource, ObjectMeta } from '../contract/object.js';
import { groupKind } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { applyDefaults } from '../validate/defaults.js';
import { isMap, sorted } from '../values/json.js';
import { originOf, thrownReading } from '../values/origin.js';

/** Returns the objects that a construct was given, or lists of them. */
export function readOf({ references = {}, observed, related }: RenderInputs = {}): readonly unknown[] {
  return [...Object.values(references), observed, related];
}

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
    const { contributes = [] } = kind;
    const places = contributes.length === 0 ? [] : [...before].flatMap(([at, others]) => [at, ...others]);
    const foreign = places.flatMap((at) => children[at] ?? []).find((one) => contributedType(kind, one));
    if (foreign)
      throw refusal(
        'RenderFailed',
        `${ownerOf(kind, cr)} has ${describeRef(foreign)} in an order, of which it only sets fields; leave addDependency out, or render it once what it waits for is ready, by observes`,
      );
    const named = [...before].map(([at, others]) => [children[at], others.map((other) => children[other])]);
    const value = new Map(named as [AnyObject, AnyObject[]][]);
    Object.defineProperty(children, 'dependencies', { value });
  }
  return children;
};

function build(
  kind: RenderedKind,
  cr: CustomResource,
  {
    references,
    generated = kind.generated?.propsOf(cr),
    observed = [],
    related = [],
    status = {},
    deleted = false,
    ...files
  }: RenderInputs = {},
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
  const section = files.policy && (files.policy[kind.type.kind.toLowerCase()] ?? kind.policySchema?.default);
  const policy = withDefaults(section, kind.policySchema);
  const settings = kind.settingsSchema && settingsOf(kind, files);
  const props = {
    metadata: { name, ...(namespace && { namespace }), ...(kind.readsMetadata && readableMetadata(cr)) },
    spec: copyPlain(cr.spec ?? {}, 'spec'),
    apiVersion: kind.type.apiVersion,
    ...(policy !== undefined && { policy }),
    ...{ references, settings },
    ...(generated && { generated }),
    ...(kind.decorates && { object: copyPlain(contentOf(cr)) }),
    ...(kind.observes && { observed }),
    ...(kind.readsRelated && { related }),
    ...(kind.remembers && { status: copyPlain(status, 'status') }),
    ...(kind.finalizes && { deleted }),
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

/** Section that isn't given. */
const NONE = {};

/** Sections with the defaults of their schemas: each is the same one until its file changes. */
const defaulted = new WeakMap<StructuralSchema, WeakMap<object, unknown>>();

function withDefaults(section: unknown, schema: StructuralSchema | undefined): unknown {
  if (!schema || !isMap(section)) return section;
  const known = defaulted.get(schema) ?? new WeakMap<object, unknown>();
  defaulted.set(schema, known);
  if (!known.has(section)) known.set(section, applyDefaults(section, schema));
  return known.get(section);
}

/**
 * Returns a kind's section of the settings, with the defaults of its schema; undefined for a kind without one.
 * @throws OperatorError `SettingsMissing` where a required value isn't given, and has no default
 */
export function settingsOf(kind: Pick<RenderedKind, 'type' | 'settingsSchema'>, files?: AdminFiles): unknown {
  const { type, settingsSchema: schema } = kind;
  if (!schema) return undefined;
  const name = type.kind.toLowerCase();
  const section = withDefaults(files?.settings?.[name] ?? schema.default ?? NONE, schema) as object;
  const missing = schema.required?.find((field) => !Object.hasOwn(section, field));
  if (missing === undefined) return section;
  const message = `the operator's settings lack ${name}.${missing}, which ${type.kind} needs; give it in the file of --settings`;
  throw refusal('SettingsMissing', message);
}

/** Returns what an object of others says beside its metadata and status. */
export function contentOf({ metadata: _, status: _status, ...content }: CustomResource): object {
  return content;
}

/** Returns the labels and annotations of a custom resource that a construct may read: those of its users. */
export function readableMetadata({ metadata }: CustomResource): Pick<ObjectMeta, 'labels' | 'annotations'> {
  const { labels, annotations = {} } = metadata;
  const own = Object.entries(annotations).filter(
    ([name]) => !isOwnAnnotation(name) && name !== LAST_APPLIED_ANNOTATION,
  );
  return {
    ...(labels && { labels: copyPlain(labels) as Readonly<Record<string, string>> }),
    ...(own.length > 0 && { annotations: Object.fromEntries(own) }),
  };
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

/**
 * A Secret with its `stringData` encoded into `data`, where the API server would put it. Applied as it is, it would be
 * owned for ever and empty: what is dropped from it would stay in `data`, and each comparison would find it missing.
 * Anything else is returned as it is.
 * @see https://github.com/kubernetes/kubernetes/issues/108008
 */
export function withEncodedSecret(object: AnyObject): AnyObject {
  if (object.apiVersion !== 'v1' || object.kind !== 'Secret' || !isMap(object.stringData)) return object;
  const { stringData, data, ...rest } = object;
  const encoded = Object.entries(stringData).map(([key, value]): [string, unknown] => [
    key,
    // Anything but text is left for the API server to refuse.
    typeof value === 'string' ? Buffer.from(value).toString('base64') : value,
  ]);
  const merged = [...Object.entries(isMap(data) ? data : {}), ...encoded];
  // Last wins, as in the API server.
  const sorted = [...new Map(merged)].sort(([a], [b]) => (a < b ? -1 : 1));
  return { ...rest, data: Object.fromEntries(sorted) };
}

/** Spelled so that it has the same place among sorted keys, and nothing else has the name. */
const SPELLED = 'constructor\0reconstruct';

/**
 * A map with the key `constructor`, as cdk8s takes it, which distinguishes maps from classes by that member. `copyPlain`
 * brings the key back.
 * @returns nothing where there is no such key
 */
function spelledForCdk8s(map: unknown): object | undefined {
  if (typeof map !== 'object' || map === null || !Object.hasOwn(map, 'constructor')) return undefined;
  const { constructor, ...others } = map as { readonly constructor: unknown };
  return { ...others, [SPELLED]: constructor };
}

/**
 * Copies plain JSON, with the keys of all maps sorted. What is undefined in a map is left out.
 *
 * Copied by hand because this is on the way of every reconcile, where `structuredClone` takes longer than all of
 * the rendering.
 * @throws Error, naming the path, for anything that JSON can't say; OperatorError `Invalid` for a key named `__proto__`,
 *   which would be lost on the way through cdk8s, and for an integer that was rounded when it was read
 */
export function copyPlain(value: unknown, path = ''): unknown {
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown, index) => copyPlain(item, `${path}[${index}]`));
  if (typeof value === 'object') return copyMap(value, path);
  if (typeof value === 'number' && Number.isFinite(value)) {
    if (!Number.isInteger(value) || Number.isSafeInteger(value)) return value;
    const rounded = `${path || 'the value'} is ${value}: JavaScript rounds integers beyond 2^53 - 1; give a smaller one, or text`;
    throw refusal('Invalid', rounded);
  }
  const shown =
    typeof value === 'number' ? value : typeof value === 'undefined' ? 'undefined' : `a ${typeof value}`;
  throw new Error(`${path || 'the value'} is ${shown}, which JSON can't say`);
}

function copyMap(map: object, path: string): Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(map);
  if (prototype !== Object.prototype && prototype !== null) {
    throw new Error(`${path || 'the value'} is a ${map.constructor.name}, only plain maps can be rendered`);
  }
  const copy: Record<string, unknown> = {};
  for (const key of sorted(Object.keys(map))) {
    // A mistake in what was given, not in the construct: such a map can't be distinguished from one with another prototype.
    if (key === '__proto__')
      throw refusal(
        'Invalid',
        `${path || 'the value'} has a key named __proto__, which can't be rendered: give it another name`,
      );
    const member = (map as Record<string, unknown>)[key];
    const name = key === SPELLED ? 'constructor' : key;
    if (member !== undefined) copy[name] = copyPlain(member, path ? `${path}.${name}` : name);
  }
  return copy;
}

/** Names a custom resource in messages. */
export function ownerOf({ type: { kind } }: RenderedKind, cr: CustomResource): string {
  return describeRef({ ...refOf(cr), kind });
}

/**
 * Compares what a construct made with what its kind declares.
 * @returns the objects; cluster-scoped ones without the namespace that cdk8s gives to everything in a chart
 */
function checkChildren(kind: RenderedKind, cr: CustomResource, objects: readonly AnyObject[]): AnyObject[] {
  const owner = ownerOf(kind, cr);
  const labels = childLabels(kind.type, cr.metadata.name);
  const ids = new Set(kind.generated && [objectId(kind.generated.secretOf(cr))]);
  return objects.map((object) => {
    const type = declaredType(kind, owner, object);
    const { namespace: _, ...metadata } = object.metadata;
    const placed: AnyObject =
      type.namespaced || !object.metadata.namespace ? object : { ...object, metadata };
    const isForeign = kind.contributes && contributedType(kind, object) !== undefined;
    const child = isForeign ? withoutLabels(placed, labels) : placed;
    const what = `${owner} renders ${describeRef(child)}`;
    const { name, namespace } = child.metadata;
    const isOdd = namespace !== undefined && namespace.length <= LONGEST_LABEL && !NAMESPACE.test(namespace);
    if (isOdd || /^\.{1,2}$|[/%]/.test(name))
      throw refusal(
        'InvalidName',
        `${what}, whose name is "." or "..", or has "/" or "%", or whose namespace is none; let the CRD refuse it where it comes from the spec`,
      );
    if (!isInReach(kind.type, type, cr.metadata.namespace, namespace))
      throw refusal(
        'ForeignNamespace',
        `${what}, which is in another namespace; leave that out, or declare it: { apiVersion: '${type.apiVersion}', kind: '${type.kind}', namespaces: ['${namespace ?? ''}'] } in the kind's children`,
      );
    // Preconditions: the creation with a UID, and each change with an old version, would be a conflict for ever.
    const set = child.metadata.uid ? 'uid' : child.metadata.resourceVersion && 'resourceVersion';
    if (set)
      throw refusal('RenderFailed', `${what} with metadata.${set}, which the API server sets; leave it out`);
    const other = controllerOf(child);
    if (other)
      throw refusal(
        'RenderFailed',
        `${what} with ${other.kind} ${other.name} as its controller in metadata.ownerReferences, where the operator adds ${owner}; leave that out`,
      );
    checkLengths(what, cr.metadata.name, child);
    const id = objectId(child);
    if (ids.has(id)) throw refusal('DuplicateChild', `${what} twice; give the objects different names`);
    ids.add(id);
    return child;
  });
}

/** Returns an object of others without the labels of children, which cdk8s gives to everything in a chart. */
function withoutLabels(object: AnyObject, labels: Readonly<Record<string, string>>): AnyObject {
  const { labels: all = {}, ...metadata } = object.metadata;
  const own = Object.entries(all).filter(([name, text]) => labels[name] !== text);
  return {
    ...object,
    metadata: { ...metadata, ...(own.length > 0 && { labels: Object.fromEntries(own) }) },
  };
}

/** Reports whether an object of a type may be in a namespace for a custom resource in that of `home`. */
export function isInReach(
  owner: ResourceType,
  { namespaced, namespaces = [] }: ContributedType,
  home = '',
  namespace = '',
): boolean {
  if (!owner.namespaced || !namespaced || namespaces === '*') return true;
  return namespace === home || namespaces.includes(namespace);
}

function declaredType(kind: RenderedKind, owner: string, object: AnyObject): ContributedType {
  const { apiVersion, kind: childKind, metadata } = object as Partial<AnyObject>;
  if (![apiVersion, childKind, metadata?.name].every((text) => typeof text === 'string' && text !== ''))
    throw refusal(
      'RenderFailed',
      `${owner} renders an object without apiVersion, kind or metadata.name: ${JSON.stringify({ apiVersion, kind: childKind, metadata: { name: metadata?.name } })}`,
    );
  const types = [...kind.children, ...(kind.contributes ?? [])];
  const type = types.find((child) => child.apiVersion === apiVersion && child.kind === childKind);
  if (type) return type;
  const what = `${owner} renders ${describeRef(object)}`;
  const other = types.find((child) => groupKind(child) === groupKind(object));
  throw refusal(
    'UndeclaredChild',
    other
      ? `${what} of ${apiVersion}, of which kind ${kind.type.kind} declares ${other.apiVersion}; write that in the construct`
      : `${what}, which kind ${kind.type.kind} doesn't declare; add { apiVersion: '${apiVersion}', kind: '${childKind}' } to its children`,
  );
}

const LONGEST_LABEL = 63;
const LONGEST_NAME = 253;
/**
 * A CronJob's Jobs get eleven characters more.
 * @see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/
 */
const LONGEST_NAMES: Readonly<Record<string, number>> = {
  ...{ Namespace: 63, Service: 63, 'Job.batch': 63, 'CronJob.batch': 52 },
};

/**
 * Refuses a name or a label that the API server would refuse, since it is made of the custom resource's and became too long.
 * @throws OperatorError `NameTooLong`, with the rule by which the CRD keeps such names out
 */
function checkLengths(what: string, ownersName: string, object: AnyObject): void {
  const { name, namespace = '', labels = {} } = object.metadata;
  const texts = [
    ['name', name, LONGEST_NAMES[groupKind(object)] ?? LONGEST_NAME] as const,
    ['namespace', namespace, LONGEST_LABEL] as const,
    ...Object.entries(labels).map(([label, text]) => [`label ${label}`, text, LONGEST_LABEL] as const),
  ];
  const long = texts.find(([, text, most]) => text.length > most);
  if (!long) return;
  // Characters that the name of the custom resource may have, by each text that is made of it.
  const lengths = texts.map(([, text, most]) => {
    const times = text.split(ownersName).length - 1;
    return times === 0 ? LONGEST_NAME : Math.floor((most - text.length) / times) + ownersName.length;
  });
  const [field, text, most] = long;
  const shortest = text.includes(ownersName) ? Math.min(...lengths) : 0;
  const rule = `[{ rule: 'self.metadata.name.size() <= ${shortest}' }]`;
  throw refusal(
    'NameTooLong',
    `${what}, whose ${field} has ${text.length} characters, of which a ${field === 'name' ? object.kind : field.replace(/ .*/, '')} may have ${most}; make it shorter in the construct` +
      (shortest > 0 ? `, or let the CRD refuse it, with rules: ${rule} in defineCrd` : ''),
  );
}

function refusal(reason: string, message: string): OperatorError {
  return new OperatorError({ reason, message });
}
