import { expect } from 'vitest';
import type { AuditEntry } from '../../sandbox/audit.js';
import type { SandboxClient } from '../../sandbox/client.js';
import type { Kind } from '../../src/contract/kind.js';
import type { AnyObject } from '../../src/contract/object.js';
import { definitionType } from '../../src/contract/resource.js';
import type { ResourceType } from '../../src/contract/resource.js';
import type { PolicyRule } from '../../src/install/rules.js';
import { events, eventually, revoke } from './cluster.js';
import { drop, lists, losing, respond, watches } from './faults.js';
import { installedRights } from './operator.js';
import { summary } from './requests.js';
import { sceneryFor, Stage } from './stages.js';
import type { Scenery } from './stages.js';

/** A kind that does once everything that it ever does. */
export interface WalkedKind {
  readonly kind: Kind;
  /** Makes what is there before the controller. Returns further arguments of it. */
  readonly surroundings: (walk: Walk) => Promise<readonly string[]>;
  readonly steps: (walk: Walk) => Promise<void>;
  /** Rights that admission asks for by itself, so that no request shows them. */
  readonly byAdmission: readonly string[];
}

/** One verb on one resource: the least that a rule can grant. */
interface Right {
  readonly verb: string;
  readonly group: string;
  /** With its subresource, as in `appservices/status`. */
  readonly resource: string;
  /** @default - all that there are rules for */
  readonly namespace: string | undefined;
  /** @default - every name */
  readonly name: string | undefined;
}

/** An operator of one kind behind a proxy, with the rights that are installed for that kind alone. */
export class Walk extends Stage {
  private constructor(
    scenery: Scenery,
    private readonly walked: WalkedKind,
    private readonly namespaces: { readonly namespaces?: readonly string[] },
    private args: readonly string[] = [],
  ) {
    super(scenery);
  }

  /**
   * Starts a controller. Its first lists are in pages, as where the API server doesn't stream them; what follows is
   * streamed.
   * @param namespaced with Roles in its own namespace alone
   */
  static async start(walked: WalkedKind, sandbox: SandboxClient, namespaced: boolean): Promise<Walk> {
    const scenery = await sceneryFor({ purpose: walked.kind.name, sandbox });
    const walk = new Walk(scenery, walked, namespaced ? { namespaces: [scenery.namespace] } : {});
    walk.args = await walked.surroundings(walk);
    const rule = walk.proxy.on(lists(), respond(422));
    const { args, namespaces, user } = walk;
    await walk.run({ kinds: [walked.kind], args, electionNamespace: user, ...namespaces });
    rule.remove();
    return walk;
  }

  /** Returns all rights that are installed. */
  get rights(): readonly Right[] {
    return this.rules.flatMap(
      ({ apiGroups, resources, verbs, resourceNames = [undefined], namespaces = [undefined] }) =>
        apiGroups.flatMap((group) =>
          resources.flatMap((resource) =>
            verbs.flatMap((verb) =>
              resourceNames.flatMap((name) =>
                namespaces.map((namespace) => ({ verb, group, resource, namespace, name })),
              ),
            ),
          ),
        ),
    );
  }

  /** Does something while no watch of these types reports anything. */
  async unseen(types: readonly ResourceType[], act: () => Promise<void>): Promise<void> {
    const rules = types.map(({ plural }) => this.proxy.on(watches(plural), drop));
    for (const { plural } of types) this.proxy.cut(watches(plural));
    await act();
    for (const rule of rules) rule.remove();
    for (const { plural } of types) this.proxy.cut(watches(plural));
  }

  /** Loses the events of an object from now on. Returns how to end that. */
  losing({ plural }: ResourceType, name: string): () => void {
    const rule = this.proxy.onEvents(watches(plural), losing(name));
    return () => {
      rule.remove();
    };
  }

  /** Waits until an event has become a series. */
  async toldTwice(name: string, reason: string): Promise<void> {
    await eventually(async () => {
      const all = await this.cluster.list<
        AnyObject & { readonly reason: string; readonly regarding: { readonly name: string } }
      >(events, this.namespace);
      const found = all.filter((event) => event.regarding.name === name && event.reason === reason);
      expect(found).toContainEqual(expect.objectContaining({ series: expect.anything() as unknown }));
    });
  }

  /** Waits until every right has been used. Nothing was refused meanwhile, and only the installation gives any of them. */
  async usedAll(): Promise<void> {
    const { cluster, user, rules, namespaces } = this;
    await this.asksForDefinitions();
    await eventually(async () => {
      const asked = await cluster.sandbox.audit(user);
      expect(asked.filter(({ code }) => code === 403).map(summary)).toEqual([]);
      const unused = this.rights.filter((right) => !asked.some((entry) => isUsedBy(right, entry)));
      expect(unused.map(describeRight)).toEqual(this.walked.byAdmission);
    });
    this.logsNoError();
    const code = await this.controller.stop();
    expect(code, JSON.stringify([this.controller.log.slice(-9), this.controller.strayOutput])).toBe(0);
    await revoke(cluster, { user, rules, ...namespaces });
  }

  /** Answers watches of what has a CRD as if it weren't served, until the CRD is asked for. */
  private async asksForDefinitions(): Promise<void> {
    const message = 'the server could not find the requested resource';
    for (const right of this.rights.filter(({ resource }) => resource === definitionType.plural)) {
      const matches = watches(right.name!.split('.')[0]);
      const rule = this.proxy.on(matches, respond(404, {}, message));
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
    const places = {
      namespace: user,
      ...(namespaces.namespaces && { watchNamespaces: namespaces.namespaces }),
    };
    return installedRights({ kinds: [walked.kind], args, ...places });
  }
}

/** As in `patch services ingress/proxy`. */
function describeRight({ verb, group, resource, namespace, name }: Right): string {
  const place = namespace === undefined ? '' : ` ${namespace}/${name ?? '*'}`;
  return `${verb} ${resource}${group && `.${group}`}${place}`;
}

/** Reports whether the API server has let the request pass for this right. */
function isUsedBy(right: Right, { verb, code = 0, objectRef = {} }: AuditEntry): boolean {
  const { apiGroup = '', resource = '', subresource, namespace, name } = objectRef;
  const what = subresource === undefined ? resource : `${resource}/${subresource}`;
  // An apply that makes an object is asked for both.
  const makes = verb === 'patch' && code === 201;
  return (
    code !== 403 &&
    (verb === right.verb || (makes && right.verb === 'create')) &&
    apiGroup === right.group &&
    what === right.resource &&
    (right.namespace === undefined || namespace === right.namespace) &&
    (right.name === undefined || name === right.name)
  );
}
