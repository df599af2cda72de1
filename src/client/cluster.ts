import { OperatorError } from '../contract/error.js';
import { groupOf, objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { ResourceType } from '../contract/resource.js';
import type { Propagation } from './api.js';
import { ApiError, classify } from './api-error.js';
import { Api } from './api.js';
import type { Applied, ApplyOptions, Scope } from './api.js';
import { patientClock, poll, sleep } from './clock.js';
import { COMMAND_WAIT, retried, TRIES } from './retry.js';
import type { Throttling } from './retry.js';
import type { Transport } from './transport.js';

/** Sends a request again that the API server asks to send later. */
export function whileThrottled(transport: Transport, { tries, longestPause }: Throttling): Transport {
  return {
    host: transport.host,
    request: async (req) => {
      for (let attempt = 1; ; attempt++) {
        const answer = await transport.request(req);
        if (answer.status !== 429 || attempt === tries) return answer;
        await sleep(patientClock, Math.min(1000 * (answer.retryAfterSeconds ?? 1), longestPause));
      }
    },
    stream: (req) => transport.stream(req),
    close: () => transport.close(),
  };
}

interface Discovered {
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
}

interface GroupVersion {
  readonly groupVersion: string;
}

/** Answer of `/version`, as far as it is read. */
export interface ServerVersion {
  readonly major: string;
  readonly minor: string;
  /** Version such as `v1.36.3`. */
  readonly gitVersion?: string;
}

/** Types that an API server serves. */
export interface ServedTypes {
  readonly types: readonly ResourceType[];
  /** Groups and versions that don't answer, such as an aggregated API that is down. */
  readonly unseen: readonly string[];
}

/** Requests of commands that install and remove. */
export type ClusterApi = Omit<InstanceType<typeof ClusterClient>, 'version'>;

/**
 * API client of commands that do something once: a missing object or type is no error.
 *
 * **Errors.** An OperatorError where the API server refuses or doesn't answer.
 */
export class ClusterClient {
  private readonly api: Api;

  constructor(transport: Transport) {
    this.api = new Api(transport);
  }

  /** Returns undefined where the object, or its type, isn't there. */
  async find(type: ResourceType, key: string): Promise<AnyObject | undefined> {
    return this.whereServed(type, `Get ${type.kind} ${key}`, this.api.get(type, key));
  }

  /** Lists in all namespaces unless one is named; nothing where the type isn't served. */
  async list(type: ResourceType, scope: Omit<Scope, 'type'> = {}): Promise<readonly AnyObject[]> {
    const listed = this.api.listAll({ type, ...scope });
    return (await this.whereServed(type, `List ${type.plural}`, listed)) ?? [];
  }

  async apply(type: ResourceType, object: AnyObject, options: ApplyOptions): Promise<Applied> {
    const { namespace, name } = object.metadata;
    return this.api.apply(type, object, options).catch((error: unknown) => {
      throw classify(error, `Apply ${type.kind} ${objectKey(namespace, name)}`);
    });
  }

  /** Takes a finalizer off the object with this UID, if it is still there; those that are added meanwhile stay. */
  async removeFinalizer(
    type: ResourceType,
    { metadata: { namespace, name, uid } }: AnyObject,
    finalizer: string,
  ): Promise<void> {
    const key = objectKey(namespace, name);
    await retried(
      TRIES.conflict,
      async () => {
        const seen = await this.find(type, key);
        if (seen?.metadata.uid !== uid || !seen) return;
        const { resourceVersion, finalizers = [] } = seen.metadata;
        const left = finalizers.filter((one) => one !== finalizer);
        const body = { metadata: { resourceVersion, finalizers: left } };
        const what = `Take the finalizer ${finalizer} off ${type.kind} ${key}`;
        await unlessMissing(what, this.api.mergePatch(type, key, body));
      },
      isConflict,
    );
  }

  /**
   * Deletes the object with this UID, if it is still there: a status that is written meanwhile is no reason to keep it.
   * @param dryRun has the API server judge it, and delete nothing. @default false
   */
  async delete(
    type: ResourceType,
    { metadata: { namespace, name, uid } }: AnyObject,
    propagation: Propagation,
    dryRun = false,
  ): Promise<void> {
    const key = objectKey(namespace, name);
    const attempt = async (): Promise<void> => {
      const seen = await this.find(type, key);
      if (seen?.metadata.uid !== uid || !seen) return;
      await unlessMissing(`Delete ${type.kind} ${key}`, this.api.delete(type, seen, propagation, dryRun));
    };
    await retried(TRIES.conflict, attempt, isConflict).catch((error: unknown) => {
      const cause = error instanceof OperatorError ? error.cause : undefined;
      // A webhook without dry runs can't be asked.
      if (!dryRun || !(cause instanceof ApiError) || !cause.dryRunUnsupported) throw error;
    });
  }

  /** Returns the namespaced types whose objects can be listed and deleted, of whatever version. */
  async namespacedTypes(): Promise<ServedTypes> {
    type Groups = { readonly preferredVersion: GroupVersion; readonly versions: readonly GroupVersion[] }[];
    const { groups = [] } = (await this.read<{ readonly groups: Groups }>('/apis')) ?? {};
    // The preferred version comes first.
    const all = groups.flatMap(({ versions, preferredVersion }) => [preferredVersion, ...versions]);
    const types = new Map<string, ResourceType>();
    const unseen: string[] = [];
    for (const apiVersion of new Set(['v1', ...all.map(({ groupVersion }) => groupVersion)])) {
      const path = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
      try {
        const { resources = [] } = (await this.read<{ resources: readonly Discovered[] }>(path)) ?? {};
        for (const { name: plural, kind, namespaced, verbs } of resources) {
          const id = `${plural}.${groupOf(apiVersion)}`;
          const isWanted = namespaced && verbs.includes('list') && verbs.includes('delete');
          if (isWanted && !plural.includes('/') && !types.has(id))
            types.set(id, { apiVersion, kind, plural, namespaced });
        }
      } catch (error) {
        if (!isPartial(error)) throw error;
        unseen.push(apiVersion);
      }
    }
    return { types: [...types.values()], unseen };
  }

  /** Returns undefined where what answers is no API server. */
  async version(): Promise<ServerVersion | undefined> {
    const found = await this.read<Partial<ServerVersion>>('/version');
    const isVersion = typeof found?.major === 'string' && typeof found.minor === 'string';
    return isVersion ? (found as ServerVersion) : undefined;
  }

  /**
   * Polls until there is nothing left to wait for.
   * @param pending returns what is waited for, as text; empty when it is done
   */
  async until(pending: () => Promise<string>): Promise<void> {
    let what = '';
    const isDone = async (): Promise<true | undefined> =>
      (what = await pending()) === '' ? true : undefined;
    if (await poll(isDone, COMMAND_WAIT)) return;
    throw new OperatorError({
      reason: 'Timeout',
      message: `Waited for longer than ${COMMAND_WAIT.deadline / 1000} s until ${what}: find out what holds it, and give the command again`,
    });
  }

  private async read<T>(path: string): Promise<T | undefined> {
    return unlessMissing(`Get ${path}`, this.api.read<T>(path));
  }

  private async whereServed<T>(type: ResourceType, what: string, asked: Promise<T>): Promise<T | undefined> {
    const answer = asked.catch(async (error: unknown) => {
      if (await this.api.isForMissingKind(type, error)) return undefined;
      throw error;
    });
    return unlessMissing(what, answer);
  }
}

/** Reports whether the API server answers, and only a part of what it serves can't be read. */
export function isPartial(error: unknown): boolean {
  return error instanceof OperatorError && !['Unreachable', 'Unauthorized'].includes(error.reason);
}

function isConflict(error: unknown): boolean {
  return error instanceof OperatorError && error.reason === 'Conflict';
}

/** @throws what `classify` makes of an error; a 404 is none */
async function unlessMissing<T>(what: string, asked: Promise<T>): Promise<T | undefined> {
  return asked.catch((error: unknown) => {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw classify(error, what);
  });
}
