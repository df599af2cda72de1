import { setTimeout as delay } from 'node:timers/promises';
import { OperatorError } from '../contract/error.js';
import { groupOf, objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { ResourceType } from '../contract/resource.js';
import { ApiError, classify, unanswered } from '../engine/api-error.js';
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

/** The cluster as commands see it that do something once, and wait for it. */
export class ClusterClient implements Cluster {
  private readonly api: Api;

  constructor(private readonly transport: Transport) {
    this.api = new Api(transport);
  }

  async find(type: ResourceType, key: string): Promise<AnyObject | undefined> {
    return this.whereServed(type, `Get ${type.kind} ${key}`, () => this.api.get(type, key));
  }

  async list(type: ResourceType, scope: ListScope = {}): Promise<readonly AnyObject[]> {
    const all = async (): Promise<AnyObject[]> => {
      const items: AnyObject[] = [];
      const { signal } = new AbortController();
      let next: string | undefined;
      do {
        const page = await this.api.list({ type, ...scope }, next, signal);
        items.push(...page.items);
        next = page.continueToken;
      } while (next !== undefined);
      return items;
    };
    return (await this.whereServed(type, `List ${type.plural}`, all)) ?? [];
  }

  async apply(type: ResourceType, object: AnyObject, options: ApplyOptions): Promise<Applied> {
    const { namespace, name } = object.metadata;
    return tried(`Apply ${type.kind} ${objectKey(namespace, name)}`, () =>
      this.api.apply(type, object, options),
    );
  }

  /** Whoever writes its status meanwhile is no reason to keep it: it is the same object. */
  async delete(
    type: ResourceType,
    { metadata: { namespace, name, uid } }: AnyObject,
    propagation: 'Background' | 'Foreground',
  ): Promise<void> {
    const key = objectKey(namespace, name);
    const what = `Delete ${type.kind} ${key}`;
    for (let attempt = 1; ; attempt++) {
      const seen = await this.find(type, key);
      if (!seen || seen.metadata.uid !== uid) return;
      try {
        await this.unlessMissing(what, () => this.api.delete(type, seen, propagation));
        return;
      } catch (error) {
        const changed = error instanceof OperatorError && error.reason === 'Conflict';
        if (!changed || attempt === 10) throw error;
      }
    }
  }

  async namespacedTypes(): Promise<ServedTypes> {
    const { groups } = await this.read<ApiGroupList>('/apis');
    const versions = groups.flatMap(({ versions: all, preferredVersion: { groupVersion: preferred } }) => [
      preferred,
      ...all.map(({ groupVersion }) => groupVersion).filter((version) => version !== preferred),
    ]);
    const asked = await Promise.all(['v1', ...versions].map((version) => this.typesIn(version)));
    const types = new Map<string, ResourceType>();
    for (const type of asked.flatMap((answer) => answer ?? [])) {
      const id = `${type.plural}.${groupOf(type.apiVersion)}`;
      if (!types.has(id)) types.set(id, type);
    }
    const unseen = ['v1', ...versions].filter((_, index) => !asked[index]);
    return { types: [...types.values()], unseen };
  }

  /** Undefined where they can't be told. */
  private async typesIn(apiVersion: string): Promise<readonly ResourceType[] | undefined> {
    const path = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
    try {
      const list = await this.unlessMissing(`Get ${path}`, () => this.get<ApiResourceList>(path));
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
    for (;;) {
      const what = await pending();
      if (what === '') return;
      if (performance.now() > deadline) {
        throw new OperatorError({
          reason: 'Timeout',
          message: `Waited for ${LONGEST_WAIT_MILLISECONDS / 1000} s in vain until ${what}: find out what holds it, and give the command again`,
        });
      }
      await delay(LOOK_MILLISECONDS);
    }
  }

  /** @throws ApiError */
  private async get<T>(path: string): Promise<T> {
    const what = `Get ${path}`;
    const response = await this.transport.request({ method: 'GET', path }).catch((error: unknown) => {
      throw unanswered(error, what);
    });
    if (response.status !== 200) throw new ApiError(what, response);
    return response.body as T;
  }

  private async read<T>(path: string): Promise<T> {
    return tried(`Get ${path}`, () => this.get<T>(path));
  }

  /** Whoever has no right on a type is refused before it is looked for, so that has to be asked apart. */
  private async whereServed<T>(
    type: ResourceType,
    what: string,
    ask: () => Promise<T>,
  ): Promise<T | undefined> {
    return this.unlessMissing(what, async () => {
      try {
        return await ask();
      } catch (error) {
        if (error instanceof ApiError && error.code === 403 && (await this.isUnserved(type)))
          return undefined;
        throw error;
      }
    });
  }

  /** Not known where that may not be asked either. */
  private async isUnserved(type: ResourceType): Promise<boolean> {
    try {
      return !(await this.api.serves(type));
    } catch (error) {
      if (error instanceof ApiError) return false;
      throw error;
    }
  }

  private async unlessMissing<T>(what: string, ask: () => Promise<T>): Promise<T | undefined> {
    return tried(what, async () => {
      try {
        return await ask();
      } catch (error) {
        if (error instanceof ApiError && error.code === 404) return undefined;
        throw error;
      }
    });
  }
}

async function tried<T>(what: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw classify(error, what);
  }
}
