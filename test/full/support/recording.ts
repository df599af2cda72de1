import type { AnyObject } from '../../../src/contract/object.js';
import { collection } from './cluster.js';
import type { Cluster, Place } from './cluster.js';
import { eventually } from './eventually.js';

interface WatchEvent {
  readonly type: string;
  readonly object: AnyObject;
}

/**
 * Every state that one object is in from now on, by a watch of its own.
 *
 * **Assumptions**: the object is there when the recording begins.
 */
export class Recording<T extends AnyObject> implements AsyncDisposable {
  private readonly events: WatchEvent[] = [];
  private readonly end = new AbortController();
  private reading: Promise<void> = Promise.resolve();

  private constructor(
    private readonly cluster: Cluster,
    private readonly place: Place,
  ) {}

  /** The first state is the present one. */
  static async start<T extends AnyObject>(cluster: Cluster, place: Place): Promise<Recording<T>> {
    const recording = new Recording<T>(cluster, place);
    const path = collection(place.type, place.namespace);
    const query = { fieldSelector: `metadata.name=${place.name}` };
    recording.reading = recording.read(await cluster.watch(path, query, recording.end.signal));
    await eventually(() => {
      if (recording.events.length === 0) throw new Error(`The watch of ${path} has yet to begin`);
    });
    return recording;
  }

  /** All states so far, oldest first, once the present one is among them. */
  async states(): Promise<T[]> {
    const { metadata } = await this.cluster.get(this.place);
    await eventually(() => {
      const seen = this.events.some(
        ({ object }) => object.metadata.resourceVersion === metadata.resourceVersion,
      );
      if (!seen) throw new Error(`The watch has yet to deliver version ${metadata.resourceVersion ?? ''}`);
    });
    const odd = this.events.find(({ type }) => type !== 'ADDED' && type !== 'MODIFIED');
    if (odd) throw new Error(`The watch has delivered ${JSON.stringify(odd)}`);
    return this.events.map(({ object }) => object as T);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.end.abort();
    await this.reading;
  }

  private async read(lines: AsyncIterable<string>): Promise<void> {
    try {
      for await (const line of lines) this.events.push(JSON.parse(line) as WatchEvent);
    } catch (error) {
      // So it ends where nobody reads on.
      if (!this.end.signal.aborted) throw error;
    }
  }
}

/** The values that follow each other, each once. */
export function changesOf<T>(values: readonly T[]): T[] {
  return values.filter((value, index) => index === 0 || value !== values[index - 1]);
}
