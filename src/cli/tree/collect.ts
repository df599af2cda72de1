import type { Kind, OwnedKind } from '../../contract/kind.js';
import { selectorLabels } from '../../contract/names.js';
import { controllerOf, objectKey } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import type { ChildType } from '../../contract/owned-children.js';
import { groupKind, resourceType } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { suggest } from '../../contract/suggest.js';
import { ApiError, classify } from '../../engine/api-error.js';
import type { Api, Scope } from '../../engine/api.js';
import { sleep } from '../../engine/clock.js';
import type { Clock } from '../../engine/clock.js';
import { CliError } from '../exit.js';
import { operatorsFor } from '../operators.js';
import { notInstalled } from '../cluster.js';
import {
  childStatus,
  factsOf,
  lastEvents,
  objectStatus,
  podSelector,
  verdictByChildren,
  verdictOf,
} from './model.js';
import type { ChildStatus, EventStatus, ResourceStatus, StatusDocument } from './model.js';

/** The plain data of a kind that a tree needs: another process may have loaded the kind. */
export type SeenKind = Pick<Kind, 'name' | 'type' | 'crd'>;

export interface Target {
  readonly kind: SeenKind;
  readonly name?: string;
}

export interface TreeScope {
  readonly targets: readonly Target[];
  readonly namespace?: string | undefined;
  /** Looks for the operators that are responsible, too. @default true */
  readonly operators?: boolean;
}

/** Lists the objects of a scope; of Secrets, the metadata alone. @throws ApiError */
export type List = (scope: Scope) => Promise<readonly AnyObject[]>;

export function lister(api: Api, signal?: AbortSignal): List {
  const listed = new Map<string, Promise<readonly AnyObject[]>>();
  return (scope) => {
    const id = JSON.stringify(scope);
    const metadataOnly = groupKind(scope.type) === 'Secret';
    const objects = listed.get(id) ?? api.listAll({ ...scope, metadataOnly }, signal);
    listed.set(id, objects);
    return objects;
  };
}

/**
 * Collects custom resources as `collect` does, for a command.
 * @throws CliError with exit code 3 where the kinds aren't installed; OperatorError where the cluster refuses
 */
export async function look(scope: TreeScope, list: List): Promise<StatusDocument> {
  return collect(scope, list, new Date()).catch((error: unknown) => {
    if (error instanceof ApiError && error.kindNotServed)
      throw notInstalled(scope.targets.map(({ kind }) => kind.type.kind));
    throw classify(error, 'Look for custom resources');
  });
}

/** @throws CliError with exit code 2 and similar names, where there is no custom resource of the name that was asked for */
export async function refuseMissing(
  { targets: [target], namespace }: TreeScope,
  { resources }: StatusDocument,
  list: List,
): Promise<void> {
  if (target?.name === undefined || resources.length > 0) return;
  const { type } = target.kind;
  const where = type.namespaced ? namespace : undefined;
  const names = (await list(scopeOf({ type, namespace: where }))).map(({ metadata }) => metadata.name);
  const near = suggest(target.name, names);
  const known = names.slice(0, 10).join(', ') || 'none';
  throw new CliError(
    `There is no ${type.kind} ${objectKey(where, target.name)}` +
      (near === undefined ? `; there are ${known}` : `; did you mean ${near}?`),
    2,
  );
}

const POLL_MILLISECONDS = 1_000;
/** Share of the time that may be spent on looks, so that large clusters are asked less often. */
const BUSY_SHARE = 0.2;

interface FollowProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly look: (list: List) => Promise<StatusDocument>;
  /** Called with each state. @returns true to end */
  readonly onDocument: (document: StatusDocument) => boolean | Promise<boolean>;
  /** Called when a look fails, before the next one. @default - the first failure ends it, later ones are retried */
  readonly onFailed?: (error: unknown) => void;
}

/**
 * Looks every second until the signal aborts or `onDocument` ends it. Lists come from the API server's cache, and need no
 * right to watch.
 * @throws what `look` throws the first time, unless there is `onFailed`
 */
export async function follow({
  api,
  clock,
  signal,
  onDocument,
  onFailed,
  ...props
}: FollowProps): Promise<void> {
  const isOver = (): boolean => signal.aborted;
  for (let isFirst = true; !isOver(); isFirst = false) {
    const began = clock.monotonic();
    try {
      const document = await props.look(lister(api, signal));
      if (isOver() || (await onDocument(document))) return;
    } catch (error) {
      if (isOver()) return;
      if (isFirst && !onFailed) throw error;
      onFailed?.(error);
    }
    const took = clock.monotonic() - began;
    await sleep(clock, Math.max(POLL_MILLISECONDS, took / BUSY_SHARE - took), signal);
  }
}

/**
 * Collects custom resources with their children, the pods of those, and the last events of all.
 *
 * **Guarantees.** What may not be read is noted, and doesn't keep the rest from being collected.
 *
 * @throws ApiError where none of the kinds can be read
 */
export async function collect(scope: TreeScope, list: List, now: Date): Promise<StatusDocument> {
  const found: { readonly target: Target; readonly crs: readonly AnyObject[] }[] = [];
  const refused: Missed[] = [];
  for (const target of scope.targets) {
    const { type } = target.kind;
    const namespace = type.namespaced ? scope.namespace : undefined;
    try {
      const crs = await list(scopeOf({ type, namespace, name: target.name }));
      found.push({ target, crs: [...crs].sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1)) });
    } catch (error) {
      refused.push(missed(type, error));
    }
  }
  const unreadable = refused.filter(({ error }) => !error.kindNotServed);
  // A missing right is worth more to the reader than a kind that isn't installed.
  const [worst] = [...unreadable, ...refused];
  if (found.length === 0 && worst) throw worst.error;
  const missing = refused.filter(({ error }) => error.kindNotServed);
  const resources = await Promise.all(
    found.flatMap(({ target, crs }) => crs.map((cr) => resourceStatus(cr, target, scope, list))),
  );
  const places = found.flatMap(({ target: { kind }, crs }) =>
    [...new Set(crs.map(({ metadata }) => metadata.namespace))].map((namespace) => ({ kind, namespace })),
  );
  const { operators, unattended, notes } =
    scope.operators === false
      ? { operators: undefined, unattended: [], notes: [] }
      : await operatorsFor(places, list, now);
  const byChildren = (resource: ResourceStatus): ResourceStatus => {
    const isUnattended = unattended.some(
      ({ kind: { type }, namespace }) =>
        groupKind(type) === groupKind(resource) && namespace === resource.namespace,
    );
    const verdict = isUnattended ? verdictByChildren(resource) : undefined;
    return verdict ? { ...resource, verdict } : resource;
  };
  return {
    ...(operators && { operators }),
    notes: [...missedNotes(unreadable), ...notes],
    resources: resources.map(byChildren),
    ...(missing.length > 0 && { notInstalled: missing.map(({ type }) => type.kind) }),
    ...(unreadable.length > 0 && { unreadable: unreadable.map(({ type }) => type.kind) }),
  };
}

function sortKey({ metadata: { namespace = '', name } }: AnyObject): string {
  return `${namespace}/${name}`;
}

const podType = resourceType({ apiVersion: 'v1', kind: 'Pod' });
const eventType = resourceType({ apiVersion: 'events.k8s.io/v1', kind: 'Event' });

/**
 * Collects the tree of one custom resource.
 *
 * **Assumptions.** Children have the label that every rendered object gets, so that objects of others need not be listed.
 * Where all of a kind are asked for, one list of each type serves all of them.
 */
async function resourceStatus(
  cr: AnyObject,
  { kind, name }: Target,
  { namespace: ofScope }: TreeScope,
  list: List,
): Promise<ResourceStatus> {
  const { uid, namespace } = cr.metadata;
  const all: Missed[] = [];
  const listed = async (type: ResourceType, selector?: string): Promise<readonly AnyObject[]> => {
    // Events on objects without a namespace are in `default`.
    const own = namespace ?? (type === eventType ? 'default' : undefined);
    const where = name === undefined && namespace !== undefined ? ofScope : own;
    return list(scopeOf({ type, namespace: where, selector })).catch((error: unknown) => {
      all.push(missed(type, error));
      return [];
    });
  };
  const [[label, value] = ['', '']] = Object.entries(selectorLabels(kind.type, name ?? ''));
  const own = name === undefined ? label : `${label}=${value}`;
  // The kind may be of another copy of this package.
  const { children: current = [], formerChildren = [] } = kind as Partial<OwnedKind>;
  const types: ChildType[] = [...current, ...formerChildren.map((type) => ({ ...type, optional: true }))];
  const candidates = await Promise.all(types.map((type) => listed(type, own)));
  const objects = candidates.flat().filter((object) => controllerOf(object)?.uid === uid);
  const selectors = new Set(objects.flatMap((child) => podSelector(child, own) ?? []));
  const podLists = await Promise.all([...selectors].map((selector) => listed(podType, selector)));
  const pods = podLists.flat().filter(({ metadata }) => metadata.namespace === namespace);
  const children = objects.map((child) => childStatus(child, pods));
  const events = eventsOf(uid, children, await listed(eventType));

  const optional = new Map<ResourceType, boolean>(types.map((type) => [type, type.optional ?? false]));
  const isUnserved = ({ type, error }: Missed): boolean => optional.has(type) && error.kindNotServed;
  const notServed = all
    .filter((each) => isUnserved(each) && !optional.get(each.type))
    .map(({ type }) => `${type.plural} of ${type.apiVersion}`)
    .sort();
  const others = all.filter((each) => !isUnserved(each));
  const unseen = others.filter(({ type }) => optional.has(type));
  return {
    ...objectStatus(cr),
    ...{ verdict: verdictOf(cr), facts: factsOf(cr), children },
    ...(unseen.length > 0 && {
      unseen: unseen.map(({ type, error }) => ({ plural: type.plural, forbidden: error.code === 403 })),
    }),
    ...(notServed.length > 0 && { notServed }),
    events,
    notes: [
      ...(notServed.length > 0 ? [`Not served by the API server: ${notServed.join(', ')}`] : []),
      ...missedNotes(others),
    ],
  };
}

function eventsOf(
  uid: string | undefined,
  children: readonly ChildStatus[],
  events: readonly AnyObject[],
): EventStatus[] {
  const uids = new Set([uid, ...children.flatMap((child) => [child, ...child.pods]).map((each) => each.uid)]);
  const deployments = children.filter(({ kind }) => kind === 'Deployment');
  return lastEvents(events, uid, (regarding) => {
    if (regarding.uid !== undefined && uids.has(regarding.uid)) return true;
    const [, deployment] = /^(.+)-[a-z0-9]+$/.exec(regarding.name ?? '') ?? [];
    return regarding.kind === 'ReplicaSet' && deployments.some((each) => each.name === deployment);
  });
}

function scopeOf(scope: { readonly [Name in keyof Scope]: Scope[Name] | undefined }): Scope {
  return Object.fromEntries(
    Object.entries(scope).filter(([, value]) => value !== undefined),
  ) as unknown as Scope;
}

interface Missed {
  readonly type: ResourceType;
  readonly error: ApiError;
}

/** @throws the error where it isn't an answer of the API server */
function missed(type: ResourceType, error: unknown): Missed {
  if (error instanceof ApiError) return { type, error };
  throw error;
}

/** Returns sentences on what couldn't be read, one for all types whose right is missing. */
function missedNotes(all: readonly Missed[]): string[] {
  const forbidden = all.filter(({ error }) => error.code === 403).map(({ type }) => type.plural);
  const plurals = [...new Set(forbidden)].sort().join(', ');
  const others = all.filter(({ error }) => error.code !== 403);
  return [
    ...(plurals === '' ? [] : [`Not seen, for want of the right to list them: ${plurals}`]),
    ...new Set(others.map(({ error }) => `Not seen: ${error.message}`)),
  ];
}
