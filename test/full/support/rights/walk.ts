import { expect } from 'vitest';
import type { Sandbox } from '../../../../sandbox/control-plane.js';
import type { Kind } from '../../../../src/contract/kind.js';
import type { AnyObject } from '../../../../src/contract/object.js';
import { definitionType } from '../../../../src/contract/resource.js';
import type { ResourceType } from '../../../../src/contract/resource.js';
import type { PolicyRule } from '../../../../src/install/rules.js';
import { drop, respond } from '../../../scenarios/support/faults.js';
import { lists, watches } from '../../../scenarios/support/proxied-request.js';
import { sceneryFor, Stage } from '../../../scenarios/support/stage.js';
import type { Scenery } from '../../../scenarios/support/stage.js';
import { events } from '../cluster.js';
import { eventually } from '../eventually.js';
import { installedRights } from '../installed-rights.js';
import { summary } from '../requests.js';
import { revoke } from '../rights.js';
import { describeRight, isUsedBy, rightsIn, rulesOf } from './used-rights.js';
import type { Right } from './used-rights.js';

/** A kind that does once everything that it ever does. */
export interface WalkedKind {
  readonly kind: Kind;
  /** What is there before the controller. Returns further arguments of it. @default - nothing, and none */
  readonly surroundings?: (walk: Walk) => Promise<readonly string[]>;
  readonly steps: (walk: Walk) => Promise<void>;
  /** Rights that admission asks for by itself, so that no request shows them. */
  readonly byAdmission: readonly string[];
}

export interface WalkProps {
  readonly sandbox: Sandbox;
  /** With Roles in its own namespace alone. @default false */
  readonly namespaced?: boolean;
  /** Which of the rights, by its place among them, isn't given. @default - all are */
  readonly lacking?: number;
}

/** An operator of one kind behind a proxy, with the rights that are installed for that kind alone. */
export class Walk extends Stage {
  private constructor(
    scenery: Scenery,
    private readonly walked: WalkedKind,
    private readonly namespaces: readonly string[] | undefined,
    private args: readonly string[] = [],
  ) {
    super(scenery);
  }

  /**
   * With a controller that has got its rights. Its first lists are in pages, as where the API server doesn't stream
   * them; what follows is streamed.
   */
  static async start(walked: WalkedKind, { sandbox, namespaced, lacking }: WalkProps): Promise<Walk> {
    const scenery = await sceneryFor({ purpose: walked.kind.name, sandbox });
    const walk = new Walk(scenery, walked, namespaced ? [scenery.namespace] : undefined);
    walk.args = (await walked.surroundings?.(walk)) ?? [];
    const rule = walk.proxy.on(lists(), respond({ status: 422 }));
    const { args, namespaces } = walk;
    await walk.run({
      ...{ kinds: [walked.kind], args, electionNamespace: walk.user, ...(namespaces && { namespaces }) },
      ...(lacking !== undefined && { awaitStart: false, rights: () => walk.rulesWithout(lacking) }),
    });
    if (lacking === undefined) rule.remove();
    return walk;
  }

  /** All that are installed. */
  get rights(): readonly Right[] {
    return rightsIn(this.rules);
  }

  /** Does something while no watch of these types tells of anything. */
  async unseen(types: readonly ResourceType[], act: () => Promise<void>): Promise<void> {
    const rules = types.map(({ plural }) => this.proxy.on(watches(plural), drop));
    for (const { plural } of types) this.proxy.cut(watches(plural));
    await act();
    for (const rule of rules) rule.remove();
    for (const { plural } of types) this.proxy.cut(watches(plural));
  }

  /** Waits until somebody has been told the same twice. */
  async toldTwice(name: string, reason: string): Promise<void> {
    await eventually(async () => {
      const all = await this.cluster.list<Told>(events, this.namespace);
      const found = all.filter((event) => event.regarding.name === name && event.reason === reason);
      expect(found).toContainEqual(expect.objectContaining({ series: expect.anything() as unknown }));
    });
  }

  /** What the controller was refused so far. */
  async refused(): Promise<string[]> {
    const asked = await this.cluster.sandbox.audit(this.user);
    return asked.filter(({ code }) => code === 403).map(summary);
  }

  /**
   * Waits until every right has been used. Nothing was refused meanwhile, and nothing but what is installed gives any of
   * them.
   */
  async usedAll(): Promise<void> {
    const { cluster, user, rules, namespaces } = this;
    await this.asksForDefinitions();
    await eventually(async () => {
      const asked = await cluster.sandbox.audit(user);
      expect(await this.refused()).toEqual([]);
      const unused = this.rights.filter((right) => !asked.some((entry) => isUsedBy(right, entry)));
      expect(unused.map(describeRight)).toEqual(this.walked.byAdmission);
    });
    this.logsNoError();
    const code = await this.controller.stop();
    expect(code, JSON.stringify([this.controller.log.slice(-9), this.controller.strayOutput])).toBe(0);
    await revoke(cluster, { user, rules, ...(namespaces && { namespaces }) });
  }

  /** Answers watches of what has a CRD as if it weren't served, until the CRD is asked for. */
  private async asksForDefinitions(): Promise<void> {
    const message = 'the server could not find the requested resource';
    for (const right of this.rights.filter(({ resource }) => resource === definitionType.plural)) {
      const matches = watches(right.name!.split('.')[0]);
      const rule = this.proxy.on(matches, respond({ status: 404, message }));
      this.proxy.cut(matches);
      await eventually(async () => {
        const asked = await this.cluster.sandbox.audit(this.user);
        expect(asked.some((entry) => isUsedBy(right, entry))).toBe(true);
      });
      rule.remove();
    }
  }

  private get rules(): PolicyRule[] {
    const { walked, args, user, namespaces } = this;
    const places = { namespace: user, ...(namespaces && { watchNamespaces: namespaces }) };
    return installedRights({ kinds: [walked.kind], args, ...places });
  }

  private rulesWithout(lacking: number): PolicyRule[] {
    return rulesOf(this.rights.filter((_, index) => index !== lacking));
  }
}

interface Told extends AnyObject {
  readonly reason: string;
  readonly regarding: { readonly name: string };
}
