import { rulesFor } from '../../install/rules.js';
import type { AnyObject } from '../../contract/object.js';
import { objectId } from '../../contract/object.js';
import { groupKind } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import type { Cluster } from '../cluster.js';
import { grant } from '../account.js';
import { isMadeBy, madeBy, isApplied, ANY_SITE, contextOf, make, typeOf } from './stand.js';
import type { Made, Stand, Site, Surroundings } from './stand.js';

/** The namespaces of one trial, and what of the kind's concern is in them. */
export class Scene {
  private constructor(
    private readonly stand: Stand,
    private site: Site,
    private around: Surroundings,
    private readonly made: readonly Made[],
  ) {}

  /** @throws where something of it can't be made; then nothing of it stays */
  static async set(stand: Stand): Promise<Scene> {
    const { cluster, kind, surroundings } = stand;
    const namespaces: string[] = [];
    const makeNamespace = async (prefix: string): Promise<string> => {
      const name = await cluster.makeNamespace(prefix);
      namespaces.push(name);
      return name;
    };
    try {
      const namespace = await makeNamespace('sweep');
      const elsewhere = surroundings ? await makeNamespace('elsewhere') : namespace;
      const site: Site = { namespace, elsewhere, round: 0 };
      const around = surroundings?.(site) ?? {};
      const scene = new Scene(stand, site, around, madeBy(kind, contextOf(around)));
      await scene.furnish();
      return scene;
    } catch (error) {
      for (const name of namespaces) await strike(cluster, name);
      throw error;
    }
  }

  get namespace(): string {
    return this.site.namespace;
  }

  /** None where the kind needs no surroundings. */
  get elsewhere(): string | undefined {
    const { namespace, elsewhere } = this.site;
    return elsewhere === namespace ? undefined : elsewhere;
  }

  get namespaces(): readonly string[] {
    return [...new Set([this.site.namespace, this.site.elsewhere])];
  }

  /** What its operator is started with. */
  get given(): Pick<Surroundings, 'flags' | 'policy'> {
    const { flags, policy } = this.around;
    return { ...(flags && { flags }), ...(policy !== undefined && { policy }) };
  }

  /** Everything that the operator has applied. */
  async applied(): Promise<AnyObject[]> {
    return (await this.reachable()).filter(isApplied);
  }

  /** Everything that it has applied or may apply to, and that is compared as a whole. */
  async compared(): Promise<AnyObject[]> {
    return (await this.reachable()).filter((object) => isApplied(object) || this.original(object));
  }

  /** It belongs to many, so that no custom resource owns it. */
  isShared(object: AnyObject): boolean {
    return this.made.some((made) => made.namespaces && isMadeBy(made, object));
  }

  /** It goes when it is deleted, and somebody makes it anew: the operator, or whoever had made it. */
  isMadeAnew(object: AnyObject): boolean {
    if (isHeld(object)) return false;
    return (
      this.original(object) !== undefined ||
      this.made.some((made) => made.isCreated && isMadeBy(made, object))
    );
  }

  /** As it was before there was anything of the operator. */
  original(object: AnyObject): AnyObject | undefined {
    return this.around.objects?.find((one) => objectId(one) === objectId(object));
  }

  /** What is there of the surroundings, but for what is compared as a whole. */
  async left(): Promise<Readonly<Record<string, 'there' | 'gone'>>> {
    const { cluster, surroundings } = this.stand;
    const names = surroundings?.(ANY_SITE).objects ?? [];
    const entries = (this.around.objects ?? []).map(async (object, index) => {
      const { namespace, name } = object.metadata;
      if (this.made.some((made) => isMadeBy(made, object))) return [];
      const found = await cluster.find({ type: typeOf(object), ...(namespace && { namespace }), name });
      const isThere = found !== undefined && found.metadata.deletionTimestamp === undefined;
      return [[objectId(names[index] ?? object), isThere ? 'there' : 'gone'] as const];
    });
    return Object.fromEntries((await Promise.all(entries)).flat());
  }

  /** What the kind deletes is there again, as before, but under the names of the next round. */
  async renew(): Promise<void> {
    const { cluster, surroundings, removes } = this.stand;
    if (!surroundings || removes.length === 0) return;
    const isRemoved = (object: AnyObject): boolean =>
      removes.some((type) => groupKind(type) === groupKind(object));
    for (const object of (this.around.objects ?? []).filter(isRemoved)) {
      const { namespace, name } = object.metadata;
      await cluster.delete(
        { type: typeOf(object), ...(namespace && { namespace }), name },
        { mayBeMissing: true },
      );
    }
    this.site = { ...this.site, round: this.site.round + 1 };
    this.around = surroundings(this.site);
    for (const object of (this.around.objects ?? []).filter(isRemoved)) await make(cluster, object);
  }

  async strike(): Promise<void> {
    for (const namespace of this.namespaces) await strike(this.stand.cluster, namespace);
  }

  private async furnish(): Promise<void> {
    const { cluster, kind, user, surroundings } = this.stand;
    if (surroundings) await grant(cluster, { user, rules: rulesFor([kind], contextOf(this.around)) });
    for (const object of this.around.objects ?? []) await make(cluster, object);
  }

  private async reachable(): Promise<AnyObject[]> {
    const lists = await Promise.all(
      this.stand.types.flatMap((type) =>
        this.namespacesOf(type).map(async (namespace) => {
          const objects = await this.stand.cluster.listIfServed(type, namespace);
          return objects.map((object) => ({ ...object, apiVersion: type.apiVersion, kind: type.kind }));
        }),
      ),
    );
    return lists.flat();
  }

  private namespacesOf(type: ResourceType): string[] {
    const ofType = this.made.filter((made) => groupKind(made.type) === groupKind(type));
    return [...new Set(ofType.flatMap(({ namespaces = [this.namespace] }) => namespaces))];
  }
}

async function strike(cluster: Cluster, namespace: string): Promise<void> {
  await cluster.send('DELETE', `/api/v1/namespaces/${namespace}`);
}

/** Whether it stays for as long as something else wants it, such as a claim for as long as a pod uses it. */
function isHeld({ metadata }: AnyObject): boolean {
  const { finalizers = [] } = metadata as { readonly finalizers?: readonly string[] };
  return finalizers.length > 0;
}
