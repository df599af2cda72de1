import { isDeepStrictEqual } from 'node:util';
import type { FieldConflict } from '../../contract/change.js';
import { OperatorError } from '../../contract/error.js';
import { ADOPT_BY_ANNOTATION, isRecordAnnotation, LAST_APPLIED_ANNOTATION } from '../../contract/names.js';
import { canonicalJson, isMap } from '../../values/json.js';
import { objectId } from '../../contract/object.js';
import type { AnyObject, FieldsV1, ManagedFieldsEntry, OwnerReference } from '../../contract/object.js';
import { ApiError } from '../../client/api-error.js';
import { APPLY, isWriteOfSecrets, JSON_PATCH, MERGE_PATCH } from '../../client/api.js';
import type { JsonPatchStep } from '../../client/api.js';
import { describePath, fieldAt, isLeaf, segmentOf, touches } from '../steps/managed-fields.js';
import { WOULD_DELETE } from '../plan/hand.js';
import type { FieldPath } from '../steps/managed-fields.js';
import type { ApiRequest, ApiResponse, ApiStream, Transport } from '../../client/transport.js';
import { isAppliedBy, managedFieldsOf } from '../../values/projections.js';

/** Reason of a request that a webhook doesn't let be tried. */
export const DRY_RUN_UNSUPPORTED = 'DryRunUnsupported';

/** Maximum number of looks: of an object that is written all the time, the last one is as good as any. */
const MAX_LOOKS = 5;

/** Effect of one apply. */
export interface Tried {
  /** Object as it is. @default - none is there */
  readonly before?: AnyObject;
  /** Object as it would be. */
  readonly after: AnyObject;
  /** Fields that would be taken from other managers. */
  readonly takes: readonly FieldConflict[];
  /** Fields that would go, and who set them, where the object is taken over. @default - none */
  readonly drops?: readonly FieldConflict[];
}

export interface DryRunProps {
  /**
   * Whether blocking the deletion of an owner before its object is tried as well, which takes a right that the controller has, and
   * who asks need not have.
   * @default false
   */
  readonly blocking?: boolean;
  /** Whether what lists show is kept whole, so that it isn't read again one by one. @default false */
  readonly keepsLists?: boolean;
}

/**
 * Transport to an API server on which nothing is written.
 *
 * **Guarantees.** Reads go through. Whatever else is sent is a dry run. Nothing is deleted, not even as a dry run: what
 * asks for it fails with `WouldDelete`. What can't be tried fails with `DryRunUnsupported`, not as a refusal.
 *
 * **Caveats.** A dry run leaves nothing behind on which the next could build. That an owner isn't to be deleted before
 * an object is tried only where it is asked for.
 */
export class DryRun implements Transport {
  /** The last apply of each object, by `objectId`. */
  readonly tried = new Map<string, Tried>();
  /** Items of lists, by path. */
  private readonly listed = new Map<string, AnyObject>();
  /** Records of field managers that were written, by path: the next apply goes by them. */
  private readonly records = new Map<string, readonly ManagedFieldsEntry[]>();

  constructor(
    private readonly wire: Transport,
    private readonly props: DryRunProps = {},
  ) {}

  get host(): string {
    return this.wire.host;
  }

  async request(req: ApiRequest): Promise<ApiResponse> {
    if (req.method === 'GET') {
      const answer = await this.wire.request(req);
      const isList = this.props.keepsLists && answer.status === 200 && req.query?.limit !== undefined;
      const { items } = (isList ? answer.body : {}) as { readonly items?: readonly AnyObject[] | null };
      for (const item of items ?? []) this.listed.set(`${req.path}/${item.metadata.name}`, item);
      return answer;
    }
    if (req.method === 'DELETE')
      throw new OperatorError({ reason: WOULD_DELETE, message: 'It would be deleted and created again' });
    const isWhole = req.contentType === APPLY || req.method === 'POST';
    const body = isWhole && !this.props.blocking ? withoutBlocking(req.body as AnyObject) : req.body;
    const dry = { ...req, body, query: { ...req.query, dryRun: 'All' } };
    if (req.contentType === JSON_PATCH)
      for (const step of req.body as readonly JsonPatchStep[])
        if (step.path === '/metadata/managedFields')
          this.records.set(req.path, step.value as readonly ManagedFieldsEntry[]);
    if (req.contentType === APPLY) return this.apply(dry);
    const isObject = isMap(body) && body.kind !== undefined;
    if (req.contentType === MERGE_PATCH && isObject) return this.apply(dry);
    const answer = await this.try(dry);
    if (req.method === 'POST' && answer.status === 201)
      this.tried.set(objectId(body as AnyObject), { after: answer.body as AnyObject, takes: [] });
    return answer;
  }

  stream(req: ApiRequest): Promise<ApiStream> {
    return Promise.reject(new Error(`${req.path} is not watched here`));
  }

  async close(): Promise<void> {
    return this.wire.close();
  }

  private async apply(req: ApiRequest & { readonly query: object }): Promise<ApiResponse> {
    const body = req.body as AnyObject;
    const { answer, live, dropped } = await this.tryOn(req);
    if (answer.status > 299) return answer;
    const after = answer.body as AnyObject;
    const [was, is] = [live && visible(live), visible(after)];
    const changes = live !== undefined && !isDeepStrictEqual(was, is);
    // A default that goes comes back.
    const gone = dropped.filter((path) => !isDeepStrictEqual(fieldAt(was, path), fieldAt(is, path)));
    this.tried.set(objectId(body), {
      ...(live && { before: live }),
      after,
      takes: changes && othersLose(live, after, req.query) ? await this.takes(req) : [],
      ...(live && gone.length > 0 && { drops: gone.flatMap((path) => conflictsAt(live, path)) }),
    });
    return answer;
  }

  /**
   * An answer has the version that it was tried on. What another writer has written, or made, since the look is no change
   * of ours.
   */
  private async tryOn(
    req: ApiRequest,
  ): Promise<{ readonly answer: ApiResponse; readonly live?: AnyObject; readonly dropped: FieldPath[] }> {
    const record = this.records.get(req.path);
    for (let looks = 1; ; looks++) {
      const listed = looks === 1 ? this.listed.get(decodeURIComponent(req.path)) : undefined;
      const { apiVersion, kind } = req.body as AnyObject;
      // The items of a list don't carry their type.
      const live = listed ? { ...listed, apiVersion, kind } : await this.look(req.path);
      const dropped: FieldPath[] = [];
      const answer = await this.try(live && record ? asPatch(req, live, record, dropped) : req);
      if (looks === MAX_LOOKS || answer.status > 299 || !isOvertaken(live, answer))
        return { answer, ...(live && { live }), dropped };
    }
  }

  private async look(path: string): Promise<AnyObject | undefined> {
    const { status, body } = await this.wire.request({ method: 'GET', path });
    return status === 200 ? (body as AnyObject) : undefined;
  }

  private async try(req: ApiRequest): Promise<ApiResponse> {
    const answer = await this.wire.request(req);
    if (answer.status <= 299) return answer;
    const cause = new ApiError(`${req.method} ${req.path}`, answer, isWriteOfSecrets(req));
    if (!cause.dryRunUnsupported) return answer;
    throw new OperatorError({ reason: DRY_RUN_UNSUPPORTED, message: cause.message, cause });
  }

  /** Returns the conflicts that the same apply would meet without force. */
  private async takes(req: ApiRequest): Promise<FieldConflict[]> {
    if (req.query?.force !== 'true') return [];
    const unforced = await this.wire.request({ ...req, query: { ...req.query, force: 'false' } });
    return unforced.status === 409 ? new ApiError('Apply', unforced).conflicts : [];
  }
}

/** Returns who has set a field. */
function conflictsAt(live: AnyObject, path: FieldPath): FieldConflict[] {
  const managers = managedFieldsOf(live).filter(({ fieldsV1 = {} }) => touches(fieldsV1, path));
  return managers.slice(0, 1).map(({ manager = '' }) => ({ field: describePath(path), manager }));
}

/**
 * Returns an apply as a patch of the fields that it comes to, as if another record of managers were stored: a dry run of
 * writing that leaves nothing behind.
 * @param dropped receives the fields that go
 */
function asPatch(
  req: ApiRequest,
  live: AnyObject,
  record: readonly ManagedFieldsEntry[],
  dropped: FieldPath[],
): ApiRequest {
  const { fieldManager = '', dryRun = 'All' } = req.query ?? {};
  const own = record.find((entry) => isAppliedBy(fieldManager, entry))?.fieldsV1;
  const others = record
    .filter((entry) => !isAppliedBy(fieldManager, entry))
    .flatMap(({ fieldsV1 }) => fieldsV1 ?? []);
  const merge = new Merge(dropped);
  const { metadata, status: _, ...content } = live;
  const { metadata: wantedMetadata, ...wanted } = req.body as AnyObject & Members;
  const merged = merge.value(content, wanted, own, others, []) as Members;
  const names = ['labels', 'annotations', 'ownerReferences'];
  const mergedMetadata = merge.value(
    ...[metadata, wantedMetadata, own?.['f:metadata'], others.flatMap((set) => set['f:metadata'] ?? [])],
    ['f:metadata'],
  ) as Members;
  const body = [
    ...Object.keys({ ...content, ...merged }).map((name) =>
      merged[name] === undefined
        ? { op: 'remove', path: `/${name}` }
        : { op: 'add', path: `/${name}`, value: merged[name] },
    ),
    ...names.flatMap((name) =>
      mergedMetadata[name] === undefined
        ? []
        : [{ op: 'add', path: `/metadata/${name}`, value: mergedMetadata[name] }],
    ),
  ];
  return { ...req, contentType: JSON_PATCH, body, query: { fieldManager, dryRun } };
}

type Members = Readonly<Record<string, unknown>>;

/** Server-side apply of values, by sets of fields. */
class Merge {
  constructor(private readonly dropped: FieldPath[]) {}

  /** @param own what the manager has applied before; what it doesn't name any more goes, unless others own it */
  value(
    live: unknown,
    wanted: unknown,
    own: FieldsV1 | undefined,
    others: readonly FieldsV1[],
    at: FieldPath,
  ): unknown {
    if (live === undefined || (wanted === undefined && !own)) return wanted ?? live;
    const goes = wanted === undefined && others.length === 0;
    if (goes && own && (isLeaf(own) || '.' in own)) {
      this.dropped.push(at);
      return undefined;
    }
    if (wanted === undefined && isLeaf(own ?? {})) return live;
    const isWhole = [own, ...others].some((set) => set && isLeaf(set));
    const below = (segment: string, from: unknown, to: unknown): unknown =>
      this.value(
        ...[from, to, own?.[segment]],
        others.flatMap((set) => set[segment] ?? []),
        [...at, segment],
      );
    if (isMap(live) && (wanted === undefined || isMap(wanted)) && !isWhole) {
      const names = Object.keys({ ...live, ...wanted });
      const members = names.map((name) => [name, below(`f:${name}`, live[name], wanted?.[name])] as const);
      const left = members.filter(([, value]) => value !== undefined);
      return goes && left.length === 0 ? undefined : Object.fromEntries(left);
    }
    const sets = [own ?? {}, ...others];
    const keyed = sets.flatMap(Object.keys).find((segment) => segment.startsWith('k:'));
    if (!Array.isArray(live) || keyed === undefined) return wanted ?? live;
    const names = Object.keys(JSON.parse(keyed.slice(2)) as object);
    const items = [...((wanted ?? []) as Members[])];
    const kept = (live as Members[]).flatMap((item) => {
      const index = items.findIndex((to) => names.every((name) => (to[name] ?? item[name]) === item[name]));
      const [to] = index < 0 ? [] : items.splice(index, 1);
      return below(segmentOf(item, names), item, to) ?? [];
    });
    return [...kept, ...items];
  }
}

/** Reports whether an apply by force has taken anything out of the records of other managers. */
function othersLose(before: AnyObject, after: AnyObject, query: ApiRequest['query']): boolean {
  const owned = (object: AnyObject): Set<string> =>
    new Set(
      managedFieldsOf(object)
        .filter((entry) => !isAppliedBy(query?.fieldManager ?? '', entry))
        .map(({ time, ...entry }) => canonicalJson(entry)),
    );
  const left = owned(after);
  return [...owned(before)].some((entry) => !left.has(entry));
}

function isOvertaken(live: AnyObject | undefined, { status, body }: ApiResponse): boolean {
  if (!live) return status === 200;
  const { resourceVersion } = (body as AnyObject).metadata;
  return resourceVersion !== undefined && resourceVersion !== live.metadata.resourceVersion;
}

/** See the caveats of `DryRun`. */
function withoutBlockingIn(owners: readonly OwnerReference[]): OwnerReference[] {
  return owners.map(({ blockOwnerDeletion, ...owner }) => owner);
}

function withoutBlocking(object: AnyObject): AnyObject {
  const { ownerReferences } = object.metadata;
  if (!ownerReferences) return object;
  const loose = withoutBlockingIn(ownerReferences);
  return { ...object, metadata: { ...object.metadata, ownerReferences: loose } };
}

/** Metadata that the API server keeps for itself, and changes with every write. */
const SERVERS_OWN: readonly string[] = [
  ...['managedFields', 'resourceVersion', 'generation', 'uid', 'creationTimestamp', 'selfLink'],
];

/**
 * Returns what people mean by an object: without what the API server, this project and `kubectl` keep in it for themselves, and
 * without the status.
 */
export function visible({ status, ...object }: AnyObject): AnyObject {
  const metadata = Object.entries(object.metadata)
    .filter(([name]) => !SERVERS_OWN.includes(name))
    .flatMap(([name, value]) => {
      if (name === 'annotations') return nonEmpty(name, visibleAnnotations(value as object));
      if (name === 'ownerReferences') return [[name, withoutBlockingIn(value as OwnerReference[])] as const];
      return [[name, value] as const];
    });
  return { ...object, metadata: Object.fromEntries(metadata) as unknown as AnyObject['metadata'] };
}

function visibleAnnotations(annotations: object): object {
  return Object.fromEntries(
    Object.entries(annotations).filter(
      ([name]) =>
        !isRecordAnnotation(name) && name !== ADOPT_BY_ANNOTATION && name !== LAST_APPLIED_ANNOTATION,
    ),
  );
}

function nonEmpty(name: string, value: object): (readonly [string, object])[] {
  return Object.keys(value).length === 0 ? [] : [[name, value]];
}

interface ServicePort {
  readonly port?: unknown;
  readonly protocol?: unknown;
  readonly nodePort?: unknown;
}

interface ServiceSpec {
  readonly ports?: readonly ServicePort[];
  readonly [field: string]: unknown;
}

const PICKED: readonly string[] = ['clusterIP', 'clusterIPs', 'healthCheckNodePort'];

/**
 * Returns the result of a dry run without what the API server has picked for it: addresses and node ports that nothing has asked
 * for, and that would be others in the end.
 * @param wanted what was applied
 */
export function withoutPicks(after: AnyObject, before: AnyObject | undefined, wanted: AnyObject): AnyObject {
  if (after.kind !== 'Service' || after.apiVersion !== 'v1') return after;
  const [spec, was, asked] = [after, before, wanted].map((object) => (object?.spec ?? {}) as ServiceSpec);
  if (!spec || !was || !asked) return after;
  const known = [...(was.ports ?? []), ...(asked.ports ?? [])];
  const isKnown = (port: ServicePort): boolean =>
    known.some((other) => other.nodePort === port.nodePort && other.port === port.port);
  const ports = spec.ports?.map((port) => {
    if (port.nodePort === undefined || isKnown(port)) return port;
    const { nodePort, ...rest } = port;
    return rest;
  });
  const others = Object.entries(spec).filter(
    ([name]) => !PICKED.includes(name) || name in was || name in asked,
  );
  return { ...after, spec: { ...Object.fromEntries(others), ...(ports && { ports }) } };
}
