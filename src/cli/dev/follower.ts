import { messageOf } from '../../contract/error.js';
import { describeRef, objectId } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import { ownerUidOf } from '../../values/projections.js';
import type { Api } from '../../client/api.js';
import type { Clock } from '../../client/clock.js';
import { showValue } from '../../values/path.js';
import { fieldChanges, redactedPair } from '../../engine/preview/fields.js';
import { follow } from '../reader.js';
import type { List } from '../reader.js';
import { look } from '../tree/model.js';
import type { KindData } from '../operators.js';
import type { StatusDocument } from '../tree/model.js';

interface FollowerProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The kinds to look at now. */
  readonly kinds: () => readonly KindData[];
  /** Called with each look, and lines for the changes since the previous one, which explain the status. */
  readonly onDocument: (document: StatusDocument, changes: readonly string[]) => void;
  /** Called with each look. @param lines why it failed; none where it succeeded */
  readonly onTrouble: (lines: readonly string[]) => void;
}

/** Looks at custom resources and their children again and again. */
export async function followKinds({ kinds, onDocument, onTrouble, ...props }: FollowerProps): Promise<void> {
  const looks = follow({
    ...props,
    look: async (list) => {
      const objects: AnyObject[] = [];
      const unlisted = new Set<string>();
      const recorded: List = async (scope) => {
        try {
          const found = await list(scope);
          objects.push(...found);
          return found;
        } catch (error) {
          unlisted.add(groupKind(scope.type));
          throw error;
        }
      };
      const targets = kinds().map((kind) => ({ kind }));
      return { document: await look({ targets, operators: false }, recorded), objects, unlisted };
    },
    onFailed: (error) => {
      onTrouble([messageOf(error)]);
    },
  });
  let known: readonly AnyObject[] = [];
  for await (const { document, objects, unlisted } of looks) {
    onTrouble([]);
    const crs = new Set(document.resources.map(({ uid }) => uid));
    // They may still exist.
    const unseen = known.filter((object) => unlisted.has(groupKind(object)));
    const ours = [...unseen, ...objects].filter(
      (object) => crs.has(object.metadata.uid ?? '') || crs.has(ownerUidOf(object) ?? ''),
    );
    onDocument(document, changesBetween(known, ours));
    known = ours;
  }
}

/**
 * Compares two looks: of custom resources their spec, of their children everything but what controllers report. What is gone
 * the status shows.
 *
 * @returns lines such as `ConfigMap default/hello: .data.greeting "Hello" -> "Hi"`
 */
export function changesBetween(before: readonly AnyObject[], after: readonly AnyObject[]): string[] {
  const old = new Map(before.map((each) => [objectId(each), each]));
  const now = new Map(after.map((each) => [objectId(each), each]));
  return [...now].flatMap(([id, object]) => {
    const previous = old.get(id);
    const isSame = previous?.metadata.uid === object.metadata.uid;
    const texts =
      previous && isSame ? changedFields(previous, object) : [previous ? 'created again' : 'created'];
    return texts.map((text) => `${describeRef(object)}: ${text}`);
  });
}

function changedFields(before: AnyObject, after: AnyObject): string[] {
  if (before.metadata.resourceVersion === after.metadata.resourceVersion) return [];
  const isChild = ownerUidOf(after) !== undefined || ownerUidOf(before) !== undefined;
  const pair = isChild
    ? redactedPair({ before: authored(before), after: authored(after) })
    : { before: { spec: before.spec }, after: { spec: after.spec } };
  const changes = fieldChanges(pair.before, pair.after);
  // Of Secrets the metadata alone is read.
  if (isChild && changes.length === 0 && groupKind(after) === 'Secret')
    return ['its data has changed, which is not shown'];
  return changes.map(({ path, ...values }) => {
    if (!('before' in values)) return `${path} is now ${showValue(values.after)}`;
    if (!('after' in values)) return `${path} was ${showValue(values.before)}, and is gone`;
    return `${path} ${showValue(values.before)} -> ${showValue(values.after)}`;
  });
}

/** Returns an object without the metadata that the API server and Kubernetes' own controllers write. */
function authored({ metadata: { name, labels = {}, annotations = {} }, ...object }: AnyObject): AnyObject {
  const own = Object.entries(annotations).filter(([key]) => !/^[\w.-]*kubernetes\.io\//.test(key));
  return { ...object, metadata: { name, labels, annotations: Object.fromEntries(own) } };
}
