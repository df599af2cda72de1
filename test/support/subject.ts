import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import type { Condition } from '../../src/contract/conditions.js';
import type { OwnedKind } from '../../src/contract/kind.js';
import { APPLIED_HASH_ANNOTATION, childrenFieldManager } from '../../src/contract/names.js';
import { controllerOf } from '../../src/contract/object.js';
import type { AnyObject, CustomResource, ObjectRef } from '../../src/contract/object.js';
import { groupKind } from '../../src/contract/resource.js';
import type { ResourceType } from '../../src/contract/resource.js';
import { render } from '../../src/render/renderer.js';
import { events, eventually, installCrd } from './cluster.js';
import type { Cluster, DeleteOptions, EventuallyOptions, Place } from './cluster.js';

/** A custom resource as it is in the cluster. */
export type LiveResource = CustomResource<
  Readonly<Record<string, unknown>>,
  {
    readonly observedGeneration?: number;
    readonly conditions?: readonly Condition[];
    readonly [field: string]: unknown;
  }
>;

/** The custom resources of one kind in one namespace, as their user sees them. */
export class Subject {
  constructor(
    readonly cluster: Cluster,
    readonly kind: OwnedKind,
    readonly namespace: string,
  ) {}

  /** Makes a namespace of its own for a kind, whose CRD is installed. */
  static async make(cluster: Cluster, kind: OwnedKind, purpose: string): Promise<Subject> {
    await installCrd(cluster, kind);
    return new Subject(cluster, kind, await cluster.makeNamespace(purpose));
  }

  place(name: string): Place {
    return { type: this.kind.type, namespace: this.namespace, name };
  }

  childPlace(type: ResourceType, name: string): Place {
    return { type, namespace: this.namespace, name };
  }

  async create(name: string, spec: object): Promise<LiveResource> {
    const { apiVersion, kind } = this.kind.type;
    const metadata = { name, namespace: this.namespace };
    return (await this.cluster.create(this.kind.type, {
      ...{ apiVersion, kind, metadata, spec },
    })) as unknown as LiveResource;
  }

  async edit(name: string, spec: object): Promise<void> {
    await this.cluster.replaceSpec(this.place(name), spec);
  }

  /** Changes what leads to a reconcile, and to nothing else. */
  async touch(name: string, value = 'yes'): Promise<void> {
    await this.cluster.merge(this.place(name), {
      metadata: { annotations: { 'example.com/touched': value } },
    });
  }

  async get(name: string): Promise<LiveResource> {
    return this.cluster.get<LiveResource>(this.place(name));
  }

  async delete(name: string, options?: DeleteOptions): Promise<void> {
    await this.cluster.delete(this.place(name), options);
  }

  /** Waits until a condition of the present generation is as wanted. */
  async condition(name: string, wanted: Partial<Condition>): Promise<Condition> {
    return eventually(async () => {
      const { metadata, status } = await this.get(name);
      const condition = status?.conditions?.find(({ type }) => type === wanted.type);
      expect(condition, name).toMatchObject({ ...wanted, observedGeneration: metadata.generation });
      expect(status?.observedGeneration).toBe(metadata.generation);
      return condition!;
    });
  }

  /** Waits until the present generation is Ready. */
  async ready(name: string): Promise<void> {
    await this.condition(name, { type: 'Ready', status: 'True' });
  }

  /** Waits until the present generation is stalled for this reason. */
  async stalled(name: string, reason: string): Promise<Condition> {
    return this.condition(name, { type: 'Stalled', status: 'True', reason });
  }

  /** Waits until so many objects of a type, whose names begin so, are there. */
  async hasSome(type: ResourceType, prefix: string, least: number): Promise<void> {
    await eventually(
      async () => {
        const names = namesOf(await this.cluster.list(type, this.namespace));
        expect(names.filter((name) => name.startsWith(prefix)).length).toBeGreaterThanOrEqual(least);
      },
      { intervalMilliseconds: 5 },
    );
  }

  /** Returns the events about a custom resource. */
  async events(name: string): Promise<(AnyObject & { readonly reason: string; readonly note: string })[]> {
    const all = await this.cluster.list<AnyObject & { regarding: ObjectRef; reason: string; note: string }>(
      events,
      this.namespace,
    );
    const { kind } = this.kind.type;
    return all.filter(({ regarding }) => regarding.kind === kind && regarding.name === name);
  }

  /** The children of one type, found by their owner reference. */
  async children(type: ResourceType, cr: LiveResource): Promise<AnyObject[]> {
    const live = await this.objects(type);
    return live
      .filter((object) => controllerOf(object)?.uid === cr.metadata.uid)
      .map((object) => ({ ...object, apiVersion: type.apiVersion, kind: type.kind }));
  }

  /** All objects of a type of children, whatever made them; none, where the type need not be installed and isn't. */
  async objects(type: ResourceType): Promise<AnyObject[]> {
    const { watches } = this.kind.controllers({ render })[0]!;
    return watches.some((watch) => watch.optional && groupKind(watch.type) === groupKind(type))
      ? this.cluster.listIfServed(type, this.namespace)
      : this.cluster.list(type, this.namespace);
  }

  /** Waits until the children are exactly what the custom resource renders to now, and the status says so. */
  async asRendered(name: string, options?: EventuallyOptions): Promise<void> {
    await eventually(async () => {
      const cr = await this.get(name);
      const rendered = render(this.kind, cr);
      for (const type of this.kind.children) {
        const wanted = rendered.filter((object) => groupKind(object) === groupKind(type));
        await this.requireChildren(cr, type, wanted);
      }
      expect(cr.status?.observedGeneration).toBe(cr.metadata.generation);
    }, options);
  }

  private async requireChildren(
    cr: LiveResource,
    type: ResourceType,
    wanted: readonly AnyObject[],
  ): Promise<void> {
    const { apiVersion, kind, metadata } = cr;
    const owner = { apiVersion, kind, name: metadata.name, uid: metadata.uid };
    const live = await this.children(type, cr);
    expect(namesOf(live)).toEqual(namesOf(wanted));
    for (const object of wanted) {
      const child = live.find(({ metadata }) => metadata.name === object.metadata.name)!;
      const applied = appliedBy(childrenFieldManager(this.kind.type.kind), child);
      expect(withoutBookkeeping(applied, object)).toEqual(asStored(object));
      expect(applied.metadata.ownerReferences).toEqual([
        { ...owner, controller: true, blockOwnerDeletion: true },
      ]);
      expect(applied.metadata.annotations?.[APPLIED_HASH_ANNOTATION]).toMatch(
        new RegExp(`^[0-9a-f]{32} ${owner.uid}$`),
      );
    }
  }
}

/** Returns the names of objects, sorted. */
export function namesOf(objects: readonly AnyObject[]): string[] {
  return objects.map(({ metadata }) => metadata.name).sort();
}

/** Returns an object without what its own controller reports, and without the record of its writes. */
export function asked({ status, metadata, ...rest }: AnyObject & { readonly status?: unknown }): object {
  const { resourceVersion, managedFields, ...identity } = metadata as AnyObject['metadata'] & {
    readonly managedFields?: unknown;
  };
  return { ...rest, metadata: identity };
}

interface Fields {
  readonly [segment: string]: Fields;
}

export interface ManagedFieldsEntry {
  readonly manager: string;
  readonly operation: string;
  readonly subresource?: string;
  readonly fieldsV1: Fields;
}

type Json = Record<string, unknown>;

/**
 * Returns the part of a live object that a manager has applied and still owns: the values of the paths in its entry of
 * `managedFields`, and what names the object.
 * @throws if the manager has applied nothing
 */
export function appliedBy(manager: string, object: AnyObject): AnyObject {
  const entry = appliedEntriesOf(object).find((candidate) => candidate.manager === manager);
  if (!entry) throw new Error(`${manager} has applied nothing to ${object.kind} ${object.metadata.name}`);
  return ownedBy(entry, object);
}

/** Returns the entries of an object's `managedFields`. */
export function entriesOf(object: AnyObject): readonly ManagedFieldsEntry[] {
  return (object.metadata as { managedFields?: readonly ManagedFieldsEntry[] }).managedFields ?? [];
}

/** Returns the entries of server-side applies, but for those of the status. */
export function appliedEntriesOf(object: AnyObject): ManagedFieldsEntry[] {
  return entriesOf(object).filter(
    ({ operation, subresource }) => operation === 'Apply' && subresource === undefined,
  );
}

/** Returns the managers of a Deployment's `spec.replicas`. */
export function replicasManagers(deployment: AnyObject): string[] {
  return entriesOf(deployment)
    .filter(({ fieldsV1 }) => 'f:replicas' in (fieldsV1['f:spec'] ?? {}))
    .map(({ manager }) => manager);
}

/** Returns the part of a live object that is owned by an entry of its `managedFields`, and what names the object. */
export function ownedBy(entry: ManagedFieldsEntry, object: AnyObject): AnyObject {
  const { name, namespace } = object.metadata;
  const owned = pick(object, entry.fieldsV1) as AnyObject;
  return {
    ...owned,
    ...{ apiVersion: object.apiVersion, kind: object.kind },
    metadata: { ...owned.metadata, name, ...(namespace !== undefined && { namespace }) },
  };
}

/**
 * Returns an applied object, to be compared with what was rendered, without what the controller adds, the owner reference and
 * the annotation with the hash, and without what the API server has written into objects that were rendered empty.
 */
export function withoutBookkeeping(object: AnyObject, rendered: AnyObject): AnyObject {
  const { ownerReferences, annotations = {}, ...metadata } = object.metadata;
  const others = Object.entries(annotations).filter(([key]) => key !== APPLIED_HASH_ANNOTATION);
  const kept = others.length === 0 ? {} : { annotations: Object.fromEntries(others) };
  return comparable(unfilled({ ...object, metadata: { ...metadata, ...kept } }, rendered)) as AnyObject;
}

function unfilled(value: unknown, rendered: unknown): unknown {
  if (typeof value !== 'object' || value === null || typeof rendered !== 'object' || rendered === null)
    return value;
  if (Object.keys(rendered).length === 0) return {};
  if (Array.isArray(value))
    return value.map((item, index) => unfilled(item, (rendered as readonly unknown[])[index]));
  const fields = Object.entries(value).map(([key, inner]) => [key, unfilled(inner, (rendered as Json)[key])]);
  return Object.fromEntries(fields);
}

/** Defaults of references that are owned as a whole, by their field. */
const DEFAULTS: Readonly<Record<string, Json>> = {
  fieldRef: { apiVersion: 'v1' },
  resourceFieldRef: { divisor: 0 },
  serviceAccountToken: { expirationSeconds: 3600 },
  parentRefs: { group: 'gateway.networking.k8s.io', kind: 'Gateway' },
  backendRefs: { kind: 'Service', weight: 1 },
};

/** Units of quantities. @see https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/ */
const UNITS: Readonly<Record<string, number>> = {
  ...{ '': 1, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30 },
};

/** Returns an object as the API server stores it: with defaults, and as `comparable` has the rest. */
export function asStored(object: AnyObject): AnyObject {
  return comparable(object, DEFAULTS) as AnyObject;
}

/** Returns a value in which quantities are numbers, and what is empty is left out, as the API server may do it. */
function comparable(
  value: unknown,
  defaults: Readonly<Record<string, Json>> = {},
  path: readonly string[] = [],
): unknown {
  if (Array.isArray(value)) return value.map((item) => comparable(item, defaults, path));
  if (typeof value === 'object' && value !== null) {
    const fields = Object.entries(value)
      .map(([key, inner]) => [key, comparable(inner, defaults, [...path, key])] as const)
      .filter(([, inner]) => !isEmpty(inner));
    return { ...defaults[path.at(-1) ?? ''], ...Object.fromEntries(fields) };
  }
  return isQuantity(path) ? amountOf(String(value)) : value;
}

function isEmpty(value: unknown): boolean {
  if (value === '' || value === undefined) return true;
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function isQuantity(path: readonly string[]): boolean {
  const [last = '', parent, grandparent] = [...path].reverse();
  if (grandparent === 'resources' || (parent === 'target' && last === 'value')) return true;
  return ['divisor', 'averageValue', 'tolerance', 'sizeLimit'].includes(last);
}

function amountOf(text: string): number | string {
  const [, digits, unit = ''] = /^([+-]?[\d.]+)([a-zA-Z]*)$/.exec(text) ?? [];
  const factor = UNITS[unit];
  if (digits === undefined || factor === undefined) return text;
  // Rounded, since 0.1 and 100 thousandths differ in their last bit.
  return Number((Number(digits) * factor).toPrecision(12));
}

function pick(value: unknown, fields: Fields): unknown {
  const segments = Object.keys(fields).filter((segment) => segment !== '.');
  // A leaf; what has only the mark for itself holds nothing of the manager's.
  if (segments.length === 0) return '.' in fields ? emptyLike(value) : value;
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown) => {
      const segment = segments.find((candidate) => names(candidate, item));
      return segment === undefined ? [] : [pickItem(item, segment, fields[segment]!)];
    });
  }
  return Object.fromEntries(
    segments
      .map((segment) => segment.slice(2))
      .map((key) => [key, pick((value as Json)[key], fields[`f:${key}`]!)]),
  );
}

/** The keys of an item are owned with it, even where they aren't named below it. */
function pickItem(item: unknown, segment: string, fields: Fields): unknown {
  const picked = pick(item, fields);
  return segment.startsWith('k:')
    ? { ...(JSON.parse(segment.slice(2)) as Json), ...(picked as Json) }
    : picked;
}

function names(segment: string, item: unknown): boolean {
  const wanted: unknown = JSON.parse(segment.slice(2));
  if (segment.startsWith('v:')) return isDeepStrictEqual(wanted, item);
  return Object.entries(wanted as Json).every(([key, value]) =>
    isDeepStrictEqual((item as Json)[key], value),
  );
}

function emptyLike(value: unknown): unknown {
  if (Array.isArray(value)) return [];
  return typeof value === 'object' && value !== null ? {} : value;
}
