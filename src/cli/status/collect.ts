import type { Condition } from '../../contract/conditions.js';
import { messageOf } from '../../contract/error.js';
import { isMap, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import { ApiError } from '../../engine/api-error.js';
import type { JobWatcherStatus } from '../../kinds/job-watcher/spec.js';
import type { StreamIngressStatus } from '../../kinds/stream-ingress/spec.js';
import type { ChildStatus, Fact, ResourceStatus, StatusDocument, Verdict } from './document.js';
import { Made } from './made.js';
import { operatorsFor } from './operators.js';
import type { Place } from './operators.js';
import type { Source } from './source.js';
import type { Target } from './targets.js';

export interface CollectProps {
  readonly targets: readonly Target[];
  /** @default - all */
  readonly namespace?: string;
  readonly source: Source;
  readonly now: () => Date;
  /** Whether it is looked who looks after them. @default true */
  readonly operators?: boolean;
}

/**
 * Finds out how custom resources fare, and what is made of them.
 *
 * **Guarantees.** What of children, pods, events or the operator may not be read is said in a note, and keeps nothing
 * else from being told. Of a Secret nothing but its metadata is read.
 *
 * @throws ApiError where none of the kinds that are asked for can be read; what can't be read of several is noted, and
 *   what isn't installed of several is left out
 */
export async function collect(props: CollectProps): Promise<StatusDocument> {
  const unseen = new Unseen();
  const { found, ...absent } = await resourcesOf(props, unseen);
  const resources = await Promise.all(
    found.flatMap(({ target, crs }) => crs.map((cr) => resourceStatus(cr, target, props))),
  );
  const places = found.flatMap(placesOf);
  const {
    operators,
    unattended,
    notes: told,
  } = props.operators === false
    ? { operators: undefined, unattended: [], notes: [] }
    : await operatorsFor(places, props.source, props.now());
  return {
    ...(operators && { operators }),
    notes: [...unseen.sentences, ...told],
    resources: resources.map((resource) => byChildren(resource, unattended)),
    ...absent,
  };
}

interface Found {
  readonly target: Target;
  readonly crs: readonly AnyObject[];
}

interface AllFound extends Pick<StatusDocument, 'notInstalled' | 'unreadable'> {
  readonly found: readonly Found[];
}

async function resourcesOf(props: CollectProps, unseen: Unseen): Promise<AllFound> {
  const { source, namespace, targets } = props;
  const found: Found[] = [];
  const notInstalled: string[] = [];
  const unreadable: string[] = [];
  let refused: ApiError | undefined;
  for (const target of targets) {
    const { type } = target.kind;
    const scope = {
      type,
      ...(namespace !== undefined && type.namespaced && { namespace }),
      ...(target.name !== undefined && { name: target.name }),
    };
    try {
      const crs = await source.list(scope);
      found.push({ target, crs: [...crs].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1)) });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // That a right is missing is worth more to the reader than that a kind isn't installed.
      if (!refused || refused.kindNotServed) refused = error;
      if (error.kindNotServed) notInstalled.push(type.kind);
      else {
        unreadable.push(type.kind);
        unseen.note(type.plural, error);
      }
    }
  }
  if (found.length === 0 && refused) throw refused;
  return {
    found,
    ...(notInstalled.length > 0 && { notInstalled }),
    ...(unreadable.length > 0 && { unreadable }),
  };
}

function idOf({ metadata: { namespace = '', name } }: AnyObject): string {
  return `${namespace}/${name}`;
}

/** Each namespace once. */
function placesOf({ target: { kind }, crs }: Found): Place[] {
  const namespaces = new Set(crs.map(({ metadata }) => metadata.namespace));
  return [...namespaces].map((namespace) => ({ kind, ...(namespace !== undefined && { namespace }) }));
}

async function resourceStatus(
  cr: AnyObject,
  target: Target,
  { source, namespace }: CollectProps,
): Promise<ResourceStatus> {
  const unseen = new Unseen();
  const made = new Made({ source, target, ...(namespace !== undefined && { namespace }) }, unseen.note);
  const children = await made.childrenOf(cr);
  const events = await made.eventsOf(cr, children);
  const { creationTimestamp, uid = '' } = cr.metadata;
  return {
    ...refOf(cr),
    uid,
    ...(creationTimestamp !== undefined && { created: creationTimestamp }),
    verdict: verdictOf(cr),
    facts: factsOf(cr),
    children,
    ...(made.unseenTypes.length > 0 && { unseen: made.unseenTypes }),
    ...(made.unservedTypes.length > 0 && { notServed: made.unservedTypes }),
    events,
    notes: [...unservedNote(made.unservedTypes), ...unseen.sentences],
  };
}

function unservedNote(types: readonly string[]): string[] {
  return types.length === 0 ? [] : [`Not served by the API server: ${types.join(', ')}`];
}

/**
 * A custom resource of which no controller has said anything, since none is there, is judged by its children, as after
 * `reconstruct apply`; unless some of them couldn't be listed. Any other stays as it is.
 * @param unattended the places that no operator looks after
 */
export function byChildren(resource: ResourceStatus, unattended: readonly Place[]): ResourceStatus {
  const { verdict, children, unseen = [], kind, apiVersion, namespace } = resource;
  const isUnattended = unattended.some(
    (place) =>
      place.kind.type.kind === kind &&
      place.kind.type.apiVersion === apiVersion &&
      place.namespace === namespace,
  );
  if (!isUnattended || verdict.word !== 'Unknown' || children.length === 0 || unseen.length > 0)
    return resource;
  return {
    ...resource,
    verdict: {
      ...{ word: wordOf(children), reason: 'ByChildren', current: true, byChildren: true },
      message: 'Nobody puts drift right: no operator looks after it',
    },
  };
}

function wordOf(children: readonly ChildStatus[]): Verdict['word'] {
  if (children.some(({ phase }) => phase === 'stalled')) return 'Stalled';
  return children.every(({ phase }) => phase === 'ready') ? 'Ready' : 'Reconciling';
}

type Telling = (cr: AnyObject) => (Fact | undefined)[];

/** What the status of kinds without children of their own says beside its conditions, by group and kind. */
const TOLD: ReadonlyMap<string, Telling> = new Map([
  [groupKind({ apiVersion: 'batch.my.github.com/v1', kind: 'JobWatcher' }), ofJobWatcher],
  [
    groupKind({ apiVersion: 'nginx-stream.jeffthecoder.xyz/v1beta1', kind: 'StreamIngress' }),
    ofStreamIngress,
  ],
]);

/** What the status of a custom resource says, beside the verdict. */
export function factsOf(cr: AnyObject): Fact[] {
  const own = TOLD.get(groupKind(cr))?.(cr) ?? [];
  return [...conditionFacts(cr), ...own.filter((fact) => fact !== undefined)];
}

function ofStreamIngress(cr: AnyObject): (Fact | undefined)[] {
  const { target, upstream, addresses = [] } = (cr.status ?? {}) as StreamIngressStatus;
  return [fact('target', target), fact('upstream', upstream), fact('addresses', addresses.join(', '))];
}

function ofJobWatcher(cr: AnyObject): (Fact | undefined)[] {
  const { lastRun, lastFinished, nextDeletion } = (cr.status ?? {}) as JobWatcherStatus;
  const skipped = Object.entries(lastRun?.skipped ?? {}).map(([reason, count]) => `${reason} ${count}`);
  return [
    lastRun &&
      fact(
        'last run',
        `${lastFinished ?? ''}: ${lastRun.deleted} deleted, ${lastRun.failed} failed, of ${lastRun.matched} matched ` +
          `and ${lastRun.finished} finished`,
      ),
    fact('skipped', skipped.join(', ')),
    fact('next deletion', nextDeletion),
  ];
}

function fact(name: string, text: string | undefined): Fact | undefined {
  return text === undefined || text === '' ? undefined : { name, text };
}

/** What couldn't be seen, told in as few sentences as will do. */
export class Unseen {
  private readonly forbidden = new Set<string>();
  private readonly unwatchable = new Set<string>();
  private readonly others = new Set<string>();

  /** @param plural the type, as in `pods` */
  readonly note = (plural: string, error: unknown): void => {
    if (error instanceof ApiError && error.code === 403) this.forbiddenBy(error).add(plural);
    else this.others.add(`Not seen: ${messageOf(error)}`);
  };

  get sentences(): string[] {
    return [...wanting('list', this.forbidden), ...wanting('watch', this.unwatchable), ...this.others];
  }

  private forbiddenBy({ message }: ApiError): Set<string> {
    return message.startsWith('Watch ') ? this.unwatchable : this.forbidden;
  }
}

function wanting(verb: string, plurals: ReadonlySet<string>): string[] {
  return plurals.size === 0
    ? []
    : [`Not seen, for want of the right to ${verb} them: ${[...plurals].sort().join(', ')}`];
}

interface Status {
  readonly observedGeneration?: number;
  readonly conditions?: readonly Partial<Condition>[];
}

/** What of the status is as it should be: nobody holds those of a kind of one's own to a form. */
function statusOf({ status }: AnyObject): Status {
  const { observedGeneration, conditions } = isMap(status) ? status : {};
  return {
    ...(typeof observedGeneration === 'number' && { observedGeneration }),
    conditions: Array.isArray(conditions) ? conditions.filter(isMap).map(conditionOf) : [],
  };
}

/** Texts alone. */
function conditionOf(condition: Readonly<Record<string, unknown>>): Partial<Condition> {
  return Object.fromEntries(Object.entries(condition).filter(([, value]) => typeof value === 'string'));
}

/** In this order, since who is stalled may be reconciled too in somebody else's eyes. */
const WORDS = ['Stalled', 'Ready', 'Reconciling'] as const;

/** How a custom resource fares, by its own conditions. */
export function verdictOf(cr: AnyObject): Verdict {
  const { observedGeneration, conditions = [] } = statusOf(cr);
  const current = observedGeneration !== undefined && observedGeneration === cr.metadata.generation;
  for (const word of WORDS) {
    const condition = conditions.find(({ type, status }) => type === word && status === 'True');
    if (condition) return { word, ...told(condition), current };
  }
  const ready = conditions.find(({ type }) => type === 'Ready');
  if (ready) return { word: 'Reconciling', ...told(ready), current };
  return {
    word: 'Unknown',
    reason: 'NotSeen',
    message: 'No controller has said anything of it yet',
    current,
  };
}

function told({
  reason = '',
  message = '',
  lastTransitionTime,
}: Partial<Condition>): Omit<Verdict, 'word' | 'current'> {
  return { reason, message, ...(lastTransitionTime !== undefined && { since: lastTransitionTime }) };
}

/** The three that the verdict is made of, and those that a Deployment says as well. */
const KNOWN: ReadonlySet<string> = new Set([...WORDS, ...['Available', 'Progressing', 'ReplicaFailure']]);

/** Conditions that warn: there is something to tell where they are True. */
const WARNINGS: ReadonlySet<string> = new Set(['ScopeLimited', 'Overlapping', 'ClockSkewed']);

/** Every other condition: what a kind says in its own words. */
function conditionFacts(cr: AnyObject): Fact[] {
  return (statusOf(cr).conditions ?? []).flatMap(({ type = '', status = 'Unknown', reason, message }) => {
    const isWarning = WARNINGS.has(type);
    if (KNOWN.has(type) || (isWarning && status !== 'True')) return [];
    const good = (status === 'True') !== isWarning;
    const why = good ? '' : ` (${[reason, message].filter(Boolean).join(': ')})`;
    return [{ name: type, text: `${status}${why}`, ...(status !== 'Unknown' && { good }) }];
  });
}
