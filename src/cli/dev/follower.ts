import { messageOf } from '../../contract/error.js';
import { controllerOf, describeRef, objectId, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import type { Api } from '../../engine/api.js';
import type { Clock } from '../../engine/clock.js';
import { showValue } from '../../synth/problem.js';
import { fieldChanges, shown } from '../diff/fields.js';
import { collect, follow } from '../tree/model.js';
import type { SeenKind, StatusDocument } from '../tree/model.js';

export interface Change {
  readonly isGone: boolean;
  /** As in `ConfigMap default/hello: .data.greeting "Hello" -> "Hi"`. */
  readonly text: string;
}

interface FollowerProps {
  readonly api: Api;
  readonly clock: Clock;
  /** Called with each look, and the changes since the previous one, which explain the status. */
  readonly onDocument: (document: StatusDocument, changes: readonly Change[]) => void;
  /** Called with each look. @param lines why it failed; none where it succeeded */
  readonly onTrouble: (lines: readonly string[]) => void;
}

export class Follower {
  private kinds = '';
  private known: readonly AnyObject[] = [];
  private stopping: AbortController | undefined;

  constructor(private readonly props: FollowerProps) {}

  /** Looks at these kinds from now on; does nothing where they are the same as before. */
  follow(kinds: readonly SeenKind[]): void {
    const id = JSON.stringify(kinds);
    if (id === this.kinds) return;
    this.stop();
    this.kinds = id;
    this.stopping = new AbortController();
    const { api, clock, onTrouble, onDocument } = this.props;
    const targets = kinds.map((kind) => ({ kind }));
    let objects: AnyObject[] = [];
    let unlisted = new Set<string>();
    void follow({
      ...{ api, clock, signal: this.stopping.signal },
      look: (list) => {
        [objects, unlisted] = [[], new Set()];
        const recorded: typeof list = async (scope) => {
          try {
            const found = await list(scope);
            objects.push(...found);
            return found;
          } catch (error) {
            unlisted.add(groupKind(scope.type));
            throw error;
          }
        };
        return collect({ targets, operators: false }, recorded, new Date());
      },
      onDocument: (document) => {
        onTrouble([]);
        const crs = new Set(document.resources.map(({ uid }) => uid));
        // They may still exist.
        const unseen = this.known.filter((object) => unlisted.has(groupKind(object)));
        const ours = [...unseen, ...objects].filter(
          (object) => crs.has(object.metadata.uid ?? '') || crs.has(controllerOf(object)?.uid ?? ''),
        );
        const changes = changesBetween(this.known, ours);
        this.known = ours;
        onDocument(document, changes);
        return false;
      },
      onFailed: (error) => {
        onTrouble([messageOf(error)]);
      },
    });
  }

  stop(): void {
    this.stopping?.abort();
    this.kinds = '';
  }
}

/** Compares two looks: of custom resources their spec, of their children everything but what controllers report. */
export function changesBetween(before: readonly AnyObject[], after: readonly AnyObject[]): Change[] {
  const old = new Map(before.map((each) => [objectId(each), each]));
  const now = new Map(after.map((each) => [objectId(each), each]));
  const change = (object: AnyObject, text: string): Change => ({
    isGone: text === 'gone',
    text: `${describeRef(refOf(object))}: ${text}`,
  });
  return [
    ...[...now].flatMap(([id, object]) => {
      const previous = old.get(id);
      if (!previous) return [change(object, 'created')];
      if (previous.metadata.uid !== object.metadata.uid) return [change(object, 'created again')];
      return changedFields(previous, object).map((text) => change(object, text));
    }),
    ...[...old].filter(([id]) => !now.has(id)).map(([, object]) => change(object, 'gone')),
  ];
}

function changedFields(before: AnyObject, after: AnyObject): string[] {
  if (before.metadata.resourceVersion === after.metadata.resourceVersion) return [];
  const isChild = controllerOf(after) !== undefined || controllerOf(before) !== undefined;
  const pair = isChild
    ? shown({ before: authored(before), after: authored(after) })
    : { before: { spec: before.spec }, after: { spec: after.spec } };
  return fieldChanges(pair.before, pair.after).map(({ path, ...values }) => {
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
