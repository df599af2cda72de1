import { expect } from 'vitest';
import type { Condition } from '../../../src/contract/conditions.js';
import type { OwnedKind } from '../../../src/contract/kind.js';
import { APPLIED_HASH_ANNOTATION, childrenFieldManager } from '../../../src/contract/names.js';
import { controllerOf } from '../../../src/contract/object.js';
import type { AnyObject, CustomResource } from '../../../src/contract/object.js';
import { groupKind } from '../../../src/contract/resource.js';
import type { ResourceType } from '../../../src/contract/resource.js';
import { render } from '../../../src/synth/render.js';
import type { Cluster, DeleteOptions, Place } from './cluster.js';
import { eventually } from './eventually.js';
import type { EventuallyOptions } from './eventually.js';
import { appliedBy, asStored, withoutBookkeeping } from './owned-fields.js';

/** A custom resource as it is in the cluster. */
export type LiveResource = CustomResource<
  Readonly<Record<string, unknown>>,
  {
    readonly observedGeneration?: number;
    readonly conditions?: readonly Condition[];
    readonly [field: string]: unknown;
  }
>;

/** The custom resources of one kind in one namespace, as somebody handles and judges them. */
export class Subject {
  constructor(
    readonly cluster: Cluster,
    readonly kind: OwnedKind,
    readonly namespace: string,
  ) {}

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

  /** The children of one type, found by their owner reference. */
  async children(type: ResourceType, cr: LiveResource): Promise<AnyObject[]> {
    const live = await this.objects(type);
    return live
      .filter((object) => controllerOf(object)?.uid === cr.metadata.uid)
      .map((object) => ({ ...object, apiVersion: type.apiVersion, kind: type.kind }));
  }

  /** All objects of a type of children, whoever made them; none, where the type need not be installed and isn't. */
  async objects(type: ResourceType): Promise<AnyObject[]> {
    return isOptional(this.kind, type)
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
    const live = await this.children(type, cr);
    expect(live.map(({ metadata }) => metadata.name).sort()).toEqual(
      wanted.map(({ metadata }) => metadata.name).sort(),
    );
    for (const object of wanted) {
      const child = live.find(({ metadata }) => metadata.name === object.metadata.name)!;
      const applied = appliedBy(childrenFieldManager(this.kind.type.kind), child);
      expect(withoutBookkeeping(applied)).toEqual(asStored(object));
      expect(applied.metadata.ownerReferences).toEqual([ownerReferenceTo(cr)]);
      expect(applied.metadata.annotations?.[APPLIED_HASH_ANNOTATION]).toMatch(/^[0-9a-f]{32}$/);
    }
  }
}

function isOptional(kind: OwnedKind, type: ResourceType): boolean {
  const { watches } = kind.controller(render);
  return watches.some((watch) => watch.optional && groupKind(watch.type) === groupKind(type));
}

function ownerReferenceTo(cr: LiveResource): object {
  const { apiVersion, kind, metadata } = cr;
  return {
    ...{ apiVersion, kind, name: metadata.name, uid: metadata.uid },
    ...{ controller: true, blockOwnerDeletion: true },
  };
}
