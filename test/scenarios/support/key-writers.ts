import { expect } from 'vitest';
import type { AnyObject } from '../../../src/contract/object.js';
import { collection } from '../../support/cluster.js';
import type { Answer, Cluster, Place } from '../../support/cluster.js';
import type { Random } from '../../../src/testing/walk.js';

type Data = Readonly<Record<string, string>>;

/** How somebody writes to a ConfigMap: what he wants it to have of his, and what has just changed of that. */
type Write = (
  writer: KeyWriter,
  wanted: Data,
  changed: Readonly<Record<string, string | null>>,
) => Promise<Answer>;

/** Applies all that is his; by force, where he insists. */
function apply(force: boolean): Write {
  return ({ cluster, place, name }, wanted) =>
    cluster.send('PATCH', pathOf(place), {
      body: { ...named(place), data: wanted },
      contentType: 'application/apply-patch+yaml',
      query: { fieldManager: name, force: String(force) },
    });
}

const merge: Write = ({ cluster, place, name }, _wanted, changed) =>
  cluster.send('PATCH', pathOf(place), {
    body: { data: changed },
    contentType: 'application/merge-patch+json',
    query: { fieldManager: name },
  });

/** Reads, changes, and writes back what he has read. */
const replace: Write = async ({ cluster, place, name }, _wanted, changed) => {
  const live = await cluster.get<AnyObject & { readonly data?: Data }>(place);
  const data = Object.entries({ ...live.data, ...changed }).filter(([, value]) => value !== null);
  return cluster.send('PUT', pathOf(place), {
    body: { ...live, data: Object.fromEntries(data) },
    query: { fieldManager: name },
  });
};

export const waysToWrite = { apply: apply(false), forcedApply: apply(true), merge, replace };

/** Adds and removes keys of his own in a ConfigMap that others write to. */
export class KeyWriter {
  /** What is his, by the API server's answers. */
  held: Data = {};
  /** Writes that were refused, since somebody else was faster or has the key. */
  refused = 0;
  private count = 0;

  constructor(
    readonly cluster: Cluster,
    readonly place: Place,
    /** His field manager. */
    readonly name: string,
    private readonly keys: readonly string[],
    private readonly write: Write,
  ) {}

  /** Takes a key, gives it another value, or removes it. */
  async act(random: Random): Promise<void> {
    const key = this.keys[random.below(this.keys.length)]!;
    if (key in this.held && random.below(2) === 0) await this.change(key, null);
    else await this.change(key, `${this.name}/svc:${++this.count}`);
  }

  /** Tries until the key is his, for which he has to have the means. */
  async take(key: string): Promise<void> {
    while (!(key in this.held)) await this.change(key, `${this.name}/svc:0`);
  }

  /** Tries until the key is his no more. */
  async release(key: string): Promise<void> {
    while (key in this.held) await this.change(key, null);
  }

  private async change(key: string, value: string | null): Promise<void> {
    const { [key]: _, ...others } = this.held;
    const wanted = value === null ? others : { ...others, [key]: value };
    const { status, body } = await this.write(this, wanted, { [key]: value });
    expect([200, 201, 409], String(body.message)).toContain(status);
    if (status === 409) this.refused++;
    else this.held = wanted;
  }
}

function named({ namespace, name }: Place): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace, name } };
}

function pathOf({ type, namespace, name }: Place): string {
  return `${collection(type, namespace)}/${name}`;
}
