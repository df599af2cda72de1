import type { Controller, Found, Lookup, Query, Reader, TypeRef, Watch } from '../../contract/controller.js';
import { OperatorError } from '../../contract/error.js';
import { byName, keyOf, objectId, splitKey } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import type { DriftMode, Explanation, Plan } from '../../contract/plan.js';
import { groupKind } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { Api } from '../../client/api.js';
import type { Scope } from '../../client/api.js';
import { silentLogger } from '../../telemetry/logger.js';
import { Metrics } from '../../telemetry/metrics.js';
import { ServerTime, systemClock } from '../../client/clock.js';
import type { Transport } from '../../client/transport.js';
import { scopesOf, StoreReader, Stores } from '../watch/reader.js';
import type { Entry } from '../watch/cache.js';
import { doubtOf } from '../watch/installed.js';
import { scopeOf } from '../watch/lookups.js';
import { listPages } from '../watch/watch.js';
import { Memory } from '../steps/memory.js';
import type { Hand } from './hand.js';

export interface PlanningProps {
  readonly controller: Controller;
  readonly transport: Transport;
  /** Custom resources as they would be, in place of those that are there. @default - none */
  readonly given?: readonly AnyObject[];
  /** The namespaces that the operator watches. @default - all */
  readonly namespaces?: readonly string[];
  /**
   * Selects all that the given custom resources own, by label: nothing else is listed of it. What lacks the label is still
   * found by its name, where the plan applies it.
   * @default - whole lists
   */
  readonly ownedSelector?: string;
}

/** A plan, and what it means in words. */
export interface Planned {
  readonly plan: Plan;
  readonly explained: readonly Explanation[];
}

/**
 * The plans of one controller without its watches: what they are made of is read as they ask for it.
 *
 * **Guarantees.** What a plan is shown is complete.
 *
 * **Assumptions.** A plan asks for the same again when it is shown more.
 */
export class Planning {
  readonly api: Api;
  readonly reader: StoreReader;
  readonly contents: Contents;
  private readonly controller: Controller;
  private readonly time = new ServerTime(systemClock);

  constructor({ controller, transport, given = [], namespaces, ownedSelector }: PlanningProps) {
    this.controller = controller;
    this.api = new Api(transport, this.time);
    const stores = new Stores({ perNamespace: false, freeze: false });
    this.reader = StoreReader.open(controller.watches, stores, controller.name);
    this.contents = new Contents({
      ...{ api: this.api, watches: controller.watches, reader: this.reader, given },
      ...(namespaces && { namespaces }),
      ...(ownedSelector !== undefined && { ownedSelector }),
    });
  }

  /** Returns a hand of its own memory, which sends no events; what it counts is never scraped. */
  hand(isDry: boolean, drift: DriftMode = 'correct'): Hand {
    const { api, reader, controller } = this;
    return {
      ...{
        api,
        reader,
        writer: { controller },
        memory: new Memory(systemClock),
        clock: systemClock,
        drift,
        isDry,
      },
      ...{ events: { send: () => undefined }, metrics: new Metrics(), log: silentLogger },
      ...{ signal: NEVER, stopping: NEVER },
    };
  }

  /** Keys that custom resources map to. */
  keysOf(resources: readonly AnyObject[]): readonly string[] {
    const { watches } = this.controller;
    const keys = resources.flatMap((object) => {
      const watch = watches.find(({ type }) => groupKind(type) === groupKind(object));
      const kept = watch && this.reader.storeOf(watch).project(object)?.object;
      return watch && kept ? watch.mapsTo(kept) : [];
    });
    return [...new Set(keys)];
  }

  /** The plan, once all that it is made of is known. */
  async plan(key: string, now: Date): Promise<Planned> {
    for (;;) {
      const reader = new DemandingReader(this.reader, this.contents);
      let made: Planned | undefined;
      let thrown: unknown;
      try {
        const plan = this.controller.reconcile(key, reader, this.time.corrected(now.getTime()));
        // Asking for it shows what it reads, too.
        const explained = this.controller.explains ? plan.conclude([]).explanations : undefined;
        made = { plan, explained: explained ?? [] };
      } catch (error) {
        thrown = error;
      }
      if (reader.missing.length === 0) {
        if (made) return made;
        throw thrown;
      }
      for (const demand of reader.missing) await this.contents.load(demand);
    }
  }

  /** Reads what is to be applied, unless no watch covers it. */
  async look(steps: Plan['steps']): Promise<void> {
    for (const step of steps) {
      if (step.do === 'barrier' || step.do === 'prune' || !this.reader.isWatched(step.object)) continue;
      await this.contents.load({ type: step.object, key: keyOf(step.object) });
    }
  }
}

/** Maximum number of rounds: a plan may ask to be made again after what it did, and some ask for ever. */
export const MAX_ROUNDS = 5;

const NEVER: AbortSignal = new AbortController().signal;

interface ContentsProps {
  readonly api: Api;
  readonly watches: readonly Watch[];
  readonly reader: StoreReader;
  /** Only these are looked at. @default - all */
  readonly namespaces?: readonly string[];
  /** Custom resources as they would be, in place of those that are there. */
  readonly given: readonly AnyObject[];
  /** See `PlanningProps.ownedSelector`. */
  readonly ownedSelector?: string;
}

/**
 * Fills the stores of one controller with what is asked for, as the API server has it now; the custom resources that
 * are given are laid over it.
 *
 * **Caveats.** What is asked for at different times is as it was then: nothing ties it together.
 *
 * **Errors.** ApiError, where the API server refuses; a kind that is optional and isn't installed has no objects.
 */
class Contents {
  private readonly loaded = new Set<string>();
  /** Objects that were looked up, by query. */
  private readonly found = new Map<string, readonly AnyObject[]>();
  private readonly given: ReadonlyMap<string, AnyObject>;
  private readonly namespaceOf: ReadonlyMap<string, string | undefined>;

  constructor(private readonly props: ContentsProps) {
    this.given = new Map(props.given.map((cr) => [objectId(cr), cr]));
    this.namespaceOf = new Map(props.given.map(({ metadata }) => [metadata.uid ?? '', metadata.namespace]));
  }

  readonly has = (demand: Demand): boolean => {
    if ('query' in demand) return this.found.has(idOfQuery(demand.lookup, demand.query));
    const watches = this.watchesFor(demand);
    if (isOne(demand, watches) && this.loaded.has(idOfObject(demand.type, demand.key))) return true;
    if (this.isOwned(demand) && this.loaded.has(idOfOwned(demand.type, this.namespaceIn(demand))))
      return true;
    return watches.every((watch) => this.scopes(demand, watch).every((scope) => this.isLoaded(scope)));
  };

  /** Forgets what was read. */
  forget(): void {
    this.loaded.clear();
    this.found.clear();
  }

  async load(demand: Demand): Promise<void> {
    if (this.has(demand)) return;
    if ('query' in demand) {
      await this.lookUp(demand);
      return;
    }
    const watches = this.watchesFor(demand);
    const [first] = watches;
    if (first && isOne(demand, watches)) {
      await this.whereServed(first, () => this.loadOne(first.type, demand.key));
      return;
    }
    for (const watch of watches)
      await this.whereServed(watch, async () => {
        for (const scope of this.scopes(demand, watch))
          await (this.isOwned(demand) ? this.loadOwned(scope, watch) : this.loadAll(scope, watch));
      });
    if (this.isOwned(demand)) this.loaded.add(idOfOwned(demand.type, this.namespaceIn(demand)));
  }

  /** Returns what a query finds; nothing before it is loaded. */
  readonly answer = (lookup: Lookup, query: Query): Found => {
    const objects = this.found.get(idOfQuery(lookup, query));
    return objects ? { objects: objects.map(lookup.keep) } : {};
  };

  private async lookUp({ lookup, query }: Extract<Demand, { readonly query: Query }>): Promise<void> {
    const scope = scopeOf(lookup, query);
    let objects: readonly AnyObject[] = [];
    try {
      objects = await this.props.api.listAll(scope);
    } catch (error) {
      if (!(await this.props.api.isForMissingKind(scope.type, error))) throw error;
    }
    this.found.set(idOfQuery(lookup, query), byName(objects));
  }

  /** Reports whether a demand is for objects of owners alone, which the selector selects. */
  private isOwned(demand: WatchedDemand): boolean {
    if (this.props.ownedSelector === undefined || 'key' in demand) return false;
    return 'owner' in demand || this.watchesFor(demand).every(({ writes }) => writes?.includes('delete'));
  }

  /** Returns none where no watch covers it, which the reader refuses. */
  private watchesFor({ type }: WatchedDemand): Watch[] {
    return this.props.watches.filter((watch) => groupKind(watch.type) === groupKind(type));
  }

  /** Returns what is to be listed: where the namespace is known, that alone; nothing, where it isn't watched. */
  private scopes(demand: Demand, watch: Watch): Scope[] {
    const all = scopesOf(watch, this.props.namespaces ?? []);
    const namespace = 'owner' in demand && watch.namespaces ? undefined : this.namespaceIn(demand);
    if (namespace === undefined || !watch.type.namespaced) return all;
    const within = all.find((scope) => scope.namespace === undefined || scope.namespace === namespace);
    return within ? [{ ...within, namespace }] : [];
  }

  private namespaceIn(demand: Demand): string | undefined {
    if ('owner' in demand) return this.namespaceOf.get(demand.owner);
    return 'key' in demand ? splitKey(demand.key).namespace : undefined;
  }

  private isLoaded(scope: Scope): boolean {
    return this.loaded.has(idOfScope(scope)) || this.loaded.has(idOfScope({ ...scope, namespace: '' }));
  }

  private async loadOne(type: ResourceType, key: string): Promise<void> {
    const given = this.given.get(objectIdOf(type, key));
    const object = given ?? (await this.props.api.find(type, key));
    if (object) this.props.reader.store(object).observed(object);
    else this.missing(type, key);
    this.loaded.add(idOfObject(type, key));
  }

  private missing({ apiVersion, kind }: ResourceType, key: string): void {
    const metadata = splitKey(key);
    this.props.reader.store({ apiVersion, kind, metadata }).gone(key);
  }

  private async loadAll(scope: Scope, watch: Watch): Promise<void> {
    if (this.isLoaded(scope)) return;
    const { type, namespace } = scope;
    const store = this.props.reader.storeOf(watch);
    const project = (object: AnyObject): Entry | undefined =>
      store.project(this.given.get(objectId(object)) ?? object);
    const { entries, resourceVersion } = await listPages(this.props.api, scope, project, NEVER);
    const listed = new Set(entries.map(({ object }) => objectId(object)));
    const added = [...this.given.values()].filter(
      (cr) => groupKind(cr) === groupKind(type) && isIn(scope, cr) && !listed.has(objectId(cr)),
    );
    const all = [...entries, ...added.map((cr) => store.project(cr))];
    store.replace(all, resourceVersion, namespace);
    this.loaded.add(idOfScope(scope));
  }

  /** Adds what the selector selects to what is known: another list of the type may have been read for something else. */
  private async loadOwned(scope: Scope, { selector }: Watch): Promise<void> {
    const { type, namespace } = scope;
    const all = [selector, this.props.ownedSelector].filter((each) => each !== undefined);
    for (const object of await this.props.api.listAll({ ...scope, selector: all.join() })) {
      this.props.reader.store(object).observed(object);
      this.loaded.add(idOfObject(type, keyOf(object)));
    }
    this.loaded.add(idOfOwned(type, namespace));
  }

  private async whereServed(watch: Watch, load: () => Promise<void>): Promise<void> {
    try {
      await load();
    } catch (error) {
      const { api, reader } = this.props;
      if (!watch.optional || !(await api.isForMissingKind(watch.type, error))) throw error;
      const doubt = await doubtOf(api, watch.type);
      const mayBeInstalled = doubt !== undefined && doubt.crd !== 'unreadable';
      if (mayBeInstalled && watch.readOnly)
        throw new OperatorError({ reason: 'KindNotServed', message: doubt.why, cause: error });
      reader.storeOf(watch).setUnserved(undefined, mayBeInstalled ? 'doubtful' : 'missing');
      const { type, name } = watch;
      this.loaded.add(idOfScope({ type, ...(name !== undefined && { name }) }));
    }
  }
}

/** Reports whether a demand is for one object by name, which doesn't show whether a selector matches it. */
function isOne(
  demand: Demand,
  watches: readonly Watch[],
): demand is Extract<Demand, { readonly key: string }> {
  return 'key' in demand && watches.every(({ selector }) => selector === undefined);
}

function isIn({ namespace, name }: Scope, { metadata }: AnyObject): boolean {
  return (
    (namespace === undefined || namespace === metadata.namespace) &&
    (name === undefined || name === metadata.name)
  );
}

function idOfObject(type: TypeRef, key: string): string {
  return `one ${objectIdOf(type, key)}`;
}

/** Returns the id of a scope: of all namespaces, where none is named. */
function idOfScope({ type, namespace = '', name = '' }: Scope): string {
  return `all ${groupKind(type)} ${namespace} ${name}`;
}

function idOfQuery(lookup: Lookup, query: Query): string {
  const scope = scopeOf(lookup, query);
  return `${idOfScope(scope)} ${scope.selector ?? ''}`;
}

function idOfOwned(type: TypeRef, namespace = ''): string {
  return `owned ${groupKind(type)} ${namespace}`;
}

function objectIdOf({ apiVersion, kind }: TypeRef, key: string): string {
  return objectId({ apiVersion, kind, ...splitKey(key) });
}

/** Request of a plan: what a query finds, or of what is watched one object, the objects of an owner, or all of a type. */
type Demand = WatchedDemand | { readonly lookup: Lookup; readonly query: Query };

type WatchedDemand =
  | { readonly type: TypeRef; readonly key: string }
  | { readonly type: TypeRef; readonly owner: string }
  | { readonly type: TypeRef };

/**
 * Shows what is known, and notes what is asked for and isn't known yet. What is answered then is a guess: the plan
 * has to be made again once it is known.
 */
class DemandingReader implements Reader {
  readonly missing: Demand[] = [];

  constructor(
    private readonly known: Reader,
    private readonly contents: Pick<Contents, 'has' | 'answer'>,
  ) {}

  find(lookup: Lookup, query: Query): Found {
    this.note({ lookup, query });
    return this.contents.answer(lookup, query);
  }

  get(type: TypeRef, key: string): AnyObject | undefined {
    this.note({ type, key });
    return this.known.get(type, key);
  }

  all(type: TypeRef): readonly AnyObject[] {
    this.note({ type });
    return this.known.all(type);
  }

  controlledBy(type: TypeRef, ownerUid: string, fieldManager?: string): readonly AnyObject[] {
    this.note({ type, owner: ownerUid });
    return this.known.controlledBy(type, ownerUid, fieldManager);
  }

  mappedTo(type: TypeRef, key: string): readonly AnyObject[] {
    this.note({ type });
    return this.known.mappedTo(type, key);
  }

  private note(demand: Demand): void {
    if (!this.contents.has(demand)) this.missing.push(demand);
  }
}
