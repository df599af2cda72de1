import type { ChildType } from '../../contract/owned-children.js';
import type { OwnedKind } from '../../contract/kind.js';
import { selectorLabels } from '../../contract/names.js';
import { controllerOf, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { childReadiness } from '../../contract/readiness.js';
import { resourceType } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import type { Scope } from '../../engine/api.js';
import { ApiError } from '../../engine/api-error.js';
import { podTrouble } from '../../kinds/app-service/pods.js';
import type { ChildStatus, EventStatus, PodStatus, UnseenType } from './document.js';
import type { Source } from './source.js';
import type { SeenKind, Target } from './targets.js';

const podType = resourceType({ apiVersion: 'v1', kind: 'Pod' });

export interface MadeProps {
  readonly source: Source;
  readonly target: Target;
  /** Where all of a kind are looked for. @default - everywhere */
  readonly namespace?: string;
}

/**
 * What is made of custom resources: their children, the pods of those, and what is told of them all. What may not be read
 * is noted, and taken for nothing.
 *
 * **Assumptions.** Children bear the label that every rendered object gets, so that others' need not be listed. Where all
 * of a kind are asked for, one list of each type is enough.
 */
export class Made {
  private readonly missed: UnseenType[] = [];
  private readonly unserved: string[] = [];
  private readonly label: string;
  private readonly selector: string;

  constructor(
    private readonly props: MadeProps,
    /** Told of each type that may not be read, and of what else the API server answers in place of objects. */
    private readonly unseen: (plural: string, error: ApiError) => void,
  ) {
    const { kind, name } = props.target;
    const [[label, value] = ['', '']] = Object.entries(selectorLabels(kind.type, name ?? ''));
    this.label = label;
    this.selector = name === undefined ? label : `${label}=${value}`;
  }

  /** Types of children that couldn't be listed. */
  get unseenTypes(): readonly UnseenType[] {
    return this.missed;
  }

  /** Types of children that have to be there, and that the API server doesn't serve, as in `deployments of apps/v9`. */
  get unservedTypes(): readonly string[] {
    return [...this.unserved].sort();
  }

  /** Those that the custom resource controls by UID, with their pods. */
  async childrenOf(cr: AnyObject): Promise<ChildStatus[]> {
    const owned = ownedKind(this.props.target.kind);
    const former = (owned?.formerChildren ?? []).map((type) => ({ ...type, optional: true }));
    const types: readonly ChildType[] = [...(owned?.children ?? []), ...former];
    const lists = await Promise.all(types.map((type) => this.listChildren(type, cr)));
    const children = lists.flat().filter((object) => controllerOf(object)?.uid === cr.metadata.uid);
    const pods = await this.podsOf(cr, children);
    return children.map((child) => childStatus(child, pods));
  }

  async eventsOf(cr: AnyObject, children: readonly ChildStatus[]): Promise<EventStatus[]> {
    const events = await this.list(eventType, cr, undefined);
    const pods = children.flatMap((child) => child.pods);
    const uids = new Set([cr.metadata.uid, ...children.map(({ uid }) => uid), ...pods.map(({ uid }) => uid)]);
    const deployments = children.filter(({ kind }) => kind === 'Deployment');
    return lastEvents(events, cr.metadata.uid, ({ uid, kind, name = '' }) => {
      if (uid !== undefined && uids.has(uid)) return true;
      return kind === 'ReplicaSet' && deployments.some((each) => isReplicaSetOf(each.name, name));
    });
  }

  private async podsOf(cr: AnyObject, children: readonly AnyObject[]): Promise<readonly AnyObject[]> {
    const own = { label: this.label, selector: this.selector };
    const selectors = new Set(children.flatMap((child) => podSelector(child, own) ?? []));
    const lists = await Promise.all([...selectors].map((selector) => this.list(podType, cr, selector)));
    return lists.flat().filter(({ metadata }) => metadata.namespace === cr.metadata.namespace);
  }

  /** Of a type that isn't installed there are none. */
  private async listChildren(type: ChildType, cr: AnyObject): Promise<readonly AnyObject[]> {
    return this.list(type, cr, this.selector, (error) => {
      if (error.kindNotServed) {
        if (!type.optional) this.unserved.push(`${type.plural} of ${type.apiVersion}`);
        return;
      }
      this.missed.push({ plural: type.plural, forbidden: error.code === 403 });
      this.unseen(type.plural, error);
    });
  }

  /** @param failed told why they can't be listed */
  private async list(
    type: ResourceType,
    cr: AnyObject,
    selector: string | undefined,
    failed = (error: ApiError): void => {
      this.unseen(type.plural, error);
    },
  ): Promise<readonly AnyObject[]> {
    try {
      return await this.props.source.list(this.scopeOf(type, cr, selector));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      failed(error);
      return [];
    }
  }

  private scopeOf(type: ResourceType, cr: AnyObject, selector: string | undefined): Scope {
    const { target, namespace } = this.props;
    // Events of what has no namespace are in `default`.
    const own = cr.metadata.namespace ?? (type === eventType ? 'default' : undefined);
    const where = target.name === undefined && cr.metadata.namespace !== undefined ? namespace : own;
    return {
      type,
      ...(where !== undefined && { namespace: where }),
      ...(selector !== undefined && { selector }),
    };
  }
}

/** Also one that another copy of this package has made. */
function ownedKind(kind: SeenKind): Pick<OwnedKind, 'children' | 'formerChildren'> | undefined {
  return 'children' in kind && 'formerChildren' in kind ? (kind as OwnedKind) : undefined;
}

function childStatus(child: AnyObject, pods: readonly AnyObject[]): ChildStatus {
  const { phase, message } = childReadiness(child);
  const { creationTimestamp, uid = '' } = child.metadata;
  const own = pods.filter((pod) => isPodOf(child, pod)).map(podStatus);
  return {
    ...refOf(child),
    uid,
    ...(creationTimestamp !== undefined && { created: creationTimestamp }),
    ...{ phase, message },
    pods: own.sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

function isReplicaSetOf(deployment: string, name: string): boolean {
  return name.startsWith(`${deployment}-`) && /^[a-z0-9]+$/.test(name.slice(deployment.length + 1));
}

const eventType = resourceType({ apiVersion: 'events.k8s.io/v1', kind: 'Event' });

/** So many are told of each custom resource. */
const MOST = 5;

/** `events.k8s.io/v1`, as far as it is read. */
interface Event extends AnyObject {
  readonly type?: string;
  readonly reason?: string;
  readonly note?: string;
  readonly regarding?: { readonly kind?: string; readonly name?: string; readonly uid?: string };
  readonly eventTime?: string | null;
  readonly series?: { readonly count: number; readonly lastObservedTime: string } | null;
  readonly deprecatedCount?: number;
  readonly deprecatedLastTimestamp?: string | null;
}

/**
 * The last events of some objects: warnings first, then those of the custom resource, then the rest; of each the latest
 * first.
 * @param uid of the custom resource
 * @param regards whether an event is of one of the objects
 */
export function lastEvents(
  events: readonly AnyObject[],
  uid: string | undefined,
  regards: (regarding: NonNullable<Event['regarding']>) => boolean,
): EventStatus[] {
  const rank = ({ type, regarding }: Event): number =>
    type === 'Warning' ? 0 : regarding?.uid === uid ? 1 : 2;
  return (events as readonly Event[])
    .filter(({ regarding }) => regarding !== undefined && regards(regarding))
    .map((event) => ({ rank: rank(event), status: eventStatus(event) }))
    .sort((a, b) => a.rank - b.rank || Date.parse(b.status.at) - Date.parse(a.status.at))
    .slice(0, MOST)
    .map(({ status }) => status);
}

function eventStatus(event: Event): EventStatus {
  const { type = 'Normal', reason = '', note = '', regarding, series, deprecatedCount = 1 } = event;
  const last = series?.lastObservedTime ?? event.deprecatedLastTimestamp ?? event.eventTime;
  return {
    ...{ type, reason, note, count: series?.count ?? deprecatedCount },
    at: last ?? event.metadata.creationTimestamp ?? '',
    regarding: { kind: regarding?.kind ?? '', name: regarding?.name ?? '' },
  };
}

interface ContainerStatus {
  readonly ready?: boolean;
  readonly restartCount?: number;
}

interface Status {
  readonly phase?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  readonly containerStatuses?: readonly ContainerStatus[];
}

/** How a pod fares, as far as it says itself. */
export function podStatus(pod: AnyObject): PodStatus {
  const status = (pod.status ?? {}) as Status;
  const { containers = [] } = (pod.spec ?? {}) as { readonly containers?: readonly unknown[] };
  const trouble = podTrouble(pod);
  const known = status.containerStatuses ?? [];
  const { creationTimestamp, uid = '' } = pod.metadata;
  const message = trouble?.message ?? (status.phase === 'Failed' ? status.message : undefined);
  return {
    ...refOf(pod),
    uid,
    ...(creationTimestamp !== undefined && { created: creationTimestamp }),
    ready: status.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') ?? false,
    readyContainers: known.filter(({ ready }) => ready).length,
    containers: Math.max(containers.length, known.length),
    restarts: known.reduce((sum, { restartCount = 0 }) => sum + restartCount, 0),
    state: stateOf(pod, status, trouble?.reason),
    ...(message !== undefined && { message }),
  };
}

function stateOf({ metadata }: AnyObject, { phase, reason }: Status, trouble: string | undefined): string {
  if (metadata.deletionTimestamp) return 'Terminating';
  return trouble ?? reason ?? phase ?? 'Pending';
}

/** Whether a workload has made a pod, by itself or through a ReplicaSet, whose name is made of its own. */
export function isPodOf(workload: AnyObject, pod: AnyObject): boolean {
  const controller = controllerOf(pod);
  if (!controller) return false;
  if (controller.uid === workload.metadata.uid) return true;
  if (workload.kind !== 'Deployment') return false;
  const hash = pod.metadata.labels?.['pod-template-hash'];
  return controller.kind === 'ReplicaSet' && controller.name === `${workload.metadata.name}-${hash ?? ''}`;
}

interface Selector {
  readonly matchLabels?: Readonly<Record<string, string>>;
}

/** Kinds whose objects make pods, which their selector finds. */
const WORKLOADS: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'DaemonSet', 'Job']);

/**
 * The label selector by which the pods of a child are found; undefined if it makes none.
 * @param own the label that ties children to their custom resource, and the selector for it: where pods bear it too, one
 *   list is enough for all of them
 */
export function podSelector(
  child: AnyObject,
  own: { readonly label: string; readonly selector: string },
): string | undefined {
  if (!WORKLOADS.has(child.kind)) return undefined;
  const { selector } = (child.spec ?? {}) as { readonly selector?: Selector };
  const labels = Object.entries(selector?.matchLabels ?? {});
  if (labels.length === 0) return undefined;
  if (labels.some(([name]) => name === own.label)) return own.selector;
  return labels.map(([name, value]) => `${name}=${value}`).join();
}
