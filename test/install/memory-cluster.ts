import { OperatorError } from '../../src/contract/error.js';
import { describeRef, objectId, objectKey } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { groupKind } from '../../src/contract/resource.js';
import type { ResourceType } from '../../src/contract/resource.js';
import type { Applied, ApplyOptions, Scope } from '../../src/client/api.js';
import type { ClusterApi, ServedTypes } from '../../src/client/cluster.js';

/** Of labels, what each field manager has applied. */
const LABELS = 'f:labels';

interface ManagedFields {
  readonly manager: string;
  readonly operation: string;
  readonly [LABELS]?: readonly string[];
}

function managedFieldsOf(object: AnyObject | undefined): readonly ManagedFields[] {
  return (object?.metadata as { managedFields?: readonly ManagedFields[] } | undefined)?.managedFields ?? [];
}

/** As server-side apply merges it: labels that the manager names no more go, and it goes where it names nothing. */
function merged(present: AnyObject | undefined, object: AnyObject, manager: string): AnyObject {
  const { labels, ...identity } = object.metadata;
  const { apiVersion, kind, metadata, ...rest } = object;
  const managed = managedFieldsOf(present);
  const others = managed.filter((each) => each.manager !== manager);
  const former = managed.find((each) => each.manager === manager)?.[LABELS] ?? [];
  const kept = Object.entries(present?.metadata.labels ?? {}).filter(([name]) => !former.includes(name));
  const namesSomething = labels !== undefined || Object.keys(rest).length > 0;
  const own = { manager, operation: 'Apply', [LABELS]: Object.keys(labels ?? {}) };
  return {
    ...present,
    ...{ apiVersion, kind, ...rest },
    metadata: {
      ...{ ...present?.metadata, ...metadata, ...identity },
      labels: { ...Object.fromEntries(kept), ...labels },
      ...{ managedFields: namesSomething ? [...others, own] : others },
    },
  };
}

function conflict(object: AnyObject): OperatorError {
  return new OperatorError({
    reason: 'Conflict',
    message: `Apply ${describeRef(object)}: the UID is another one`,
  });
}

/** A cluster without rules of its own, which remembers what was asked of it. */
export class MemoryCluster implements ClusterApi {
  /** What was written, oldest first. */
  readonly writes: string[] = [];
  /** The APIs that are down. */
  readonly unseen: string[] = [];
  private readonly objects = new Map<string, AnyObject>();
  private version = 0;
  private made = 0;

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
    const uid = this.objects.get(objectId(object))?.metadata.uid ?? `uid-${++this.made}`;
    const stored = {
      ...object,
      metadata: { uid, ...object.metadata, resourceVersion: String(++this.version) },
      ...(object.kind === 'CustomResourceDefinition' && { status: { conditions } }),
    };
    this.objects.set(objectId(object), stored);
    return stored;
  }

  remove(object: AnyObject): void {
    this.objects.delete(objectId(object));
  }

  find({ apiVersion, kind }: ResourceType, key: string): Promise<AnyObject | undefined> {
    const [name = '', namespace] = key.split('/').reverse();
    const id = objectId({ apiVersion, kind, name, ...(namespace !== undefined && { namespace }) });
    return Promise.resolve(this.objects.get(id));
  }

  list(type: ResourceType, { namespace, selector }: Omit<Scope, 'type'> = {}): Promise<readonly AnyObject[]> {
    const wanted = (selector ?? '').split(',').filter((part) => part !== '');
    return Promise.resolve(
      this.all.filter(
        (object) =>
          groupKind(object) === groupKind(type) &&
          (namespace === undefined || object.metadata.namespace === namespace) &&
          wanted.every((part) => {
            const [label = '', value] = part.split('=');
            const its = object.metadata.labels?.[label];
            return value === undefined ? its !== undefined : its === value;
          }),
      ),
    );
  }

  async apply(
    type: ResourceType,
    object: AnyObject,
    { fieldManager, dryRun }: ApplyOptions,
  ): Promise<Applied> {
    const { namespace, name, uid } = object.metadata;
    const present = await this.find(type, objectKey(namespace, name));
    if (uid !== undefined && uid !== present?.metadata.uid) throw conflict(object);
    if (dryRun) return { object: merged(present, object, fieldManager), created: !present };
    this.writes.push(`apply ${describeRef(object)} by ${fieldManager}`);
    return { object: this.put(merged(present, object, fieldManager)), created: !present };
  }

  removeFinalizer(_: ResourceType, seen: AnyObject, finalizer: string): Promise<void> {
    const finalizers = (seen.metadata.finalizers ?? []).filter((one) => one !== finalizer);
    this.writes.push(`finalizers ${describeRef(seen)} ${finalizers.join()}`);
    this.put({ ...seen, metadata: { ...seen.metadata, finalizers } });
    return Promise.resolve();
  }

  delete(_: ResourceType, seen: AnyObject, propagation: string, dryRun?: boolean): Promise<void> {
    if (dryRun) return Promise.resolve();
    this.writes.push(`delete ${describeRef(seen)} ${propagation}`);
    this.remove(seen);
    return Promise.resolve();
  }

  namespacedTypes(): Promise<ServedTypes> {
    const types = this.all
      .filter(({ metadata }) => metadata.namespace !== undefined)
      .map(({ apiVersion, kind }) => ({ apiVersion, kind, plural: '', namespaced: true }));
    const served = [...new Map(types.map((type) => [groupKind(type), type])).values()];
    return Promise.resolve({ types: served, unseen: this.unseen });
  }

  /** Looks again for as long as looking changes something. */
  async until(pending: () => Promise<string>): Promise<void> {
    for (;;) {
      const before = this.writes.length;
      const what = await pending();
      if (what === '') return;
      if (this.writes.length === before) throw new Error(`In vain until ${what}`);
    }
  }
}
