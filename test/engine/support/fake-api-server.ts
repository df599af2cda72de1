import { objectKey } from '../../../src/contract/object.js';
import type { AnyObject, FieldsV1 } from '../../../src/contract/object.js';
import type { ResourceType } from '../../../src/contract/resource.js';
import { MERGE_PATCH } from '../../../src/client/api.js';
import { without } from '../../../src/engine/steps/managed-fields.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from '../../../src/client/transport.js';
import { applied, failure } from './builders.js';
import { recordedFields } from './recorded-fields.js';
import { ScriptedStream } from './scripted-transport.js';

interface Stored {
  readonly plural: string;
  readonly object: AnyObject;
}

/**
 * As much of an API server as the engine sees: streamed lists, watches, server-side apply by a single manager per
 * object, deletes with preconditions. A test may answer any request itself, through `intercept`.
 */
export class FakeApiServer implements Transport {
  readonly host = 'api.test:443';
  readonly requests: ApiRequest[] = [];
  readonly streams: {
    readonly plural: string;
    readonly namespace: string | undefined;
    readonly stream: ScriptedStream;
  }[] = [];
  /** Lists of these are held back until the test takes them out and calls `openWatches`. */
  readonly heldBack = new Set<string>();
  /** Kinds of these plurals aren't installed, as far as watches can tell. */
  readonly unserved = new Set<string>();
  closed = false;
  intercept: (request: ApiRequest) => ApiResponse | Promise<ApiResponse | undefined> | undefined = () =>
    undefined;
  private readonly objects = new Map<string, Stored>();
  private version = 100;

  /** Requests that change something, as `METHOD path`. */
  get writes(): string[] {
    return this.requests
      .filter(({ method }) => method !== 'GET')
      .map(({ method, path }) => `${method} ${path}`);
  }

  get(type: ResourceType, key: string): AnyObject | undefined {
    return this.objects.get(idOf(type.plural, key))?.object;
  }

  /** Somebody creates or changes an object; watches tell. */
  put(type: ResourceType, object: AnyObject): AnyObject {
    const id = idOf(type.plural, objectKey(object.metadata.namespace, object.metadata.name));
    const before = this.objects.get(id)?.object;
    const metadata = {
      ...object.metadata,
      uid: before?.metadata.uid ?? object.metadata.uid ?? `uid-${object.metadata.name}`,
      resourceVersion: String(++this.version),
    };
    const stored = { ...object, metadata };
    this.objects.set(id, { plural: type.plural, object: stored });
    this.tell(type.plural, before ? 'MODIFIED' : 'ADDED', stored);
    return stored;
  }

  remove(type: ResourceType, key: string): void {
    const id = idOf(type.plural, key);
    const known = this.objects.get(id);
    if (!known) return;
    this.objects.delete(id);
    const { object } = known;
    const metadata = { ...object.metadata, resourceVersion: String(++this.version) };
    this.tell(type.plural, 'DELETED', { ...object, metadata });
  }

  /** Returns what restores the state of this moment under a later version; all watches expire. */
  backup(): () => void {
    const kept = new Map(this.objects);
    return () => {
      this.objects.clear();
      for (const [id, stored] of kept) this.objects.set(id, stored);
      this.version += 1_000_000;
      for (const { stream } of this.streams)
        if (!stream.closed) stream.event('ERROR', { code: 410, reason: 'Expired' });
    };
  }

  async request(request: ApiRequest): Promise<ApiResponse> {
    this.requests.push(request);
    const own = await this.intercept(request);
    if (own) return own;
    if (request.path === '/openapi/v3') return { status: 200, body: { paths: {} } };
    const { plural, key, namespace, subresource } = parse(request.path);
    const id = idOf(plural, key);
    const known = this.objects.get(id)?.object;
    switch (request.method) {
      case 'PATCH':
        if (request.contentType === 'application/json-patch+json') return this.patch(request, plural, known);
        if (request.contentType === MERGE_PATCH && known) return this.merge(request, plural, known);
        return this.apply(request, plural, known, subresource);
      case 'GET':
        return known ? { status: 200, body: known } : notFound(plural, key);
      case 'DELETE': {
        if (!known) return notFound(plural, key);
        // Beside a body, the real one ignores the query.
        const { preconditions, dryRun } = request.body as {
          preconditions: { uid?: string; resourceVersion?: string };
          dryRun?: string[];
        };
        const { uid, resourceVersion } = known.metadata;
        const { uid: wanted = uid, resourceVersion: version = resourceVersion } = preconditions;
        if (wanted !== uid || version !== resourceVersion)
          return failure(409, 'Conflict', 'Precondition failed: ResourceVersion in precondition');
        if (!dryRun) this.remove(typeOf(known, plural), key);
        return { status: 200, body: { kind: 'Status', status: 'Success' } };
      }
      case 'POST':
        // Nobody reads events here.
        if (plural === 'events') return { status: 201, body: { ...(request.body as object), namespace } };
        return this.create(request.body as AnyObject, plural, request.query?.dryRun === 'All');
      case 'PUT':
        return known ? this.replace(request.body as AnyObject, plural, known) : notFound(plural, key);
    }
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- as the interface has it
  async stream(request: ApiRequest): Promise<ApiStream> {
    const { plural, namespace } = parse(`${request.path}/-`);
    const stream = new ScriptedStream(request);
    const watch = { plural, namespace, stream };
    this.streams.push(watch);
    if (this.unserved.has(plural)) {
      const chunks = stream.send('404 page not found').end().chunks();
      return { status: 404, chunks };
    }
    if (!this.heldBack.has(plural)) this.open(watch);
    return { status: 200, chunks: stream.chunks() };
  }

  /** Answers the watches that were held back. */
  openWatches(plural: string): void {
    this.heldBack.delete(plural);
    for (const watch of this.streams) if (watch.plural === plural) this.open(watch);
  }

  // eslint-disable-next-line @typescript-eslint/require-await -- as the interface has it
  async close(): Promise<void> {
    this.closed = true;
  }

  private create(object: AnyObject, plural: string, dryRun: boolean): ApiResponse {
    const { namespace, name } = object.metadata;
    if (this.objects.has(idOf(plural, objectKey(namespace, name))))
      return failure(409, 'AlreadyExists', `${plural} "${name}" already exists`);
    return { status: 201, body: dryRun ? object : this.put(typeOf(object, plural), object) };
  }

  private replace(object: AnyObject, plural: string, known: AnyObject): ApiResponse {
    if (object.metadata.resourceVersion !== known.metadata.resourceVersion)
      return failure(409, 'Conflict', `Operation cannot be fulfilled on ${plural} "${known.metadata.name}"`);
    return { status: 200, body: this.put(typeOf(object, plural), object) };
  }

  private open({ plural, namespace, stream }: FakeApiServer['streams'][number]): void {
    if (stream.request.query?.sendInitialEvents !== 'true') return;
    for (const { plural: other, object } of this.objects.values()) {
      if (other === plural && (!namespace || object.metadata.namespace === namespace))
        stream.event('ADDED', object);
    }
    stream.listed(String(this.version));
  }

  private tell(plural: string, type: string, object: AnyObject): void {
    if (this.heldBack.has(plural)) return;
    for (const { plural: other, namespace, stream } of this.streams) {
      const covered = other === plural && (!namespace || object.metadata.namespace === namespace);
      if (covered && !stream.closed) stream.event(type, object);
    }
  }

  /** What this manager has applied goes, as far as nobody else owns it; whole items of lists, or fields. */
  private drop(known: AnyObject, plural: string, manager: string): AnyObject {
    const entries = managedFieldsOf(known);
    const others = entries.filter((entry) => entry.manager !== manager);
    const own = entries.find((entry) => entry.manager === manager)?.fieldsV1 ?? {};
    const paths = others.reduce<FieldsV1>((left, { fieldsV1 = {} }) => without(left, fieldsV1), own);
    const left = dropped(known, paths) as AnyObject;
    return this.put(typeOf(known, plural), {
      ...left,
      metadata: { ...left.metadata, managedFields: others } as AnyObject['metadata'],
    });
  }

  /** Of a Secret: its metadata are replaced, and its data added to. */
  private merge({ body }: ApiRequest, plural: string, known: AnyObject): ApiResponse {
    const { metadata, data } = body as AnyObject;
    if (metadata.resourceVersion !== known.metadata.resourceVersion)
      return failure(409, 'Conflict', `Operation cannot be fulfilled on ${plural} "${known.metadata.name}"`);
    const all = Object.entries({ ...(known.data as object), ...(data as object) });
    const merged = Object.fromEntries(all.filter(([, value]) => value !== null));
    const object = { ...known, metadata: { ...known.metadata, ...metadata }, data: merged };
    return { status: 200, body: this.put(typeOf(known, plural), object) };
  }

  /** A patch that tests the version and replaces `managedFields`. */
  private patch({ body, path }: ApiRequest, plural: string, known: AnyObject | undefined): ApiResponse {
    if (!known) return notFound(plural, path);
    const [test, replace] = body as readonly { readonly path: string; readonly value: unknown }[];
    if (test?.path !== '/metadata/resourceVersion' || replace?.path !== '/metadata/managedFields')
      return failure(400, 'BadRequest', 'the fake server knows no such patch');
    if (test.value !== known.metadata.resourceVersion)
      return failure(422, 'Invalid', 'the server rejected our request due to an error in our request');
    const metadata = { ...known.metadata, managedFields: replace.value } as AnyObject['metadata'];
    return { status: 200, body: this.put(typeOf(known, plural), { ...known, metadata }) };
  }

  private apply(
    { body, query }: ApiRequest,
    plural: string,
    known: AnyObject | undefined,
    subresource: string | undefined,
  ): ApiResponse {
    const intent = body as AnyObject;
    const { uid } = intent.metadata;
    if (subresource && !known) return notFound(plural, intent.metadata.name);
    if (uid !== undefined && !known)
      return failure(409, 'Conflict', 'uid mismatch: no existing object was found');
    if (uid !== undefined && uid !== known?.metadata.uid)
      return uidImmutable(plural, intent.metadata.name, uid);
    const manager = query?.fieldManager ?? '';
    const fields = recordedFields(intent);
    // Who names nothing any more lets go of all that is his.
    if (known && Object.keys(fields).length === 0)
      return { status: 200, body: this.drop(known, plural, manager) };
    const next = subresource
      ? { ...known!, status: (intent as { status?: unknown }).status }
      : { ...known, ...intent, ...(known && 'status' in known && { status: known.status }) };
    const others = managedFieldsOf(known).filter(
      (entry) => entry.manager !== manager || entry.subresource !== subresource,
    );
    const own = applied(manager, fields, intent.apiVersion, subresource);
    const metadata = {
      ...(known ?? intent).metadata,
      ...(subresource ? {} : intent.metadata),
      ...(known?.metadata.annotations &&
        intent.metadata.annotations && {
          annotations: { ...known.metadata.annotations, ...intent.metadata.annotations },
        }),
      managedFields: [...others, own],
    };
    const changed = JSON.stringify({ ...next, metadata }) !== JSON.stringify(known);
    if (query?.dryRun === 'All') return { status: known ? 200 : 201, body: { ...next, metadata } };
    const object = changed ? this.put(typeOf(intent, plural), { ...next, metadata }) : known!;
    return { status: known ? 200 : 201, body: object };
  }
}

/** What the API server says when the object of this name is another one by now. */
export function uidImmutable(plural: string, name: string, uid: string): ApiResponse {
  const reason = `metadata.uid: Invalid value: ${JSON.stringify(uid)}: field is immutable`;
  return failure(422, 'Invalid', `${plural} "${name}" is invalid: ${reason}`, {
    name,
    causes: [{ reason: 'FieldValueInvalid', message: reason.slice(14), field: 'metadata.uid' }],
  });
}

function dropped(value: unknown, fields: FieldsV1): unknown {
  if (Array.isArray(value)) {
    const keys = Object.keys(fields).flatMap((segment) =>
      segment.startsWith('k:') ? [JSON.parse(segment.slice(2)) as Record<string, unknown>] : [],
    );
    return value.filter(
      (item: Record<string, unknown>) =>
        !keys.some((key) => Object.entries(key).every(([name, is]) => item[name] === is)),
    );
  }
  if (typeof value !== 'object' || value === null) return value;
  const left = Object.entries(value).flatMap(([name, child]): [string, unknown][] => {
    const below = fields[`f:${name}`];
    if (!below) return [[name, child]];
    return Object.keys(below).length === 0 ? [] : [[name, dropped(child, below)]];
  });
  return Object.fromEntries(left);
}

interface Entry {
  readonly fieldsV1?: FieldsV1;
  readonly manager: string;
  readonly subresource?: string;
}

function managedFieldsOf(object: AnyObject | undefined): readonly Entry[] {
  return (object?.metadata as { managedFields?: readonly Entry[] } | undefined)?.managedFields ?? [];
}

function notFound(plural: string, name: string): ApiResponse {
  return failure(404, 'NotFound', `${plural} "${name}" not found`, { name, kind: plural });
}

function idOf(plural: string, key: string): string {
  return `${plural} ${key}`;
}

function typeOf(object: AnyObject, plural: string): ResourceType {
  return { apiVersion: object.apiVersion, kind: object.kind, plural, namespaced: true };
}

interface Parsed {
  readonly plural: string;
  readonly namespace: string | undefined;
  readonly key: string;
  readonly subresource: string | undefined;
}

function parse(path: string): Parsed {
  const match =
    /^\/(?:api\/v1|apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(
      path,
    );
  if (!match) throw new Error(`not a path that the engine asks for: ${path}`);
  const [, namespace, plural = '', name = '', subresource] = match;
  return { plural, namespace, key: objectKey(namespace, name), subresource };
}
