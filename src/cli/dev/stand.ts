import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../../contract/error.js';
import type { OwnedKind } from '../../contract/kind.js';
import { describeRef, keyOf, objectId, refOf } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { definitionName } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { sleep } from '../../client/clock.js';
import type { Clock } from '../../client/clock.js';
import { namespaceType } from '../../install/objects.js';
import type { ClusterApi } from '../../client/cluster.js';
import type { PolicyRule } from '../../install/rules.js';
import { CliError } from '../exit.js';

/** A kind as far as it is data, so that it can be sent to another process. */
export type LoadedKind = Pick<OwnedKind, 'name' | 'type' | 'crd' | 'children'>;

/** A custom resource from a file, as it is written, with its namespace. */
export interface Sample {
  readonly type: ResourceType;
  readonly object: AnyObject;
}

/** Ends processes, each of which leads a group of its own, with this one, however it ends. */
export interface Guard {
  watch(pid: number): void;
  forget(pid: number): void;
  release(): Promise<void>;
}

export interface ControlPlane {
  readonly adminKubeconfig: string;
  readonly kubectlPath: string;
  /** Removes it, with all of its files. Can be called more than once. */
  stop(): Promise<void>;
}

export interface Stand extends ControlPlane {
  readonly operatorKubeconfig: string;
  /**
   * Applies CRDs that are new or changed, and grants the operator exactly these rights.
   * @returns the CRDs that are refused, each with a sentence; whether one was applied; the names of those that stay without a kind
   */
  install(
    kinds: readonly Pick<LoadedKind, 'type' | 'crd'>[],
    rules: readonly PolicyRule[],
  ): Promise<{
    readonly refused: readonly { readonly crd: string; readonly why: string }[];
    readonly changed: boolean;
    readonly left: readonly string[];
  }>;
  /** Applies the files of a folder. @returns a line for each object that was applied, and for what the cluster refuses */
  applyFolder(
    folder: string,
  ): Promise<{ readonly applied: readonly string[]; readonly refused: readonly string[] }>;
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

const APPLY = { fieldManager: 'reconstruct-dev', force: true };

/** Time after a change of a CRD in which a refusal is retried: for a moment the API server still uses the previous one. */
const RETRIED_MILLISECONDS = 5_000;
const RETRY_MILLISECONDS = 100;

/** The samples in the cluster: as in the files, once they change there; `kubectl` may edit them until then. */
export class Samples {
  private applied: readonly Sample[] = [];

  constructor(
    private readonly cluster: Pick<ClusterApi, 'apply' | 'find' | 'delete'>,
    private readonly clock: Clock,
  ) {}

  /**
   * Applies samples that are new or changed, and deletes those that were removed.
   *
   * @param schemaChanged a CRD was just applied
   * @param refusedCrds those whose samples stay as they are
   * @param signal ends it early
   * @returns a sentence for each sample that the cluster refuses; it is applied again the next time
   */
  async update(
    all: readonly Sample[],
    schemaChanged: boolean,
    refusedCrds: readonly string[],
    signal: AbortSignal,
  ): Promise<string[]> {
    const stays = ({ type }: Sample): boolean => refusedCrds.includes(definitionName(type));
    const until = schemaChanged ? this.clock.monotonic() + RETRIED_MILLISECONDS : -Infinity;
    const before = new Map(this.applied.map((sample) => [objectId(sample.object), sample]));
    const wanted = new Map(all.map((sample) => [objectId(sample.object), sample]));
    const refusals = refusedCrds.map(
      (crd) =>
        `The samples of ${crd} stay as they are, since its CRD is refused; "kubectl delete crd ${crd}" removes them, and the next save installs the new one`,
    );
    const tried = async ({ object }: Sample, action: () => Promise<void>): Promise<boolean> => {
      try {
        await action();
        return true;
      } catch (error) {
        refusals.push(`${describeRef(refOf(object))} is refused by the cluster: ${messageOf(error)}`);
        return false;
      }
    };
    const after = this.applied.filter(stays);
    for (const [id, sample] of before)
      if (!stays(sample) && !wanted.has(id) && !(await tried(sample, () => this.remove(sample))))
        after.push(sample);
    for (const [id, sample] of wanted) {
      if (stays(sample)) continue;
      const isSame = isDeepStrictEqual(before.get(id)?.object, sample.object);
      if (isSame || (await tried(sample, () => this.apply(sample, until, signal)))) after.push(sample);
    }
    this.applied = after;
    return refusals;
  }

  /** Makes samples of a kind count as new when it comes back. @param crd that was removed, as in `notes.example.com` */
  forget(crd: string): void {
    this.applied = this.applied.filter(({ type }) => definitionName(type) !== crd);
  }

  private async remove({ type, object }: Sample): Promise<void> {
    const live = await this.cluster.find(type, keyOf(object));
    if (live) await this.cluster.delete(type, live, 'Background');
  }

  /** @param until a refusal is retried */
  private async apply({ type, object }: Sample, until: number, signal: AbortSignal): Promise<void> {
    const { namespace } = object.metadata;
    if (namespace !== undefined && !signal.aborted && !(await this.cluster.find(namespaceType, namespace))) {
      const { apiVersion, kind } = namespaceType;
      await this.cluster.apply(namespaceType, { apiVersion, kind, metadata: { name: namespace } }, APPLY);
    }
    while (!signal.aborted) {
      try {
        await this.cluster.apply(type, object, APPLY);
        return;
      } catch (error) {
        if (this.clock.monotonic() >= until) throw error;
      }
      await sleep(this.clock, RETRY_MILLISECONDS, signal);
    }
  }
}
