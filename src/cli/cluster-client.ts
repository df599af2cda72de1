import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../contract/error.js';
import { groupOf, objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { ResourceType } from '../contract/resource.js';
import { ApiError, classify } from '../engine/api-error.js';
import { Api } from '../engine/api.js';
import type { Transport } from '../engine/transport.js';
import { isPartial } from '../install/cluster.js';
import type { Applied, ApplyOptions, Cluster, ListScope, ServedTypes } from '../install/cluster.js';

const LOOK_MILLISECONDS = 200;
const LONGEST_WAIT_MILLISECONDS = 120_000;

interface ApiResourceList {
  readonly resources: readonly {
    readonly name: string;
    readonly kind: string;
    readonly namespaced: boolean;
    readonly verbs: readonly string[];
  }[];
}

interface ApiGroupList {
  readonly groups: readonly {
    readonly versions: readonly { readonly groupVersion: string }[];
    readonly preferredVersion: { readonly groupVersion: string };
  }[];
}

/** The engine's API client for commands that do something once: a missing object or type is no error, any other is classified. */
export class ClusterClient implements Cluster {
  private readonly api: Api;

  constructor(transport: Transport) {
    this.api = new Api(transport);
  }

  async find(type: ResourceType, key: string): Promise<AnyObject | undefined> {
    return this.whereServed(type, `Get ${type.kind} ${key}`, () => this.api.get(type, key));
  }

  async list(type: ResourceType, scope: ListScope = {}): Promise<readonly AnyObject[]> {
    const list = (): Promise<AnyObject[]> => this.api.listAll({ type, ...scope });
    return (await this.whereServed(type, `List ${type.plural}`, list)) ?? [];
  }

  async apply(type: ResourceType, object: AnyObject, options: ApplyOptions): Promise<Applied> {
    const { namespace, name } = object.metadata;
    const what = `Apply ${type.kind} ${objectKey(namespace, name)}`;
    return classified(what, () => this.api.apply(type, object, options));
  }

  /** A status that is written meanwhile is no reason to keep it: it is the same object. */
  async delete(
    type: ResourceType,
    { metadata: { namespace, name, uid } }: AnyObject,
    propagation: 'Background' | 'Foreground',
  ): Promise<void> {
    const key = objectKey(namespace, name);
    for (let attempt = 1; ; attempt++) {
      const seen = await this.find(type, key);
      if (!seen || seen.metadata.uid !== uid) return;
      try {
        await unlessMissing(`Delete ${type.kind} ${key}`, () => this.api.delete(type, seen, propagation));
        return;
      } catch (error) {
        const changed = error instanceof OperatorError && error.reason === 'Conflict';
        if (!changed || attempt === 10) throw error;
      }
    }
  }

  async namespacedTypes(): Promise<ServedTypes> {
    const { groups } = await this.read<ApiGroupList>('/apis');
    const served = groups.flatMap(({ versions, preferredVersion: { groupVersion: preferred } }) => [
      preferred,
      ...versions.map(({ groupVersion }) => groupVersion).filter((version) => version !== preferred),
    ]);
    const versions = ['v1', ...served];
    const asked = await Promise.all(versions.map((version) => this.typesIn(version)));
    const types = new Map<string, ResourceType>();
    for (const type of asked.flatMap((answer) => answer ?? [])) {
      const id = `${type.plural}.${groupOf(type.apiVersion)}`;
      if (!types.has(id)) types.set(id, type);
    }
    return { types: [...types.values()], unseen: versions.filter((_, index) => !asked[index]) };
  }

  /** Undefined where they can't be listed. */
  private async typesIn(apiVersion: string): Promise<readonly ResourceType[] | undefined> {
    const path = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
    try {
      const list = await unlessMissing(`Get ${path}`, () => this.api.read<ApiResourceList>(path));
      return (list?.resources ?? [])
        .filter(({ name, namespaced }) => namespaced && !name.includes('/'))
        .filter(({ verbs }) => verbs.includes('list') && verbs.includes('delete'))
        .map(({ name: plural, kind }) => ({ apiVersion, kind, plural, namespaced: true }));
    } catch (error) {
      if (isPartial(error)) return undefined;
      throw error;
    }
  }

  /** Such as `1.34`; undefined where what answers is no API server. */
  async version(): Promise<string | undefined> {
    const { major, minor } = await this.read<{ major?: unknown; minor?: unknown }>('/version');
    return typeof major === 'string' && typeof minor === 'string'
      ? `${major}.${minor.split(/\D/, 1).join('')}`
      : undefined;
  }

  async until(pending: () => Promise<string>): Promise<void> {
    const deadline = performance.now() + LONGEST_WAIT_MILLISECONDS;
    for (let what = await pending(); what !== ''; what = await pending()) {
      if (performance.now() > deadline) {
        const seconds = LONGEST_WAIT_MILLISECONDS / 1000;
        throw new OperatorError({
          reason: 'Timeout',
          message: `Waited for ${seconds} s in vain until ${what}: find out what holds it, and give the command again`,
        });
      }
      await delay(LOOK_MILLISECONDS);
    }
  }

  private async read<T>(path: string): Promise<T> {
    return classified(`Get ${path}`, () => this.api.read<T>(path));
  }

  /** A user without a right on a type is refused before it is looked for, so that has to be asked apart. */
  private async whereServed<T>(
    type: ResourceType,
    what: string,
    ask: () => Promise<T>,
  ): Promise<T | undefined> {
    return unlessMissing(what, async () => {
      try {
        return await ask();
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== 403) throw error;
        // Not known where that may not be asked either.
        const isServed = await this.api.serves(type).catch((again: unknown) => {
          if (again instanceof ApiError) return true;
          throw again;
        });
        if (!isServed) return undefined;
        throw error;
      }
    });
  }
}

async function unlessMissing<T>(what: string, ask: () => Promise<T>): Promise<T | undefined> {
  return classified(what, async () => {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return undefined;
      throw error;
    }
  });
}

async function classified<T>(what: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw classify(error, what);
  }
}
