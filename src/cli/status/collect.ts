import { refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { ApiError } from '../../engine/api-error.js';
import { byChildren } from './by-children.js';
import type { ResourceStatus, StatusDocument } from './document.js';
import { factsOf } from './facts.js';
import { Made } from './made.js';
import { operatorsFor } from './operators.js';
import type { Place } from './operators.js';
import type { Source } from './source.js';
import type { Target } from './targets.js';
import { Unseen } from './unseen.js';
import { verdictOf } from './verdict.js';

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
