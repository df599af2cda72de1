import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { SandboxClient } from '#sandbox/client.js';
import { Api, collectionPath } from '../client/api.js';
import { ApiError } from '../client/api-error.js';
import { ClusterClient, whileThrottled } from '../client/cluster.js';
import { loadKubeconfig } from '../client/kubeconfig.js';
import type { ClusterAccess } from '../client/kubeconfig.js';
import { THROTTLED } from '../client/retry.js';
import { parseBody, UndiciTransport } from '../client/transport.js';
import type { Transport } from '../client/transport.js';
import { objectKey } from '../contract/object.js';
import type { AnyObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import type { Propagation } from '../client/api.js';

/** Verb of a request. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Object to be made: what a test writes down. */
export type Manifest = AnyObject;

/** Place of an object. */
export interface Place {
  readonly type: ResourceType;
  /** @default - the type has no namespaces */
  readonly namespace?: string;
  readonly name: string;
}

/** Answer of the API server. */
export interface Answer {
  readonly status: number;
  readonly body: AnyObject;
}

/** Options of a deletion. */
export interface DeleteOptions {
  /** @default Background */
  readonly propagationPolicy?: Propagation;
  /** @default false */
  readonly mayBeMissing?: boolean;
}

/** Parts of a request beside its path. */
export interface RequestOptions {
  /** @default - none */
  readonly body?: unknown;
  /** @default application/json */
  readonly contentType?: string;
  /** The form of the answer. @default application/json */
  readonly accept?: string;
  readonly query?: Readonly<Record<string, string>>;
  /** The user to act as; the audit log counts it as the admin's. @default - the admin */
  readonly impersonate?: string;
}

/** Sandbox as its admin sees it: raw requests, since starting kubectl for each would take most of a test's time. */
export class Cluster {
  private readonly access: ClusterAccess;
  /** Transports by the user to act as; without one, as the admin. */
  private readonly transports = new Map<string, Transport>();
  private readonly api: Api;
  private readonly client: ClusterClient;

  constructor(readonly sandbox: SandboxClient) {
    this.access = loadKubeconfig({ kubeconfig: sandbox.adminKubeconfig, env: {} });
    this.api = new Api(this.transport());
    this.client = new ClusterClient(this.transport());
  }

  /** Makes a namespace of its own for the caller. */
  async makeNamespace(purpose: string): Promise<string> {
    const name = `${purpose}-${randomBytes(3).toString('hex')}`;
    const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    await this.create(resourceType({ apiVersion: 'v1', kind: 'Namespace', namespaced: false }), object);
    return name;
  }

  /** Returns undefined if it isn't there. */
  async find<T = AnyObject>(place: Place): Promise<T | undefined> {
    return (await this.client.find(place.type, keyOf(place))) as T | undefined;
  }

  /** @throws if it isn't there */
  async get<T = AnyObject>(place: Place): Promise<T> {
    return (await this.api.get(place.type, keyOf(place))) as T;
  }

  async list<T = AnyObject>(type: ResourceType, namespace: string, selector = ''): Promise<T[]> {
    return (await this.api.listAll({ type, namespace, selector })) as T[];
  }

  /** Returns nothing where the type isn't installed. */
  async listIfServed(type: ResourceType, namespace: string): Promise<AnyObject[]> {
    return [...(await this.client.list(type, { namespace }))];
  }

  async create(type: ResourceType, object: Manifest): Promise<AnyObject> {
    return this.api.create(type, object);
  }

  /** Sends a JSON merge patch, by `kubectl-edit` unless another manager is named. */
  async merge(place: Place, patch: object, manager = 'kubectl-edit'): Promise<AnyObject> {
    return this.api.mergePatch(place.type, keyOf(place), patch, { fieldManager: manager });
  }

  /** Replaces the whole spec, so that what isn't in the new one is removed. */
  async replaceSpec(place: Place, spec: unknown): Promise<AnyObject> {
    const step = { op: 'replace', path: '/spec', value: spec } as const;
    return this.api.patch(place.type, keyOf(place), [step], USER_AGENT);
  }

  /** Applies server-side as some other manager, without force. */
  async apply(type: ResourceType, object: Manifest, manager: string): Promise<AnyObject> {
    return (await this.api.apply(type, object, { fieldManager: manager, force: false })).object;
  }

  /** @throws if it isn't there, unless it may be missing */
  async delete(
    { type, ...metadata }: Place,
    { propagationPolicy, mayBeMissing = false }: DeleteOptions = {},
  ): Promise<void> {
    await this.api.delete(type, { metadata }, propagationPolicy).catch((error: unknown) => {
      if (!mayBeMissing || !(error instanceof ApiError) || error.code !== 404) throw error;
    });
  }

  /** Sends any request, and returns an answer of whatever status, but one that asks to come again later. */
  async send(method: Method, path: string, { impersonate, ...rest }: RequestOptions = {}): Promise<Answer> {
    const { status, body } = await this.transport(impersonate).request({ method, path, ...rest });
    return { status, body: parsed(body) };
  }

  /** Returns the lines of a watch as they come, once it has begun; they end with the signal. @throws if it is refused */
  async watch(
    path: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<AsyncIterable<string>> {
    const request = { method: 'GET', path, query: { ...query, watch: 'true' }, signal } as const;
    const { status, chunks } = await this.transport().stream(request);
    if (status !== 200) throw new ApiError(`Watch ${path}`, { status, body: parseBody(await text(chunks)) });
    return createInterface({ input: Readable.from(chunks) });
  }

  private transport(as = ''): Transport {
    const { access } = this;
    const known = this.transports.get(as);
    if (known) return known;
    const user = as === '' ? access.user : { ...access.user, as };
    // Tests send texts at the limit of their length, many at a time, on machines that are busy.
    const wire = new UndiciTransport({ ...access, user }, USER_AGENT, {
      ...{ http1Connections: 16, answerTimeoutMilliseconds: 300_000 },
    });
    const made = whileThrottled(wire, THROTTLED.test);
    this.transports.set(as, made);
    return made;
  }

  async close(): Promise<void> {
    await Promise.all([...this.transports.values()].map((transport) => transport.close()));
  }
}

/** Name of the client, and so of the field manager where none is given. */
const USER_AGENT = 'reconstruct-testing';

/** Returns the path of all objects of a type, in a namespace. */
export const collection = collectionPath;

function keyOf({ namespace, name }: Place): string {
  return objectKey(namespace, name);
}

/** A path that no API knows is answered in plain text. */
function parsed(body: unknown): AnyObject {
  if (typeof body !== 'string') return body as AnyObject;
  return { apiVersion: 'v1', kind: 'Status', metadata: { name: '' }, message: body };
}
