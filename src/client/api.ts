import { text } from 'node:stream/consumers';
import { keyOf, objectKey, splitKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import type { ResourceType } from '../contract/resource.js';
import { ApiError, unanswered } from './api-error.js';
import type { ServerTime } from './clock.js';
import { parseBody } from './transport.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from './transport.js';

/** JSON is YAML, so the body is plain JSON. @see https://kubernetes.io/docs/reference/using-api/server-side-apply/ */
export const APPLY = 'application/apply-patch+yaml';

/** @see https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches */
const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

/** RFC 7396. */
export const MERGE_PATCH = 'application/merge-patch+json';

/** RFC 6902. */
export const JSON_PATCH = 'application/json-patch+json';

export interface Scope {
  readonly type: ResourceType;
  /** @default - all namespaces */
  readonly namespace?: string | undefined;
  /** @default - no label selector */
  readonly selector?: string | undefined;
  /** @default - every name */
  readonly name?: string | undefined;
  /** Maximum number of objects on a page of a list. @default 500 */
  readonly pageObjects?: number;
  /** Whether a list reads only the metadata of each object. @default false */
  readonly metadataOnly?: boolean;
}

export interface ListPage {
  readonly items: readonly AnyObject[];
  readonly resourceVersion: string;
  /** Asks for the next page; absent on the last. */
  readonly continueToken?: string;
  /** Objects on the pages after this one. @default - unknown, as with a selector, or none */
  readonly remaining?: number;
}

/** Fate of the objects that a deleted one owns. */
export type Propagation = 'Background' | 'Foreground' | 'Orphan';

export interface ApplyOptions {
  readonly fieldManager: string;
  /** Whether fields are taken over from other managers, instead of failing with 409. */
  readonly force: boolean;
  readonly subresource?: 'status';
  /** Whether the API server only judges it, and stores nothing. @default false */
  readonly dryRun?: boolean;
}

/** Step of a JSON patch, as far as they are needed. @see https://www.rfc-editor.org/rfc/rfc6902 */
export interface JsonPatchStep {
  readonly op: 'test' | 'add' | 'replace';
  readonly path: string;
  readonly value: unknown;
}

export interface WriteOptions {
  /** @default - as the API server makes it of the user agent */
  readonly fieldManager?: string;
  readonly signal?: AbortSignal;
}

export interface Applied {
  readonly object: AnyObject;
  readonly created: boolean;
}

/**
 * The few requests that an operator needs, for the engine and for commands that have to distinguish answers. Those that install and
 * remove have `ClusterClient`, for which a missing object or type is no error.
 *
 * **Errors.** An ApiError where the answer isn't a success, and an OperatorError `Unreachable` where there is none.
 */
export class Api {
  /** @param time learns the server's clock from its answers */
  constructor(
    readonly transport: Transport,
    private readonly time?: ServerTime,
  ) {}

  async get(type: ResourceType, key: string, signal?: AbortSignal): Promise<AnyObject> {
    return (await this.onObject('Get', type, key, { method: 'GET', signal })).body as AnyObject;
  }

  /** Returns undefined where there is no such object. @throws ApiError where the kind isn't served, or may not be read */
  async find(type: ResourceType, key: string): Promise<AnyObject | undefined> {
    return this.get(type, key).catch((error: unknown) => {
      if (error instanceof ApiError && error.objectIsGone) return undefined;
      throw error;
    });
  }

  /**
   * Reports whether a request has failed because the kind isn't served. A user without a right on a kind is refused before it is
   * looked for, so that is asked apart, and not known where it may not be asked either.
   */
  async isForMissingKind(type: ResourceType, error: unknown): Promise<boolean> {
    if (!(error instanceof ApiError) || error.code !== 403)
      return error instanceof ApiError && error.kindNotServed;
    return this.serves(type).then(
      (isServed) => !isServed,
      (unknown: unknown) => {
        if (unknown instanceof ApiError) return false;
        throw unknown;
      },
    );
  }

  /** Pages of a consistent list, which the API server serves from its cache when no version is named. */
  async list(scope: Scope, continueToken?: string, signal?: AbortSignal): Promise<ListPage> {
    const { body } = await this.send(`List ${scope.type.plural}`, {
      method: 'GET',
      path: collectionPath(scope.type, scope.namespace),
      query: {
        limit: String(scope.pageObjects ?? 500),
        ...selectorQuery(scope),
        ...(continueToken && { continue: continueToken }),
      },
      ...(scope.metadataOnly && { accept: METADATA_LIST }),
      signal,
    });
    const { metadata, items } = body as {
      metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number };
      items: AnyObject[] | null;
    };
    const { apiVersion, kind } = scope.type;
    return {
      // The items of a list carry neither, and an empty list of metadata has null for them.
      items: (items ?? []).map((item) => ({ ...item, apiVersion, kind })),
      resourceVersion: metadata.resourceVersion,
      ...(metadata.continue && { continueToken: metadata.continue }),
      ...(metadata.remainingItemCount !== undefined && { remaining: metadata.remainingItemCount }),
    };
  }

  /** All pages of a list. */
  async listAll(scope: Scope, signal?: AbortSignal): Promise<AnyObject[]> {
    const items: AnyObject[] = [];
    for await (const page of this.pages(scope, signal)) items.push(...page.items);
    return items;
  }

  /** Pages of a list, up to the last. */
  async *pages(scope: Scope, signal?: AbortSignal): AsyncGenerator<ListPage> {
    let page: ListPage | undefined;
    do yield (page = await this.list(scope, page?.continueToken, signal));
    while (page.continueToken !== undefined);
  }

  /** Reads a path that isn't one of an object. */
  async read<T>(path: string): Promise<T> {
    return (await this.send(`Get ${path}`, { method: 'GET', path })).body as T;
  }

  /** Reports whether there is such a type, which every user may ask. */
  async serves({ apiVersion, plural }: ResourceType): Promise<boolean> {
    type ResourceList = { readonly resources: readonly { readonly name: string }[] };
    try {
      const { resources } = await this.read<ResourceList>(rootPath(apiVersion));
      return resources.some(({ name }) => name === plural);
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return false;
      throw error;
    }
  }

  /** Returns what changes with the schemas of a group version, which every user may ask, if the API server has it. */
  async schemaHash(apiVersion: string): Promise<string | undefined> {
    type Index = { readonly paths: Readonly<Record<string, { readonly serverRelativeURL: string }>> };
    const { paths } = await this.read<Index>('/openapi/v3');
    return paths[rootPath(apiVersion).slice(1)]?.serverRelativeURL;
  }

  /**
   * The raw bytes of a watch; `query` says where it starts. `answered` is called as soon as there is an answer of any
   * status, before the body of a refusal is read.
   */
  async watch(
    scope: Scope,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
    answered?: () => void,
  ): Promise<ApiStream> {
    const stream = await this.transport.stream({
      method: 'GET',
      path: collectionPath(scope.type, scope.namespace),
      query: { watch: 'true', allowWatchBookmarks: 'true', ...selectorQuery(scope), ...query },
      signal,
    });
    this.time?.answered(stream);
    answered?.();
    if (stream.status === 200) return stream;
    const body = parseBody(await text(stream.chunks));
    throw new ApiError(`Watch ${scope.type.plural}`, { ...stream, body });
  }

  async apply(type: ResourceType, object: AnyObject, options: ApplyOptions): Promise<Applied> {
    const { fieldManager, force, subresource, dryRun } = options;
    const key = keyOf(object);
    const { status, body } = await this.onObject('Apply', type, key, {
      ...{ method: 'PATCH', contentType: APPLY, subresource, body: object },
      query: { fieldManager, force: String(force), ...(dryRun && { dryRun: 'All' }) },
    });
    return { object: body as AnyObject, created: status === 201 };
  }

  /** Changes an object step by step: all of them, or none. */
  async patch(
    type: ResourceType,
    key: string,
    steps: readonly JsonPatchStep[],
    fieldManager: string,
  ): Promise<AnyObject> {
    const { body } = await this.onObject('Patch', type, key, {
      ...{ method: 'PATCH', contentType: JSON_PATCH, body: steps, query: { fieldManager } },
    });
    return body as AnyObject;
  }

  /** @param by field manager, and what may end it */
  async mergePatch(type: ResourceType, key: string, body: object, by: WriteOptions = {}): Promise<AnyObject> {
    const request = { method: 'PATCH', contentType: MERGE_PATCH, body, ...sentBy(by) } as const;
    return (await this.onObject('Patch', type, key, request)).body as AnyObject;
  }

  /**
   * Deletes exactly the object that was seen; a 409 says that it has changed since. Returns the object where it
   * stays for now, because something has to be finished first.
   */
  async delete(
    type: ResourceType,
    { metadata: { uid, resourceVersion, namespace, name } }: Pick<AnyObject, 'metadata'>,
    propagationPolicy: Propagation = 'Background',
    dryRun = false,
  ): Promise<AnyObject | undefined> {
    const preconditions = { uid, resourceVersion };
    const { body } = await this.onObject('Delete', type, objectKey(namespace, name), {
      method: 'DELETE',
      // Options in the query don't count beside a body.
      // https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/handlers/delete.go (`DeleteResource`)
      body: {
        ...{ apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy, preconditions },
        ...(dryRun && { dryRun: ['All'] }),
      },
    });
    const answer = body as AnyObject;
    // Some types answer with what is gone already, others with a Status.
    return answer.kind !== 'Status' && answer.metadata.deletionTimestamp ? answer : undefined;
  }

  async create(type: ResourceType, object: AnyObject, by: WriteOptions = {}): Promise<AnyObject> {
    return (await this.post('Create', type, object, sentBy(by))).body as AnyObject;
  }

  /** Has the API server judge an object as a new one, and store nothing. One of that name, if there is one, is found last. */
  async tryCreate(type: ResourceType, object: AnyObject, fieldManager: string): Promise<void> {
    await this.post('Try', type, object, { query: { dryRun: 'All', fieldManager } });
  }

  /** Asks the API server to judge a spec, such as that of a TokenReview, which it stores nowhere. Returns the status. */
  async review<T>(apiVersion: string, kind: string, spec: object, signal?: AbortSignal): Promise<T> {
    const path = `${rootPath(apiVersion)}/${kind.toLowerCase()}s`;
    const body = { apiVersion, kind, spec };
    const answer = await this.send(`Create ${kind}`, { method: 'POST', path, body, signal });
    return (answer.body as { readonly status: T }).status;
  }

  /** Creates an object, or replaces the one that is there; fields that aren't in the schema are refused. */
  async put(
    type: ResourceType,
    object: AnyObject,
    { fieldManager, exists }: { readonly fieldManager: string; readonly exists: boolean },
  ): Promise<AnyObject> {
    const query = { fieldManager, fieldValidation: 'Strict' };
    const key = keyOf(object);
    const { body } = exists
      ? await this.onObject('Put', type, key, { method: 'PUT', query, body: object })
      : await this.post('Put', type, object, { query });
    return body as AnyObject;
  }

  private async post(
    verb: string,
    type: ResourceType,
    object: AnyObject,
    request: Pick<ApiRequest, 'query' | 'signal'>,
  ): Promise<ApiResponse> {
    const { namespace, name } = object.metadata;
    const path = collectionPath(type, namespace);
    return this.send(`${verb} ${type.kind} ${name}`, { ...request, method: 'POST', path, body: object });
  }

  private async onObject(
    verb: string,
    type: ResourceType,
    key: string,
    { subresource, ...request }: Omit<ApiRequest, 'path'> & { readonly subresource?: string | undefined },
  ): Promise<ApiResponse> {
    const { namespace, name } = splitKey(key);
    const path = `${collectionPath(type, namespace)}/${encodeURIComponent(name)}`;
    const of = subresource ? `/${subresource}` : '';
    return this.send(`${verb} ${type.kind} ${key}`, { ...request, path: path + of });
  }

  private async send(what: string, request: ApiRequest): Promise<ApiResponse> {
    const response = await this.transport.request(request).catch((error: unknown) => {
      throw request.signal?.aborted ? error : unanswered(error, what);
    });
    // A refusal that is repeated without asking has an old time.
    if (!response.isRepeated) this.time?.answered(response);
    if (response.status < 200 || response.status > 299)
      throw new ApiError(what, response, isWriteOfSecrets(request));
    return response;
  }
}

/** Reports whether an answer may repeat values of Secrets that were sent. */
export function isWriteOfSecrets({ method, path }: Pick<ApiRequest, 'method' | 'path'>): boolean {
  return method !== 'GET' && /^\/api\/v1\/(?:namespaces\/[^/]+\/)?secrets(?:\/|$)/.test(path);
}

function sentBy({ fieldManager, signal }: WriteOptions): Pick<ApiRequest, 'query' | 'signal'> {
  return { signal, ...(fieldManager !== undefined && { query: { fieldManager } }) };
}

function selectorQuery(scope: Scope): Record<string, string> {
  return {
    ...(scope.selector && { labelSelector: scope.selector }),
    ...(scope.name !== undefined && { fieldSelector: `metadata.name=${scope.name}` }),
  };
}

/** The path of all objects of a type, in a namespace. */
export function collectionPath(type: ResourceType, namespace: string | undefined): string {
  const root = rootPath(type.apiVersion);
  return namespace && type.namespaced
    ? `${root}/namespaces/${encodeURIComponent(namespace)}/${type.plural}`
    : `${root}/${type.plural}`;
}

function rootPath(apiVersion: string): string {
  return apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
}
