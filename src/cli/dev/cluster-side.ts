import { isDeepStrictEqual } from 'node:util';
import { messageOf, OperatorError } from '../../contract/error.js';
import { describeRef, groupOf, objectId, objectKey, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { Api } from '../../engine/api.js';
import { sleep } from '../../engine/clock.js';
import type { Clock } from '../../engine/clock.js';
import { UndiciTransport } from '../../engine/transport.js';
import { namespaceType } from '../../install/cluster.js';
import type { Cluster } from '../../install/cluster.js';
import { ClusterClient } from '../cluster-client.js';
import { answering } from '../diff/answering.js';
import { packageVersion } from '../version.js';
import { clusterAccess } from '../with-cluster.js';
import type { Sample } from './project.js';
import type { Stand } from './stand.js';

/** What a session has once there is a cluster. */
export interface ClusterSide {
  readonly stand: Stand;
  /** As the admin. */
  readonly api: Api;
  readonly samples: Samples;
  close(): Promise<void>;
}

export async function clusterSide(stand: Stand, clock: Clock): Promise<ClusterSide> {
  const access = await clusterAccess({ kubeconfig: stand.adminKubeconfig });
  const transport = new UndiciTransport(access, `reconstruct-dev/${packageVersion()}`);
  return {
    ...{ stand, api: new Api(transport) },
    samples: new Samples(new ClusterClient(answering(transport)), clock),
    close: () => transport.close(),
  };
}

const MANAGER = 'reconstruct-dev';
/**
 * Until a CRD that has changed is served, the API server goes by the one before: how long it is tried again, by the reason
 * of the refusal. What is invalid mostly is so by the new one too.
 */
const LONGEST_WAITS_MILLISECONDS: Readonly<Record<string, number>> = {
  FieldDropped: 10_000,
  KindNotServed: 10_000,
  Invalid: 2_000,
};
const LOOK_MILLISECONDS = 100;

/** The samples in the cluster: what the files say, as soon as they say something new. */
export class Samples {
  private applied: readonly Sample[] = [];

  constructor(
    private readonly cluster: Pick<Cluster, 'apply' | 'find' | 'delete'>,
    private readonly clock: Clock,
  ) {}

  /**
   * Applies what is new or other than before, and deletes what has been taken out.
   * @param schemaChanged whether a CRD may not be served yet as it was applied
   * @param signal ends it before its time
   * @returns a sentence for each sample that the cluster refuses; it is tried again the next time
   */
  async bring(wanted: readonly Sample[], schemaChanged: boolean, signal: AbortSignal): Promise<string[]> {
    const began = this.clock.monotonic();
    const isPassing = (error: unknown): boolean =>
      schemaChanged && this.clock.monotonic() - began < longestWait(error);
    const plan = planSamples(this.applied, wanted);
    const refused = new Map<Sample, string>();
    for (const sample of plan.delete)
      await this.remove(sample).catch((error: unknown) => refused.set(sample, refusal(sample, error)));
    for (const sample of plan.apply)
      await this.apply(sample, isPassing, signal).catch((error: unknown) => {
        refused.set(sample, refusal(sample, error));
      });
    const kept = plan.delete.filter((sample) => refused.has(sample));
    this.applied = [...wanted.filter((sample) => !refused.has(sample)), ...kept];
    return [...refused.values()];
  }

  /** What comes with a kind again is applied as if it were new. @param crd that has left, as in `notes.example.com` */
  forget(crd: string): void {
    this.applied = this.applied.filter(({ type }) => `${type.plural}.${groupOf(type.apiVersion)}` !== crd);
  }

  private async remove({ type, object }: Sample): Promise<void> {
    const { namespace, name } = object.metadata;
    const live = await this.cluster.find(type, objectKey(namespace, name));
    if (live) await this.cluster.delete(type, live, 'Background');
  }

  private async apply(
    { type, object }: Sample,
    isPassing: (error: unknown) => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace } = object.metadata;
    if (namespace !== undefined && !signal.aborted) await this.makeNamespace(namespace);
    while (!signal.aborted) {
      try {
        const answer = await this.cluster.apply(type, object, { fieldManager: MANAGER, force: true });
        if (has(answer.object.spec, object.spec)) return;
        throw dropped(object);
      } catch (error) {
        if (!isPassing(error)) throw error;
      }
      await sleep(this.clock, LOOK_MILLISECONDS, signal);
    }
  }

  private async makeNamespace(name: string): Promise<void> {
    if (await this.cluster.find(namespaceType, name)) return;
    const { apiVersion, kind } = namespaceType;
    await this.cluster.apply(
      namespaceType,
      { apiVersion, kind, metadata: { name } },
      { fieldManager: MANAGER, force: true },
    );
  }
}

function longestWait(error: unknown): number {
  return error instanceof OperatorError ? (LONGEST_WAITS_MILLISECONDS[error.reason] ?? 0) : 0;
}

function refusal({ object }: Sample, error: unknown): string {
  return `${describeRef(refOf(object))} is refused by the cluster: ${messageOf(error)}`;
}

function dropped(object: AnyObject): OperatorError {
  const message = 'a field of its spec was dropped, since the CRD in the cluster has no such field';
  return new OperatorError({ reason: 'FieldDropped', message: `${message}: see ${object.kind} there` });
}

/** Whether what is there has every field of what was sent, whatever its value. */
function has(there: unknown, sent: unknown): boolean {
  if (typeof sent !== 'object' || sent === null) return there !== undefined;
  if (typeof there !== 'object' || there === null) return false;
  return Object.entries(sent).every(
    ([name, value]) => value === null || has((there as Readonly<Record<string, unknown>>)[name], value),
  );
}

/** What has to be done in the cluster, so that it has the samples. */
interface SamplePlan {
  readonly apply: readonly Sample[];
  readonly delete: readonly Sample[];
}

/**
 * Applied is what a file has otherwise than it had, so that what was edited by `kubectl` stays until then; deleted is what
 * has been taken out.
 * @param applied the samples as they were applied last
 * @param wanted the samples as they are in the files
 */
export function planSamples(applied: readonly Sample[], wanted: readonly Sample[]): SamplePlan {
  const before = new Map(applied.map(({ object }) => [objectId(object), object]));
  const ids = new Set(wanted.map(({ object }) => objectId(object)));
  return {
    apply: wanted.filter(({ object }) => !isDeepStrictEqual(before.get(objectId(object)), object)),
    delete: applied.filter(({ object }) => !ids.has(objectId(object))),
  };
}
