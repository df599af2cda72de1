import { messageOf } from '../../contract/error.js';
import { childrenFieldManager } from '../../contract/names.js';
import { controllerOf, describeRef, objectId, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import type { Api, Scope } from '../../engine/api.js';
import { sleep } from '../../engine/clock.js';
import type { Clock } from '../../engine/clock.js';
import { describePath, isAppliedBy, managedFieldsOf } from '../../engine/managed-fields.js';
import type { FieldsV1 } from '../../engine/managed-fields.js';
import { showValue } from '../../synth/problem.js';
import { fieldChanges, shown } from '../diff/fields.js';
import { collect } from '../tree/collect.js';
import type { SeenKind, Source } from '../tree/collect.js';
import { follow } from '../tree/follow.js';
import type { StatusDocument } from '../tree/model.js';

/** A change of an object between two looks. */
export interface Change {
  readonly isGone: boolean;
  /** As in `ConfigMap default/hello: .data.greeting "Hello" -> "Hi"`. */
  readonly text: string;
}

/** Also a kind that isn't served yet is served soon. */
const RETRY_MILLISECONDS = 2_000;

export interface FollowerProps {
  readonly api: Api;
  readonly clock: Clock;
  readonly onDocument: (document: StatusDocument) => void;
  /** Called with the changes since the previous look. */
  readonly onChanges: (changes: readonly Change[]) => void;
  /** Called with each look. @param lines why it failed; none where it succeeded */
  readonly onTrouble: (lines: readonly string[]) => void;
}

/** Looks at custom resources and their children whenever one has changed, and retries for ever. */
export class Follower {
  private kinds = '';
  private known: ReadonlyMap<string, AnyObject> = new Map();
  private stopping: AbortController | undefined;

  constructor(private readonly props: FollowerProps) {}

  /** Looks at these kinds from now on; does nothing where they are the same as before. */
  follow(kinds: readonly SeenKind[]): void {
    const id = JSON.stringify(kinds);
    if (id === this.kinds) return;
    this.stop();
    this.kinds = id;
    this.stopping = new AbortController();
    void this.run(kinds, this.stopping.signal);
  }

  stop(): void {
    this.stopping?.abort();
    this.kinds = '';
  }

  private async run(kinds: readonly SeenKind[], signal: AbortSignal): Promise<void> {
    const { api, clock, onTrouble } = this.props;
    const targets = kinds.map((kind) => ({ kind }));
    const onFailed = (error: unknown): void => {
      if (!signal.aborted) onTrouble([messageOf(error)]);
    };
    while (!signal.aborted) {
      let recorder: Recorder | undefined;
      await follow({
        ...{ api, clock, signal, onFailed },
        collect: async (source) => {
          recorder = new Recorder(source);
          return collect({ targets, operators: false }, recorder, new Date());
        },
        onDocument: (document) => {
          if (recorder) this.looked(document, recorder);
          return false;
        },
      }).catch(onFailed);
      await sleep(clock, RETRY_MILLISECONDS, signal);
    }
  }

  /** Changes come first, since they explain the status. */
  private looked(document: StatusDocument, { objects, unlisted }: Recorder): void {
    this.props.onTrouble([]);
    const crs = new Set(document.resources.map(({ uid }) => uid));
    // They may still exist.
    const unseen = [...this.known.values()].filter((object) => unlisted.has(groupKind(object)));
    const ours = [...unseen, ...objects].filter(
      (object) => crs.has(object.metadata.uid ?? '') || crs.has(controllerOf(object)?.uid ?? ''),
    );
    const changes = changesBetween([...this.known.values()], ours);
    this.known = byId(ours);
    if (changes.length > 0) this.props.onChanges(changes);
    this.props.onDocument(document);
  }
}

/** Records the objects that were listed, and the group and kind of those that couldn't be. */
class Recorder implements Source {
  readonly objects: AnyObject[] = [];
  readonly unlisted = new Set<string>();

  constructor(private readonly source: Source) {}

  async list(scope: Scope): Promise<readonly AnyObject[]> {
    try {
      const found = await this.source.list(scope);
      this.objects.push(...found);
      return found;
    } catch (error) {
      this.unlisted.add(groupKind(scope.type));
      throw error;
    }
  }
}

function byId(objects: readonly AnyObject[]): Map<string, AnyObject> {
  return new Map(objects.map((object) => [objectId(object), object]));
}

/**
 * Compares two looks: of custom resources their spec, of their children the fields that are or were rendered, whoever has
 * changed them. Other fields are left out.
 */
export function changesBetween(before: readonly AnyObject[], after: readonly AnyObject[]): Change[] {
  const [old, now] = [byId(before), byId(after)];
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
  const owner = controllerOf(after) ?? controllerOf(before);
  const pair = owner
    ? shown({ before, after })
    : { before: { spec: before.spec }, after: { spec: after.spec } };
  // Also what is rendered no more, and what another manager took.
  const rendered = [before, after]
    .flatMap(managedFieldsOf)
    .filter((entry) => owner && isAppliedBy(childrenFieldManager(owner.kind), entry))
    .flatMap(({ fieldsV1 = {} }) => leaves(fieldsV1).map(withoutItems));
  const isRendered = (path: string): boolean =>
    !owner || rendered.some((field) => isWithin(field, path) || isWithin(path, field));
  return fieldChanges(pair.before, pair.after)
    .filter(({ path }) => isRendered(withoutItems(path)))
    .map(({ path, ...values }) => {
      if (!('before' in values)) return `${path} is now ${showValue(values.after)}`;
      if (!('after' in values)) return `${path} was ${showValue(values.before)}, and is gone`;
      return `${path} ${showValue(values.before)} -> ${showValue(values.after)}`;
    });
}

/** The innermost fields of a set; of items, those in them. */
function leaves(fields: FieldsV1, path: readonly string[] = []): string[] {
  const below = Object.entries(fields).filter(([segment]) => segment !== '.');
  if (below.length === 0) return path.length === 0 ? [] : [describePath(path)];
  return below.flatMap(([segment, child]) => leaves(child, [...path, segment]));
}

/** A path without the keys of items, which the API server and a comparison choose differently. */
function withoutItems(path: string): string {
  return path.replaceAll(/\[[^"[\]][^[\]]*\]/g, '[]');
}

function isWithin(path: string, outer: string): boolean {
  return path.startsWith(outer) && ['', '.', '['].includes(path.charAt(outer.length));
}
