import { isDeepStrictEqual } from 'node:util';
import type { Explanation } from '../../contract/plan.js';
import { storedVersion } from '../../contract/crd.js';
import { selectorLabels } from '../../contract/names.js';
import { compare, objectKey } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import { ApiError } from '../../client/api-error.js';
import { Api } from '../../client/api.js';
import type { ListPage, Scope } from '../../client/api.js';
import type { ObjectPreview, PreviewAction } from '../../engine/preview/preview.js';
import { applyDefaults } from '../../validate/defaults.js';
import { notInstalled } from '../cluster.js';
import { noSuchResource } from '../targets.js';
import type { KindTarget } from '../targets.js';
import { lister } from '../reader.js';
import { afterPauses, isDifference, previewKind } from './compare.js';
import type { Diff, KindPreview, PreviewMeans } from './compare.js';
import { fieldChanges, ofAnyItem, redactedPair } from '../../engine/preview/fields.js';
import { rollsPods } from '../../engine/preview/rollout.js';

export interface LiveProps extends PreviewMeans {
  readonly targets: readonly KindTarget[];
  /** @default - all */
  readonly namespace?: string | undefined;
  /** Label selector of custom resources. @default - all */
  readonly selector?: string | undefined;
  /** Maximum number of objects that differ and are kept in full. */
  readonly details: number;
  /** Called with how many custom resources are compared, and how many there are, as far as that is known. */
  readonly progress?: (done: number, total: number | undefined) => void;
}

/** The same change of objects of one type. */
export interface ChangeGroup {
  readonly apiVersion: string;
  readonly kind: string;
  readonly action: PreviewAction;
  /** Field such as `.spec.ports[].name`. @default - none: the change is about whole objects */
  readonly path?: string;
  /** Change of the field, such as `added`, or `taken from kubectl`. @default - none: the change is about whole objects */
  readonly field?: string;
  /** @default - there is none, or it isn't the same in all of them */
  readonly before?: unknown;
  /** @default - there is none, or it isn't the same in all of them */
  readonly after?: unknown;
  /** Whether pods are replaced, or deleted with the objects. @default false */
  readonly rollout?: boolean;
  /** Reason why it can't be applied. */
  readonly reason?: string;
  /** Message of the first error that was found. */
  readonly message?: string;
  /** Number of the objects. */
  readonly count: number;
  /** Number of objects of the type that were compared. */
  readonly of: number;
  /** The first of them by name. */
  readonly examples: readonly string[];
}

export interface LiveDiff {
  /** Custom resources that were compared, by kind. */
  readonly compared: Readonly<Record<string, number>>;
  /** Number of them that are paused: what would change of theirs waits for the end of the pause. */
  readonly paused: number;
  /** Numbers of objects whose pods would be replaced, or deleted with them, by kind. */
  readonly rollouts: Readonly<Record<string, number>>;
  /** Objects of theirs, by what would become of them. */
  readonly counts: Readonly<Partial<Record<PreviewAction, number>>>;
  /** The most severe first. */
  readonly changes: readonly ChangeGroup[];
  /** Number of changes beyond a thousand that differ: some have names of objects in their paths. */
  readonly others: number;
  /** Objects in full: all of what was named, else the first that differ. */
  readonly kept: Diff;
}

/** Maximum number of changes that are distinguished, so that memory doesn't grow with the number of custom resources. */
const MAX_CHANGES = 1_000;

/** Maximum number of custom resources that are compared together: their names fit into a URL. */
const WINDOW = 100;
const WINDOWS_AT_ONCE = 8;

/**
 * Finds out what the kinds would change now of what is live, by dry runs. Custom resources are taken as they are, with the
 * defaults of the kinds' own CRDs.
 *
 * **Guarantees.** Custom resources and their objects are listed in pages, and forgotten once they are compared: memory doesn't
 * grow with their number. An object whose last apply still stands costs no request of its own.
 *
 * **Caveats.** An object that isn't rendered any more is found by the label that children have. Kinds whose custom resources
 * share objects are compared at once.
 *
 * @throws CliError where a name isn't there, or no kind is installed; ApiError where the cluster refuses
 */
export async function compareLive(props: LiveProps): Promise<LiveDiff> {
  const { targets } = props;
  const summary = new Summary(props.details);
  const state: State = { done: 0, total: 0, missing: [] };
  for (const target of targets) {
    const { kind } = target;
    const windows = windowsOf(target, props, state);
    const work = async (): Promise<void> => {
      for await (const crs of windows) {
        summary.add(kind.type.kind, await previewLive(target, crs, props));
        state.done += crs.length;
        props.progress?.(state.done, state.total);
      }
    };
    await Promise.all(Array.from({ length: WINDOWS_AT_ONCE }, work));
    if (!state.missing.includes(kind.type.kind)) summary.add(kind.type.kind);
  }
  if (state.missing.length > 0 && state.missing.length === targets.length) throw notInstalled(state.missing);
  return summary.diff();
}

interface State {
  done: number;
  /** @default - unknown */
  total: number | undefined;
  /** Kinds that aren't installed. */
  readonly missing: string[];
}

/** Yields custom resources that are compared together: of one namespace, or all of those that share objects. */
async function* windowsOf(
  { kind, name }: KindTarget,
  { transport, namespace: wanted, selector }: LiveProps,
  state: State,
): AsyncGenerator<readonly AnyObject[]> {
  const api = new Api(transport);
  const { type } = kind;
  const namespace = type.namespaced ? wanted : undefined;
  const scope = { type, namespace, selector, name };
  const isTogether = !('each' in kind.rendering);
  for (let token: string | undefined, isFirst = true; isFirst || token !== undefined; isFirst = false) {
    const asked: Promise<Partial<ListPage>> = isTogether
      ? api.listAll(scope).then((items) => ({ items }))
      : pageOf(api, scope, token);
    const page = await asked.catch((error: unknown): Partial<ListPage> => {
      if (!(error instanceof ApiError) || !error.kindNotServed) throw error;
      state.missing.push(type.kind);
      return {};
    });
    const { items, continueToken, remaining = 0 } = page;
    if (!items) return;
    if (name !== undefined && items.length === 0)
      throw await noSuchResource({ kind, name }, namespace, lister(api));
    token = continueToken;
    const isKnown = state.total !== undefined && (token === undefined || remaining > 0);
    if (isFirst) state.total = isKnown ? (state.total ?? 0) + items.length + remaining : undefined;
    const groups = isTogether ? [items] : Map.groupBy(items, ({ metadata }) => metadata.namespace).values();
    const size = isTogether ? Infinity : WINDOW;
    for (const group of groups)
      for (let from = 0; from < group.length; from += size) yield group.slice(from, from + size);
  }
}

/** Returns a page of a list; where too much time has passed since the first page, the rest as it is now. */
async function pageOf(api: Api, scope: Scope, token: string | undefined): Promise<ListPage> {
  return api.list(scope, token).catch((error: unknown) => {
    const next = error instanceof ApiError && error.expired && error.status.metadata?.continue;
    if (!next) throw error;
    return api.list(scope, next);
  });
}

export const NOTHING: LivePreview = { watched: 0, objects: [], explanations: [], paused: 0 };

type LivePreview = KindPreview & Pick<LiveDiff, 'paused'>;

async function previewLive(
  { kind, name }: KindTarget,
  crs: readonly AnyObject[],
  props: LiveProps,
): Promise<LivePreview> {
  const schema = storedVersion(kind.crd).schema.openAPIV3Schema;
  const { given, pauses } = afterPauses(
    crs.map((before) => ({ before, after: applyDefaults(before, schema) as AnyObject })),
    () => kind,
  );
  // No label has a longer value, so that nothing can belong to them.
  const names = crs.map(({ metadata }) => metadata.name).filter((each) => each.length <= 63);
  const [label = ''] = Object.keys(selectorLabels(kind.type, ''));
  const isOwned = 'each' in kind.rendering;
  const found = await previewKind(kind, given, props, {
    ...(isOwned && { ownedSelector: `${label} in (${names.join()})` }),
  });
  const explanations = name === undefined ? [] : [...pauses, ...found.explanations];
  return { ...found, explanations, paused: pauses.length };
}

const EXAMPLES = 3;

/** The most severe first. */
const ORDER: readonly PreviewAction[] = [
  ...(['failed', 'skipped', 'recreated', 'deleted', 'created', 'changed', 'unchanged'] as const),
];

type ObjectChange = Omit<ChangeGroup, 'count' | 'of' | 'examples'>;

/** Counts changes that are the same, and forgets the objects. */
export class Summary {
  private readonly resources: Record<string, number> = {};
  private readonly rollouts: Record<string, number> = {};
  private readonly counts: Partial<Record<PreviewAction, number>> = {};
  /** Numbers of objects that were compared, by type. */
  private readonly types = new Map<string, number>();
  private readonly groups = new Map<string, ChangeGroup>();
  private readonly explanations: Explanation[] = [];
  private kept: ObjectPreview[] = [];
  private paused = 0;
  private others = 0;

  /** @param details number of objects that are kept in full */
  constructor(private readonly details: number) {}

  /** @param found what was found out of some of a kind. @default - nothing yet */
  add(kind: string, { watched, objects, explanations, paused }: LivePreview = NOTHING): void {
    this.resources[kind] = (this.resources[kind] ?? 0) + watched;
    this.explanations.push(...explanations);
    this.paused += paused;
    this.addObjects(objects);
  }

  addObjects(objects: readonly ObjectPreview[]): void {
    for (const object of objects) {
      const { ref, action } = object;
      this.counts[action] = (this.counts[action] ?? 0) + 1;
      this.types.set(groupKind(ref), (this.types.get(groupKind(ref)) ?? 0) + 1);
      if (!isDifference(object)) continue;
      const changes = changesOf(object);
      for (const change of changes) this.count(change, keyOfPreview(object));
      if (changes.some(({ rollout }) => rollout))
        this.rollouts[ref.kind] = (this.rollouts[ref.kind] ?? 0) + 1;
      this.kept.push(object);
      if (this.kept.length >= 2 * this.details + 10) this.kept = this.firstKept();
    }
  }

  diff(): LiveDiff {
    const rank = ({ action }: ObjectChange): number => ORDER.indexOf(action);
    const changes = [...this.groups.values()].sort((a, b) => rank(a) - rank(b) || b.count - a.count);
    return {
      ...{ compared: this.resources, counts: this.counts, rollouts: this.rollouts },
      ...{ paused: this.paused, others: this.others },
      changes: changes.map((change) => ({ ...change, of: this.types.get(groupKind(change)) ?? 0 })),
      kept: { objects: this.firstKept(), explanations: this.explanations },
    };
  }

  private firstKept(): ObjectPreview[] {
    return first(this.kept, this.details, keyOfPreview);
  }

  private count(change: ObjectChange, key: string): void {
    const { before, after, message, ...same } = change;
    const id = JSON.stringify(same);
    if (!this.groups.has(id) && this.groups.size >= MAX_CHANGES) {
      this.others++;
      return;
    }
    const known = this.groups.get(id) ?? { ...change, count: 0, of: 0, examples: [] };
    const { before: _, after: __, ...withoutValues } = known;
    const isSame = isDeepStrictEqual([known.before, known.after], [before, after]);
    this.groups.set(id, {
      ...(isSame ? known : withoutValues),
      count: known.count + 1,
      examples: first([...known.examples, key], EXAMPLES, (each) => each),
    });
  }
}

function keyOfPreview({ ref }: ObjectPreview): string {
  return objectKey(ref.namespace, ref.name);
}

/** Returns the first of some by their keys, so that the answer doesn't depend on which was compared first. */
function first<T>(all: readonly T[], count: number, keyOf: (one: T) => string): T[] {
  if (all.length <= count) return [...all];
  return all.toSorted((a, b) => compare(keyOf(a), keyOf(b))).slice(0, count);
}

/** Returns the changes of an object as others may have them too; of several items of a list, the same change once. */
function changesOf(object: ObjectPreview): ObjectChange[] {
  const { ref, action, error, takes, leaves, drops = [] } = object;
  const { before, after } = redactedPair(object);
  const type = { apiVersion: ref.apiVersion, kind: ref.kind, action };
  const isGone = action === 'deleted' || (action === 'recreated' && !object.keepsPods);
  const whole = { ...type, ...(isGone && rollsPods(ref) && { rollout: true }) };
  const isWhole = action === 'changed' ? !after : action !== 'unchanged';
  const ofField = (path: string, field: string): ObjectChange => ({
    ...type,
    path: ofAnyItem(path),
    field,
  });
  const changes: ObjectChange[] = [
    ...(action === 'changed' ? fieldChanges(before, after) : []).map(({ path, ...values }) => ({
      ...ofField(path, !('before' in values) ? 'added' : 'after' in values ? 'changed' : 'removed'),
      ...values,
      ...(rollsPods(ref, path) && { rollout: true }),
    })),
    ...takes.map(({ field, manager }) => ofField(field, `taken from ${manager || 'another manager'}`)),
    ...leaves.map(({ field, manager }) => ofField(field, `left to ${manager || 'another manager'}`)),
    ...drops.map(({ field, manager }) => ofField(field, `dropped, which is set by ${manager}`)),
    ...(isWhole ? [{ ...whole, ...(error && { reason: error.reason, message: error.message }) }] : []),
  ];
  return [...new Map(changes.map((change) => [`${change.path} ${change.field}`, change])).values()];
}
