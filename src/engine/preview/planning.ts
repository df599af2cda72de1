import type {
  Controller,
  Plan,
  Reader,
  TypeRef,
  Watch,
  Deletion,
  Explanation,
} from '../../contract/controller.js';
import { OperatorError } from '../../contract/error.js';
import { objectId, objectKey, splitKey } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { Metrics } from '../../telemetry/metrics.js';
import { Api } from '../api.js';
import type { Scope } from '../api.js';
import { ApiError } from '../api-error.js';
import { Applier, Vanished } from '../apply.js';
import { systemClock, ServerTime } from '../clock.js';
import { Fights } from '../fights.js';
import { listPages } from '../watch.js';
import { doubtOf } from '../installed.js';
import { NodePorts } from '../node-ports.js';
import { Refusals } from '../refusals.js';
import { scopesOf } from '../scopes.js';
import { Settlements } from '../settlements.js';
import type { Entry } from '../cache.js';
import { StoreReader, Stores } from '../cache.js';
import type { Transport } from '../transport.js';

export interface PlanningProps {
  readonly controller: Controller;
  readonly transport: Transport;
  /** Custom resources as they would be, in place of those that are there. @default - none */
  readonly given?: readonly AnyObject[];
  /** The namespaces that the operator watches. @default - all */
  readonly namespaces?: readonly string[];
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
  readonly applier: Applier;
  private readonly controller: Controller;
  private readonly time = new ServerTime(systemClock);

  constructor({ controller, transport, given = [], namespaces }: PlanningProps) {
    this.controller = controller;
    const { time } = this;
    this.api = new Api(transport, time);
    const { api } = this;
    const stores = new Stores({ perNamespace: false, freeze: false });
    this.reader = StoreReader.open(controller.watches, stores, { controller: controller.name, time });
    this.contents = new Contents({
      ...{ api, watches: controller.watches, reader: this.reader, given },
      ...(namespaces && { namespaces }),
    });
    this.applier = new Applier({
      ...{ api, settlements: new Settlements(), refusals: new Refusals(systemClock) },
      ...{ fights: new Fights(systemClock), vanished: new Vanished(systemClock) },
      ...{ nodePorts: new NodePorts(systemClock), metrics: new Metrics() },
    });
  }

  /** Those that custom resources map to. */
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
      const reader = new DemandingReader(this.reader, this.contents.has);
      let made: Planned | undefined;
      let thrown: unknown;
      try {
        const plan = this.controller.reconcile(key, reader, this.time.corrected(now.getTime()));
        made = { plan, explained: plan.explain?.() ?? [] };
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

  /** What is to be applied is looked at first, unless nobody here watches it. */
  async look(objects: readonly AnyObject[]): Promise<void> {
    for (const object of objects)
      if (this.reader.watches(object)) await this.contents.load({ type: object, key: keyOf(object) });
  }
}

export function keyOf({ metadata }: AnyObject): string {
  return objectKey(metadata.namespace, metadata.name);
}

const NEVER = new AbortController().signal;

interface ContentsProps {
  readonly api: Api;
  readonly watches: readonly Watch[];
  readonly reader: StoreReader;
  /** Only these are looked at. @default - all */
  readonly namespaces?: readonly string[];
  /** Custom resources as they would be, in place of those that are there. */
  readonly given: readonly AnyObject[];
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
  private readonly given: ReadonlyMap<string, AnyObject>;
  private readonly namespaceOf: ReadonlyMap<string, string | undefined>;

  constructor(private readonly props: ContentsProps) {
    this.given = new Map(props.given.map((cr) => [objectId(cr), cr]));
    this.namespaceOf = new Map(props.given.map(({ metadata }) => [metadata.uid ?? '', metadata.namespace]));
  }

  readonly has = (demand: Demand): boolean => {
    const watches = this.watchesFor(demand);
    if (isOne(demand, watches) && this.loaded.has(idOfObject(demand.type, demand.key))) return true;
    return watches.every((watch) => this.scopes(demand, watch).every((scope) => this.isLoaded(scope)));
  };

  /** What is asked for from now on is read anew. */
  forget(): void {
    this.loaded.clear();
  }

  async load(demand: Demand): Promise<void> {
    if (this.has(demand)) return;
    const watches = this.watchesFor(demand);
    const [first] = watches;
    if (first && isOne(demand, watches)) {
      await this.whereServed(first, () => this.loadOne(first.type, demand.key));
      return;
    }
    for (const watch of watches)
      await this.whereServed(watch, async () => {
        for (const scope of this.scopes(demand, watch)) await this.loadAll(scope, watch);
      });
  }

  /** What no watch covers is refused by the reader. */
  private watchesFor({ type }: Demand): Watch[] {
    return this.props.watches.filter((watch) => groupKind(watch.type) === groupKind(type));
  }

  /** What is to be listed: where the namespace is known, that alone; nothing, where it isn't watched. */
  private scopes(demand: Demand, watch: Watch): Scope[] {
    const all = scopesOf(watch, this.props.namespaces ?? []);
    const namespace = this.namespaceIn(demand);
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
    const object = given ?? (await this.find(type, key));
    if (object) this.props.reader.store(object).observed(object);
    else this.missing(type, key);
    this.loaded.add(idOfObject(type, key));
  }

  private missing({ apiVersion, kind }: ResourceType, key: string): void {
    const metadata = splitKey(key);
    this.props.reader.store({ apiVersion, kind, metadata }).gone(key);
  }

  private async find(type: ResourceType, key: string): Promise<AnyObject | undefined> {
    try {
      return await this.props.api.get(type, key);
    } catch (error) {
      if (error instanceof ApiError && error.objectIsGone) return undefined;
      throw error;
    }
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

  /** Whoever may not read a kind is refused before it is looked for, so that has to be asked apart. */
  private async isMissing(type: ResourceType, error: ApiError): Promise<boolean> {
    if (error.code !== 403) return error.kindNotServed;
    try {
      return !(await this.props.api.serves(type));
    } catch (unknown) {
      if (unknown instanceof ApiError) return false;
      throw unknown;
    }
  }

  private async whereServed(watch: Watch, load: () => Promise<void>): Promise<void> {
    try {
      await load();
    } catch (error) {
      if (!watch.optional || !(error instanceof ApiError) || !(await this.isMissing(watch.type, error)))
        throw error;
      const { api, reader } = this.props;
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

/** By its name one can't tell whether a selector matches it. */
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

/** Of all namespaces, where none is named. */
function idOfScope({ type, namespace = '', name = '' }: Scope): string {
  return `all ${groupKind(type)} ${namespace} ${name}`;
}

function objectIdOf({ apiVersion, kind }: TypeRef, key: string): string {
  return objectId({ apiVersion, kind, ...splitKey(key) });
}

/** What a plan asks for: one object, the objects of an owner, or all of a type. */
type Demand =
  | { readonly type: TypeRef; readonly key: string }
  | { readonly type: TypeRef; readonly owner: string }
  | { readonly type: TypeRef };

/**
 * Shows what is known, and notes what is asked for and isn't known yet. What is answered then is a guess: whoever asks
 * has to be asked again once it is known.
 */
class DemandingReader implements Reader {
  readonly missing: Demand[] = [];

  constructor(
    private readonly known: Reader,
    private readonly isKnown: (demand: Demand) => boolean,
  ) {}

  get clockSkewMilliseconds(): number | undefined {
    return this.known.clockSkewMilliseconds;
  }

  get(type: TypeRef, key: string): AnyObject | undefined {
    this.note({ type, key });
    return this.known.get(type, key);
  }

  controlledBy(type: TypeRef, ownerUid: string): readonly AnyObject[] {
    this.note({ type, owner: ownerUid });
    return this.known.controlledBy(type, ownerUid);
  }

  mappedTo(type: TypeRef, key: string): readonly AnyObject[] {
    this.note({ type });
    return this.known.mappedTo(type, key);
  }

  deletions(type: TypeRef, key: string): readonly Deletion[] {
    return this.known.deletions(type, key);
  }

  private note(demand: Demand): void {
    if (!this.isKnown(demand)) this.missing.push(demand);
  }
}
