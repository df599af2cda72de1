// A watch of the bench's own: what exists, and when it was seen to.
import { pathOf } from './cluster.mjs';

export class Witness {
  objects = new Map();
  #listeners = new Set();
  #resourceVersion;
  #ending = new globalThis.AbortController();

  /** Follows one type in one namespace, from what is there now on. */
  static async of(cluster, type, namespace) {
    const witness = new Witness();
    const { items, resourceVersion } = await cluster.list(type, namespace);
    for (const item of items) witness.objects.set(item.metadata.name, item);
    witness.#resourceVersion = resourceVersion;
    const first = await witness.#open(cluster, type, namespace);
    witness.ended = witness
      .#follow(first, () => witness.#open(cluster, type, namespace))
      .catch((error) => {
        if (!witness.#ending.signal.aborted) throw error;
      });
    return witness;
  }

  /** Resolves as soon as the objects are as asked; it is asked after every event. */
  until(ask) {
    return new Promise((resolve) => {
      const listener = (object) => {
        if (!ask(object)) return;
        this.#listeners.delete(listener);
        resolve(Date.now());
      };
      this.#listeners.add(listener);
      listener(undefined);
    });
  }

  /** Calls with each object that is made or changed. */
  onChange(listener) {
    this.#listeners.add(listener);
  }

  async stop() {
    this.#ending.abort();
    await this.ended;
  }

  async #open(cluster, type, namespace) {
    const { status, chunks } = await cluster.transport.stream({
      method: 'GET',
      path: pathOf(type, namespace),
      query: { watch: 'true', resourceVersion: this.#resourceVersion, timeoutSeconds: '3600' },
      signal: this.#ending.signal,
    });
    if (status !== 200) throw new Error(`Watch ${type.plural}: HTTP ${status}`);
    return chunks;
  }

  /** The API server ends the watch of a client that is too slow for a moment, so it is resumed. */
  async #follow(first, reopen) {
    for (let chunks = first; !this.#ending.signal.aborted; chunks = await reopen()) {
      let rest = [];
      for await (const chunk of chunks) {
        let start = 0;
        for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
          const line = Buffer.concat([...rest, chunk.subarray(start, end)]).toString();
          rest = [];
          start = end + 1;
          this.#event(JSON.parse(line));
        }
        if (start < chunk.length) rest.push(chunk.subarray(start));
      }
    }
  }

  #event({ type, object }) {
    if (type === 'ERROR') throw new Error(`Watch: ${object.message}`);
    this.#resourceVersion = object.metadata.resourceVersion;
    if (type === 'ADDED' || type === 'MODIFIED') this.objects.set(object.metadata.name, object);
    else if (type === 'DELETED') this.objects.delete(object.metadata.name);
    for (const listener of [...this.#listeners]) listener(object);
  }
}
