import { isDeepStrictEqual } from 'node:util';
import type { Explanation } from '../../contract/controller.js';
import { storedVersion } from '../../contract/crd.js';
import type { Kind } from '../../contract/kind.js';
import { selectorLabels } from '../../contract/names.js';
import { objectKey } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import { ApiError } from '../../client/api-error.js';
import { Api } from '../../client/api.js';
import type { ListPage } from '../../client/api.js';
import type { GivenResource, ObjectPreview, Preview, PreviewAction } from '../../engine/preview/preview.js';
import { applyDefaults } from '../../validate/defaults.js';
import { notInstalled } from '../cluster.js';
import { noSuchResource } from '../targets.js';
import type { KindTarget } from '../targets.js';
import { lister, scopeOf } from '../tree/model.js';
import { afterPause, isDifference, pausesIn, previewKind } from './compare.js';
import type { CompareProps, Outcome } from './compare.js';
import { fieldChanges, redactedPair } from './fields.js';

export interface LiveProps extends Pick<CompareProps, 'transport' | 'contextFor' | 'warn'> {
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

/** Change that objects of a type have in common. */
export interface SameChange {
  readonly apiVersion: string;
  readonly kind: string;
  readonly action: PreviewAction;
  /** Field such as `.spec.ports[].name`. @default - it is about whole objects */
  readonly path?: string;
  /** Change such as `added`, or `taken from kubectl`. @default - it is about whole objects */
  readonly field?: string;
  /** @default - there is none, or it isn't the same in all of them */
  readonly before?: unknown;
  /** @default - there is none, or it isn't the same in all of them */
  readonly after?: unknown;
  /** Pods are replaced. @default false */
  readonly rollout?: boolean;
  /** Reason why it can't be applied. */
  readonly reason?: string;
  /** Message of the first error that was found. */
  readonly message?: string;
  readonly count: number;
  /** Objects of the type that were compared. */
  readonly of: number;
  /** The first of them by name. */
  readonly examples: readonly string[];
}

export interface LiveOutcome {
  /** Custom resources that were compared, by kind. */
  readonly compared: Readonly<Record<string, number>>;
  /** Number of them that are paused: what would change of theirs waits for the end of the pause. */
  readonly paused: number;
  /** Objects of theirs, by what would become of them. */
  readonly counts: Readonly<Partial<Record<PreviewAction, number>>>;
  /** The most severe first. */
  readonly changes: readonly SameChange[];
  /** Further changes, where too many differ. */
  readonly others: number;
  /** Objects in full: all of what was named, else the first that differ. */
  readonly kept: Outcome;
  /** An object for each reason of an error. */
  readonly errors: readonly ObjectPreview[];
}

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
export async function compareLive(props: LiveProps): Promise<LiveOutcome> {
  const { targets, transport } = props;
  const api = new Api(transport);
  const summary = new Summary(props.details);
  const state: State = { done: 0, total: 0, missing: [], unwatched: new Set() };
  for (const target of targets) {
    const { kind } = target;
    const windows = windowsOf(api, target, props, state);
    const work = async (): Promise<void> => {
      for await (const crs of windows) {
        const watched = await watchedOf(kind, crs, props, state.unwatched);
        if (watched.length > 0) summary.add(await previewLive(target, watched, props));
        summary.compared(kind, watched.length);
        state.done += crs.length;
        props.progress?.(state.done, state.total);
      }
    };
    await Promise.all(Array.from({ length: WINDOWS_AT_ONCE }, work));
    if (!state.missing.includes(kind.type.kind)) summary.compared(kind, 0);
  }
  if (state.missing.length > 0 && state.missing.length === targets.length) throw notInstalled(state.missing);
  return summary.outcome();
}

interface State {
  done: number;
  /** @default - unknown */
  total: number | undefined;
  /** Kinds that aren't installed. */
  readonly missing: string[];
  /** Namespaces that the operator doesn't watch. */
  readonly unwatched: Set<string>;
}

/** Custom resources that are compared together: of one namespace, or all of those that share objects. */
async function* windowsOf(
  api: Api,
  { kind, name }: KindTarget,
  { namespace: asked, selector }: LiveProps,
  state: State,
): AsyncGenerator<readonly AnyObject[]> {
  const { type } = kind;
  const namespace = type.namespaced ? asked : undefined;
  const scope = scopeOf({ type, namespace, selector, name });
  const isTogether = !('each' in kind.rendering);
  for (let token: string | undefined, isFirst = true; isFirst || token !== undefined; isFirst = false) {
    const asking = isTogether
      ? api.listAll(scope).then((items) => ({ items }))
      : api.list(scope, token).catch((error: unknown) => {
          // Too much time has passed since the first page; the rest can be had as it is now.
          const next = error instanceof ApiError && error.expired && error.status.metadata?.continue;
          if (!next) throw error;
          return api.list(scope, next);
        });
    const {
      items,
      continueToken,
      remaining = 0,
    }: Partial<ListPage> = await asking.catch((error: unknown) => {
      if (!(error instanceof ApiError) || !error.kindNotServed) throw error;
      state.missing.push(type.kind);
      return {};
    });
    if (!items) return;
    if (name !== undefined && items.length === 0)
      throw await noSuchResource({ kind, name }, namespace, lister(api));
    token = continueToken;
    const all = token !== undefined && remaining === 0 ? undefined : items.length + remaining;
    if (isFirst) state.total = all === undefined || state.total === undefined ? undefined : all + state.total;
    for (let from = 0, to = 0; from < items.length; from = to) {
      const inside = items[from]?.metadata.namespace;
      const fits = (): boolean => to < from + WINDOW && items[to]?.metadata.namespace === inside;
      while (to < items.length && (isTogether || fits())) to++;
      yield items.slice(from, to);
    }
  }
}

/** Returns those that the operator watches; the namespaces of the others are warned of once. */
async function watchedOf(
  kind: Kind,
  crs: readonly AnyObject[],
  { contextFor, warn }: LiveProps,
  unwatched: Set<string>,
): Promise<readonly AnyObject[]> {
  const all = [...new Set(crs.flatMap(({ metadata }) => metadata.namespace ?? []))];
  const { namespaces } = await contextFor(kind, all);
  if (!namespaces) return crs;
  for (const namespace of all) {
    if (namespaces.includes(namespace) || unwatched.has(namespace)) continue;
    unwatched.add(namespace);
    warn(`no operator watches ${namespace}, only ${namespaces.join(', ')}: what is there is left out`);
  }
  return crs.filter(
    ({ metadata: { namespace } }) => namespace === undefined || namespaces.includes(namespace),
  );
}

type LivePreview = Preview & Pick<LiveOutcome, 'paused'>;

async function previewLive(
  { kind, name }: KindTarget,
  crs: readonly AnyObject[],
  props: LiveProps,
): Promise<LivePreview> {
  const schema = storedVersion(kind.crd).schema.openAPIV3Schema;
  const stored = crs.map((before): GivenResource => ({
    before,
    after: applyDefaults(before, schema) as AnyObject,
  }));
  const given = stored.map((each) => afterPause(kind, each));
  const paused = pausesIn(stored, given);
  // No label has a longer value, so that nothing can belong to them.
  const names = crs.map(({ metadata }) => metadata.name).filter((each) => each.length <= 63);
  const [label = ''] = Object.keys(selectorLabels(kind.type, ''));
  const isOwned = 'each' in kind.rendering;
  const found = await previewKind(kind, given, props, {
    ...(isOwned && { ownedSelector: `${label} in (${names.join()})` }),
  });
  const explanations = name === undefined ? [] : [...paused, ...found.explanations];
  return { ...found, explanations, paused: paused.length };
}

/** Maximum number of changes that are distinguished: some have names of objects in their paths. */
const MAX_CHANGES = 1_000;
const EXAMPLES = 3;

/** The most severe first. */
const ORDER: readonly PreviewAction[] = [
  'failed',
  'skipped',
  'recreated',
  'deleted',
  'created',
  'changed',
  'unchanged',
];

type Change = Omit<SameChange, 'count' | 'of' | 'examples'>;

/** Counts changes that are the same, and forgets the objects. */
class Summary {
  private readonly resources: Record<string, number> = {};
  private readonly counts: Partial<Record<PreviewAction, number>> = {};
  /** Objects that were compared, by type. */
  private readonly types = new Map<string, number>();
  private readonly changes = new Map<string, SameChange>();
  private readonly explanations: Explanation[] = [];
  private kept: ObjectPreview[] = [];
  private readonly errors = new Map<string, ObjectPreview>();
  private others = 0;
  private paused = 0;

  /** @param details number of objects that are kept in full */
  constructor(private readonly details: number) {}

  compared({ type }: Kind, count: number): void {
    this.resources[type.kind] = (this.resources[type.kind] ?? 0) + count;
  }

  add({ objects, explanations, paused }: LivePreview): void {
    this.explanations.push(...explanations);
    this.paused += paused;
    for (const object of objects) {
      const { ref, action, error } = object;
      this.counts[action] = (this.counts[action] ?? 0) + 1;
      this.types.set(groupKind(ref), (this.types.get(groupKind(ref)) ?? 0) + 1);
      if (!isDifference(object)) continue;
      for (const change of changesOf(object)) this.count(change, keyOf(object));
      this.kept.push(object);
      if (this.kept.length >= 2 * this.details + 10) this.kept = first(this.kept, this.details, keyOf);
      if (error) this.errors.set(error.reason, object);
    }
  }

  outcome(): LiveOutcome {
    const rank = ({ action }: Change): number => ORDER.indexOf(action);
    const changes = [...this.changes.values()].sort((a, b) => rank(a) - rank(b) || b.count - a.count);
    return {
      ...{ compared: this.resources, counts: this.counts, others: this.others, paused: this.paused },
      changes: changes.map((change) => ({ ...change, of: this.types.get(groupKind(change)) ?? 0 })),
      kept: { objects: first(this.kept, this.details, keyOf), explanations: this.explanations },
      errors: [...this.errors.values()],
    };
  }

  private count(change: Change, key: string): void {
    const { before, after, message, ...same } = change;
    const id = JSON.stringify(same);
    const known = this.changes.get(id);
    if (!known && this.changes.size >= MAX_CHANGES) this.others++;
    else {
      const isSame = !known || isDeepStrictEqual([known.before, known.after], [before, after]);
      const examples = first([...(known?.examples ?? []), key], EXAMPLES, (each) => each);
      const whole = known ?? change;
      this.changes.set(id, {
        ...(isSame ? whole : { ...same, ...(whole.message !== undefined && { message: whole.message }) }),
        ...{ count: (known?.count ?? 0) + 1, of: 0, examples },
      });
    }
  }
}

function keyOf({ ref: { namespace, name } }: ObjectPreview): string {
  return objectKey(namespace, name);
}

/** Returns the first of some by their keys, so that the answer doesn't depend on which was compared first. */
function first<T>(all: readonly T[], count: number, keyOf: (one: T) => string): T[] {
  return all.length <= count
    ? [...all]
    : all.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)).slice(0, count);
}

/** An item of a list in a path: `[0]` or `[name="web"]`, and not a name in a map, `["app"]`. */
const ITEM = /\[(?:\d+|\w+=(?:\d+|"(?:[^"\\]|\\.)*"))\]/g;

/** Kinds whose pods are replaced when their template changes. */
const ROLLED: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'DaemonSet']);

/** Returns what happens to an object, each as others may have it too; what happens to several items of a list, once. */
function changesOf(object: ObjectPreview): Change[] {
  const { ref, action, error, takes, leaves, drops = [] } = object;
  const { before, after } = redactedPair(object);
  const type = { apiVersion: ref.apiVersion, kind: ref.kind, action };
  const ofField = (path: string, field: string): Change => ({
    ...type,
    path: path.replace(ITEM, '[]'),
    field,
  });
  const fields = action === 'changed' ? fieldChanges(before, after) : [];
  const changes = [
    ...fields.map(({ path, ...values }) => ({
      ...ofField(path, !('before' in values) ? 'added' : 'after' in values ? 'changed' : 'removed'),
      ...values,
      ...(ROLLED.has(ref.kind) && path.startsWith('.spec.template.') && { rollout: true }),
    })),
    ...takes.map(({ field, manager }) => ofField(field, `taken from ${manager || 'another manager'}`)),
    ...leaves.map(({ field, manager }) => ofField(field, `left to ${manager || 'another manager'}`)),
    ...drops.map(({ field, manager }) => ofField(field, `dropped, which is set by ${manager}`)),
    ...(action === 'changed' || action === 'unchanged'
      ? []
      : [{ ...type, ...(error && { reason: error.reason, message: error.message }) }]),
  ];
  return [
    ...new Map(changes.map((change) => [`${change.path ?? ''} ${change.field ?? ''}`, change])).values(),
  ];
}
