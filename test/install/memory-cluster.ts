import { objectId, objectKey } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { groupKind } from '../../src/contract/resource.js';
import type { ResourceType } from '../../src/contract/resource.js';
import type { Applied, ApplyOptions, Cluster, ListScope } from '../../src/install/cluster.js';
import { nameOf } from '../../src/install/cluster.js';

/** A cluster without rules of its own, which remembers what was asked of it. */
export class MemoryCluster implements Cluster {
  /** What was written, oldest first. */
  readonly writes: string[] = [];
  private readonly objects = new Map<string, AnyObject>();
  private version = 0;

  constructor(objects: readonly AnyObject[] = []) {
    for (const object of objects) this.put(object);
  }

  get all(): readonly AnyObject[] {
    return [...this.objects.values()];
  }

  put(object: AnyObject): AnyObject {
    const { conditions = [{ type: 'Established', status: 'True' }] } = (object.status ?? {}) as {
      conditions?: unknown;
    };
    const stored = {
      ...object,
      metadata: { uid: `uid-${nameOf(object)}`, ...object.metadata, resourceVersion: String(++this.version) },
      ...(object.kind === 'CustomResourceDefinition' && { status: { conditions } }),
    };
    this.objects.set(objectId(object), stored);
    return stored;
  }

  find({ apiVersion, kind }: ResourceType, key: string): Promise<AnyObject | undefined> {
    const [name = '', namespace] = key.split('/').reverse();
    const id = objectId({ apiVersion, kind, name, ...(namespace !== undefined && { namespace }) });
    return Promise.resolve(this.objects.get(id));
  }

  list(type: ResourceType, { namespace, selector }: ListScope = {}): Promise<readonly AnyObject[]> {
    const wanted = (selector ?? '').split(',').filter((part) => part !== '');
    return Promise.resolve(
      this.all.filter(
        (object) =>
          groupKind(object) === groupKind(type) &&
          (namespace === undefined || object.metadata.namespace === namespace) &&
          wanted.every((part) => {
            const [label = '', value] = part.split('=');
            return object.metadata.labels?.[label] === value;
          }),
      ),
    );
  }

  async apply(type: ResourceType, object: AnyObject, { fieldManager }: ApplyOptions): Promise<Applied> {
    const { namespace, name } = object.metadata;
    const present = await this.find(type, objectKey(namespace, name));
    this.writes.push(`apply ${nameOf(object)} by ${fieldManager}`);
    return { object: this.put(object), created: !present };
  }

  delete(_: ResourceType, seen: AnyObject, propagation: string): Promise<void> {
    this.writes.push(`delete ${nameOf(seen)} ${propagation}`);
    this.objects.delete(objectId(seen));
    return Promise.resolve();
  }

  namespacedTypes(): Promise<readonly ResourceType[]> {
    const types = this.all
      .filter(({ metadata }) => metadata.namespace !== undefined)
      .map(({ apiVersion, kind }) => ({ apiVersion, kind, plural: '', namespaced: true }));
    return Promise.resolve([...new Map(types.map((type) => [groupKind(type), type])).values()]);
  }

  async until(pending: () => Promise<string>): Promise<void> {
    const what = await pending();
    if (what !== '') throw new Error(`In vain until ${what}`);
  }
}
