import { isDeepStrictEqual } from 'node:util';
import { messageOf, OperatorError } from '../../contract/error.js';
import { describeRef, groupOf, objectId, objectKey, refOf } from '../../contract/object.js';
import { sleep } from '../../engine/clock.js';
import type { Clock } from '../../engine/clock.js';
import { namespaceType } from '../../install/cluster.js';
import type { Cluster } from '../../install/cluster.js';
import type { PolicyRule } from '../../install/rules.js';
import { CliError } from '../exit.js';
import type { LoadedKind, Sample } from './load.js';

/** Ends processes with this one, however it ends. */
export interface Guard {
  /** The process leads a group of its own. */
  watch(pid: number): void;
  forget(pid: number): void;
  /** Stops watching all processes. */
  release(): Promise<void>;
}

/** A control plane on this machine. */
export interface ControlPlane {
  /** The path of the admin's kubeconfig. */
  readonly adminKubeconfig: string;
  readonly kubectlPath: string;
  /** Removes it, with all of its files. Can be called more than once. */
  stop(): Promise<void>;
}

/** A control plane with the ServiceAccount of an installation. */
export interface Stand extends ControlPlane {
  /** The path of the ServiceAccount's kubeconfig. */
  readonly operatorKubeconfig: string;
  /** Applies CRDs that are new or changed, and grants the operator exactly these rights. */
  install(
    kinds: readonly Pick<LoadedKind, 'type' | 'crd'>[],
    rules: readonly PolicyRule[],
  ): Promise<{
    /** A sentence for each CRD that the cluster refuses. */
    readonly refused: readonly string[];
    /** Whether a CRD was applied. */
    readonly changed: boolean;
    /** The names of CRDs that aren't among the kinds any more; they stay in the cluster. */
    readonly left: readonly string[];
  }>;
}

/** Exports of `lib/testing/dev-stand.js`. `log` takes the progress of a build, and programs that have ended unexpectedly. */
export interface StandModule {
  readonly startGuard: () => Promise<Guard>;
  readonly startStand: (log: (line: string) => void) => Promise<Stand>;
  readonly startEmpty: (log: (line: string) => void) => Promise<ControlPlane>;
}

/**
 * Loads the sandbox from beside the bundle, of which the testing kit is no part.
 *
 * @throws CliError with exit code 2 where only the bundle is installed, as in the image
 */
export async function loadStand(): Promise<StandModule> {
  try {
    return (await import(new URL('../../testing/dev-stand.js', import.meta.url).href)) as StandModule;
  } catch (error) {
    throw new CliError(
      `The sandbox can't be loaded: ${messageOf(error)}; it comes with the whole package only, so run this in a project that has it installed, as those of reconstruct init have`,
      2,
    );
  }
}

const MANAGER = 'reconstruct-dev';
/**
 * How long a refusal is retried after a change of a CRD, by its reason: for a moment the API server still uses the previous one. What
 * is invalid mostly is so by the new one too.
 */
const RETRIED_MILLISECONDS: Readonly<Record<string, number>> = {
  FieldDropped: 10_000,
  KindNotServed: 10_000,
  Invalid: 2_000,
};
const RETRY_MILLISECONDS = 100;

/** The samples in the cluster: as in the files, once they change there; `kubectl` may edit them until then. */
export class Samples {
  private applied: readonly Sample[] = [];

  constructor(
    private readonly cluster: Pick<Cluster, 'apply' | 'find' | 'delete'>,
    private readonly clock: Clock,
  ) {}

  /**
   * Applies samples that are new or changed, and deletes those that were removed.
   *
   * @param schemaChanged whether a CRD was just applied
   * @param signal ends it early
   * @returns a sentence for each sample that the cluster refuses; it is applied again the next time
   */
  async update(wanted: readonly Sample[], schemaChanged: boolean, signal: AbortSignal): Promise<string[]> {
    const began = this.clock.monotonic();
    const isRetried = (error: unknown): boolean => {
      const limit = error instanceof OperatorError ? (RETRIED_MILLISECONDS[error.reason] ?? 0) : 0;
      return schemaChanged && this.clock.monotonic() - began < limit;
    };
    const before = new Map(this.applied.map((sample) => [objectId(sample.object), sample]));
    const after: Sample[] = [];
    const refusals: string[] = [];
    const refused = ({ object }: Sample, error: unknown): void => {
      refusals.push(`${describeRef(refOf(object))} is refused by the cluster: ${messageOf(error)}`);
    };
    const ids = new Set(wanted.map(({ object }) => objectId(object)));
    for (const sample of this.applied.filter(({ object }) => !ids.has(objectId(object))))
      await this.remove(sample).catch((error: unknown) => {
        refused(sample, error);
        after.push(sample);
      });
    for (const sample of wanted) {
      const isSame = isDeepStrictEqual(before.get(objectId(sample.object))?.object, sample.object);
      const applying = isSame ? undefined : this.apply(sample, isRetried, signal);
      await Promise.resolve(applying).then(
        () => after.push(sample),
        (error: unknown) => {
          refused(sample, error);
        },
      );
    }
    this.applied = after;
    return refusals;
  }

  /** Makes samples of a kind count as new when it comes back. @param crd that was removed, as in `notes.example.com` */
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
    isRetried: (error: unknown) => boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const options = { fieldManager: MANAGER, force: true };
    const { namespace } = object.metadata;
    if (namespace !== undefined && !signal.aborted && !(await this.cluster.find(namespaceType, namespace))) {
      const { apiVersion, kind } = namespaceType;
      await this.cluster.apply(namespaceType, { apiVersion, kind, metadata: { name: namespace } }, options);
    }
    while (!signal.aborted) {
      try {
        const answer = await this.cluster.apply(type, object, options);
        if (hasFields(answer.object.spec, object.spec)) return;
        throw new OperatorError({
          reason: 'FieldDropped',
          message: `a field of its spec was dropped, since the CRD in the cluster has no such field: see ${object.kind} there`,
        });
      } catch (error) {
        if (!isRetried(error)) throw error;
      }
      await sleep(this.clock, RETRY_MILLISECONDS, signal);
    }
  }
}

/** Reports whether a stored value has every field of the one that was sent. */
function hasFields(stored: unknown, sent: unknown): boolean {
  if (typeof sent !== 'object' || sent === null) return stored !== undefined;
  if (typeof stored !== 'object' || stored === null) return false;
  return Object.entries(sent).every(
    ([name, value]) =>
      value === null || hasFields((stored as Readonly<Record<string, unknown>>)[name], value),
  );
}
