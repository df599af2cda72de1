import type { Kind } from '../../src/contract/kind.js';
import { resourceType } from '../../src/contract/resource.js';
import { loadKind } from './bundle.js';
import type { ConfiguredKind } from './bundle.js';
import { collection, deployments, eventually } from './cluster.js';
import type { Cluster, Place } from './cluster.js';

/** Two builds of one kind: the next one has another image, and its pods start nowhere where the Shop is fragile. */
export async function buildsOfShop(): Promise<[Required<ConfiguredKind>, Required<ConfiguredKind>]> {
  return [
    await loadKind('test/support/kinds/shop-1.config.mjs'),
    await loadKind('test/support/kinds/shop-2.config.mjs'),
  ];
}

/** Returns the annotation in which the lease keeps where the rollout of a kind has stopped. */
export function stoppedOf({ type }: Kind): string {
  return `rollout.reconstruct.kosmos.io/${type.kind.toLowerCase()}`;
}

/** Returns the place of an operator's lease. */
export function leaseIn(namespace: string): Place {
  const type = resourceType({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' });
  return { type, namespace, name: 'reconstruct' };
}

/** Deployment, as far as it is read. */
export interface Web {
  readonly metadata: { readonly name: string; readonly generation: number };
  readonly spec: {
    readonly replicas: number;
    readonly template: {
      readonly spec: {
        readonly containers: readonly { readonly image: string; readonly imagePullPolicy?: string }[];
      };
    };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly availableReplicas?: number;
    readonly updatedReplicas?: number;
  };
}

function isOfNextShop({ spec }: Web): boolean {
  return spec.template.spec.containers[0]!.image === 'web:2';
}

function isReady({ metadata, spec, status }: Web): boolean {
  return (
    status?.observedGeneration === metadata.generation &&
    [status.replicas, status.updatedReplicas, status.availableReplicas].every(
      (count) => count === spec.replicas,
    )
  );
}

/** Deployments of a namespace, in every state that a watch shows. */
export class Webs implements AsyncDisposable {
  /** Maximum number that weren't ready at once, without those in `edited`. */
  mostUnready = 0;
  /** Names of those that a user has edited, which are updated at once. */
  readonly edited = new Set<string>();
  private readonly known = new Map<string, Web>();
  private readonly end = new AbortController();
  private reading: Promise<void> = Promise.resolve();

  private constructor(private readonly isOfNext: (web: Web) => boolean) {}

  /**
   * @param count number of those that are there
   * @param isOfNext reports whether the next build has rendered it. @default - by the image of a Shop
   */
  static async watch(
    cluster: Cluster,
    namespace: string,
    count: number,
    isOfNext = isOfNextShop,
  ): Promise<Webs> {
    const webs = new Webs(isOfNext);
    const path = collection(deployments, namespace);
    webs.reading = webs.read(await cluster.watch(path, {}, webs.end.signal));
    await eventually(() => {
      if (webs.known.size < count) throw new Error(`The watch has shown ${webs.known.size} of ${count}`);
    });
    webs.mostUnready = 0;
    return webs;
  }

  /** Returns the names of those that the next build has rendered, sorted. */
  ofNext(): string[] {
    return this.namesOf(this.isOfNext);
  }

  /** Returns the names of those that aren't ready, sorted. */
  unready(): string[] {
    return this.namesOf((web) => !isReady(web));
  }

  /** Returns the generations, by the names. */
  generations(): Record<string, number> {
    return Object.fromEntries([...this.known].map(([name, { metadata }]) => [name, metadata.generation]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.end.abort();
    await this.reading;
  }

  private namesOf(matches: (web: Web) => boolean): string[] {
    return [...this.known.values()]
      .filter(matches)
      .map(({ metadata }) => metadata.name)
      .sort();
  }

  private async read(lines: AsyncIterable<string>): Promise<void> {
    try {
      for await (const line of lines) {
        const { object } = JSON.parse(line) as { object: Web };
        this.known.set(object.metadata.name, object);
        const unready = this.unready().filter((name) => !this.edited.has(name));
        this.mostUnready = Math.max(this.mostUnready, unready.length);
      }
    } catch (error) {
      if (!this.end.signal.aborted) throw error;
    }
  }
}
