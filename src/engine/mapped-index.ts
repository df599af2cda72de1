import type { Watch } from '../contract/controller.js';
import { objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { Store } from './store.js';

/**
 * Which objects of a store a watch maps to a key: as many steps as there are, however many others the store has, and
 * no look-up in the store, which of 50,000 would take longer than all that is made of them.
 */
export class MappedIndex {
  /** By name; a map only where there are several, since most keys have one object of a type. */
  private readonly byKey = new Map<string, AnyObject | Map<string, AnyObject>>();

  constructor(
    store: Store,
    private readonly watch: Pick<Watch, 'mapsTo'>,
  ) {
    for (const key of store.keys()) this.move(undefined, store.get(key)?.object);
    store.onChange((before, after) => {
      this.move(before, after);
    });
  }

  objectsOf(key: string): AnyObject[] {
    const objects = this.byKey.get(key);
    if (!objects) return [];
    return objects instanceof Map ? [...objects.values()] : [objects];
  }

  private move(before: AnyObject | undefined, after: AnyObject | undefined): void {
    const is = this.keysOf(after);
    if (before) for (const key of this.keysOf(before)) if (!is.includes(key)) this.remove(key, before);
    if (after) for (const key of is) this.set(key, after);
  }

  private set(key: string, object: AnyObject): void {
    const objects = this.byKey.get(key);
    if (objects instanceof Map) objects.set(nameOf(object), object);
    else if (objects === undefined || nameOf(objects) === nameOf(object)) this.byKey.set(key, object);
    else this.byKey.set(key, new Map([objects, object].map((each) => [nameOf(each), each])));
  }

  private remove(key: string, object: AnyObject): void {
    const objects = this.byKey.get(key);
    if (objects instanceof Map) objects.delete(nameOf(object));
    if (!(objects instanceof Map) || objects.size === 0) this.byKey.delete(key);
  }

  /** A mapping that throws is reported where the keys are queued. */
  private keysOf(object: AnyObject | undefined): readonly string[] {
    try {
      return object === undefined ? [] : this.watch.mapsTo(object);
    } catch {
      return [];
    }
  }
}

function nameOf({ metadata }: AnyObject): string {
  return objectKey(metadata.namespace, metadata.name);
}
