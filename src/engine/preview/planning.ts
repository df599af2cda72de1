import type { Controller, Plan } from '../../contract/controller.js';
import type { Explanation } from '../../contract/explanation.js';
import { objectKey } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import { Metrics } from '../../telemetry/metrics.js';
import { Api } from '../api.js';
import { Applier } from '../apply.js';
import { systemClock } from '../clock.js';
import { Fights } from '../fights.js';
import { NodePorts } from '../node-ports.js';
import { Refusals } from '../refusals.js';
import { ServerTime, timed } from '../server-time.js';
import { Settlements } from '../settlements.js';
import { StoreReader, Stores } from '../stores.js';
import type { Transport } from '../transport.js';
import { Vanished } from '../vanished.js';
import { Contents } from './contents.js';
import { DemandingReader } from './demands.js';

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
    this.api = new Api(timed(transport, time, systemClock));
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
