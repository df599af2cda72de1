import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { SandboxClient } from '#sandbox/client.js';
import type { AnyObject } from '../contract/object.js';
import { resourceType } from '../contract/resource.js';
import type { ResourceType } from '../contract/resource.js';
import { APPLY, collectionPath } from '../client/api.js';
import { loadKubeconfig } from '../client/kubeconfig.js';
import type { ClusterAccess } from '../client/kubeconfig.js';
import { parseBody, UndiciTransport } from '../client/transport.js';

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
  readonly propagationPolicy?: string;
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
  private readonly transports = new Map<string, UndiciTransport>();

  constructor(readonly sandbox: SandboxClient) {
    this.access = loadKubeconfig({ kubeconfig: sandbox.adminKubeconfig, env: {} });
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
    const answer = await this.send('GET', pathOf(place));
    return answer.status === 404 ? undefined : (succeeded(answer) as T);
  }

  /** @throws if it isn't there */
  async get<T = AnyObject>(place: Place): Promise<T> {
    const found = await this.find<T>(place);
    if (found === undefined) throw new Error(`There is no ${place.type.kind} at ${pathOf(place)}`);
    return found;
  }

  async list<T = AnyObject>(type: ResourceType, namespace: string, selector = ''): Promise<T[]> {
    const query = { labelSelector: selector };
    return succeeded(await this.send('GET', collection(type, namespace), { query })).items as T[];
  }

  /** Returns nothing where the type isn't installed. */
  async listIfServed(type: ResourceType, namespace: string): Promise<AnyObject[]> {
    const answer = await this.send('GET', collection(type, namespace));
    return answer.status === 404 ? [] : (succeeded(answer).items as AnyObject[]);
  }

  async create(type: ResourceType, object: Manifest): Promise<AnyObject> {
    const path = collection(type, object.metadata.namespace);
    return succeeded(await this.send('POST', path, { body: object }));
  }

  /** Sends a JSON merge patch, by `kubectl-edit` unless another manager is named. */
  async merge(place: Place, patch: object, manager = 'kubectl-edit'): Promise<AnyObject> {
    const contentType = 'application/merge-patch+json';
    return this.patch(pathOf(place), { body: patch, contentType, query: { fieldManager: manager } });
  }

  /** Replaces the whole spec, so that what isn't in the new one is removed. */
  async replaceSpec(place: Place, spec: unknown): Promise<AnyObject> {
    const body = [{ op: 'replace', path: '/spec', value: spec }];
    return this.patch(pathOf(place), { body, contentType: 'application/json-patch+json' });
  }

  /** Applies server-side as some other manager, without force. */
  async apply(type: ResourceType, object: Manifest, manager: string): Promise<AnyObject> {
    const { namespace, name } = object.metadata;
    const query = { fieldManager: manager, force: 'false' };
    const path = `${collection(type, namespace)}/${name}`;
    return this.patch(path, { body: object, contentType: APPLY, query });
  }

  private async patch(path: string, options: RequestOptions): Promise<AnyObject> {
    return succeeded(await this.send('PATCH', path, options));
  }

  /** @throws if it isn't there, unless it may be missing */
  async delete(
    place: Place,
    { propagationPolicy = 'Background', mayBeMissing = false }: DeleteOptions = {},
  ): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy };
    const answer = await this.send('DELETE', pathOf(place), { body });
    if (!mayBeMissing || answer.status !== 404) succeeded(answer);
  }

  /** Sends any request, and returns an answer of whatever status, but one that asks to come again later. */
  async send(method: Method, path: string, { impersonate, ...rest }: RequestOptions = {}): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      const { status, body } = await this.transport(impersonate).request({ method, path, ...rest });
      // As it answers for a moment after it has started, and where a CRD is new.
      if (status !== 429 || attempt === 100) return { status, body: parsed(body) };
      await delay(100);
    }
  }

  /** Returns the lines of a watch as they come, once it has begun; they end with the signal. @throws if it is refused */
  async watch(
    path: string,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<AsyncIterable<string>> {
    const request = { method: 'GET', path, query: { ...query, watch: 'true' }, signal } as const;
    const { status, chunks } = await this.transport().stream(request);
    if (status !== 200) succeeded({ status, body: parsed(parseBody(await text(chunks))) });
    return createInterface({ input: Readable.from(chunks) });
  }

  private transport(as = ''): UndiciTransport {
    const { access } = this;
    const known = this.transports.get(as);
    if (known) return known;
    const user = as === '' ? access.user : { ...access.user, as };
    // Tests send texts at the limit of their length, many at a time, on machines that are busy.
    const made = new UndiciTransport({ ...access, user }, 'reconstruct-testing', {
      ...{ http1Connections: 16, answerTimeoutMilliseconds: 300_000 },
    });
    this.transports.set(as, made);
    return made;
  }

  async close(): Promise<void> {
    await Promise.all([...this.transports.values()].map((transport) => transport.close()));
  }
}

/** Returns the path of all objects of a type, in a namespace. */
export const collection = collectionPath;

function pathOf({ type, namespace, name }: Place): string {
  return `${collection(type, namespace)}/${name}`;
}

/** A path that no API knows is answered in plain text. */
function parsed(body: unknown): AnyObject {
  if (typeof body !== 'string') return body as AnyObject;
  return { apiVersion: 'v1', kind: 'Status', metadata: { name: '' }, message: body };
}

function succeeded({ status, body }: Answer): AnyObject {
  if (status < 300) return body;
  throw new Error(`The API server answered ${status}: ${String(body.message)}`);
}
