import type { Watch } from '../contract/controller.js';
import { objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { KeyIndex } from './key-index.js';
import type { Store } from './store.js';

/** Which objects of a store a watch maps to a key: as many look-ups as there are, however many others the store has. */
export class MappedIndex {
  private readonly index = new KeyIndex();

  constructor(
    private readonly store: Store,
    private readonly watch: Pick<Watch, 'mapsTo'>,
  ) {
    for (const key of store.keys()) this.move(undefined, store.get(key)?.object);
    store.onChange((before, after) => {
      this.move(before, after);
    });
  }

  objectsOf(key: string): AnyObject[] {
    const objects: AnyObject[] = [];
    for (const name of this.index.keysOf(key)) {
      const object = this.store.get(name)?.object;
      if (object) objects.push(object);
    }
    return objects;
  }

  private move(before: AnyObject | undefined, after: AnyObject | undefined): void {
    const [was, is] = [this.keysOf(before), this.keysOf(after)];
    if (before) for (const key of was) if (!is.includes(key)) this.index.remove(key, nameOf(before));
    if (after) for (const key of is) if (!was.includes(key)) this.index.add(key, nameOf(after));
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
