import { isDeepStrictEqual } from 'node:util';
import type { CustomResourceDefinition } from '../../contract/crd.js';
import { messageOf } from '../../contract/error.js';
import type { OwnedKind } from '../../contract/kind.js';
import { describeRef, keyOf, objectId } from '../../contract/object.js';
import type { AnyObject } from '../../contract/object.js';
import { definitionName } from '../../contract/resource.js';
import type { ResourceType } from '../../contract/resource.js';
import { sleep, systemClock } from '../../client/clock.js';
import { namespaceType } from '../../install/objects.js';
import type { ClusterApi } from '../../client/cluster.js';
import type { PolicyRule } from '../../install/rules.js';
import { CliError } from '../output.js';

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
  /** Applies a CRD, and waits for a new one to be served. */
  applyCrd(kind: LoadedKind, isNew: boolean): Promise<void>;
  /** Grants the operator exactly these rights. */
  grant(rules: readonly PolicyRule[]): Promise<void>;
  restartControllerManager(): Promise<void>;
  readonly kubectl: (args: readonly string[]) => Promise<{
    readonly code: number | null;
    readonly stdout: string;
    readonly stderr: string;
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
    );
  }
}

const APPLY = { fieldManager: 'reconstruct-dev', force: true };

/** Time after a change of a CRD in which a refusal is retried: for a moment the API server still uses the previous one. */
const RETRIED_MILLISECONDS = 5_000;
const RETRY_MILLISECONDS = 100;

/** A project in a cluster: its CRDs, the rights of its operator, and its samples. */
export class DeployedProject {
  private readonly crds = new Map<string, CustomResourceDefinition>();
  private rules: readonly PolicyRule[] = [];
  /** Samples as they were applied, by `objectId`. */
  private readonly samples = new Map<string, Sample>();
  /** CRDs of which the cluster keeps the ones before, and with them the samples. */
  private refused: readonly string[] = [];
  private schemaChanged = false;

  constructor(
    private readonly stand: Stand,
    private readonly cluster: Pick<ClusterApi, 'apply' | 'find' | 'delete'>,
  ) {}

  /**
   * Applies CRDs that are new or changed, and grants the operator exactly these rights.
   * @returns a sentence for each CRD that is refused, and the names of those that stay without a kind
   */
  async install(kinds: readonly LoadedKind[], rules: readonly PolicyRule[]) {
    const { stand, crds } = this;
    const refused = new Map<string, string>();
    const wanted = new Set(kinds.map(({ crd }) => crd.metadata.name));
    const left = [...crds.keys()].filter((name) => !wanted.has(name));
    // They may be removed, and the kind come back: then its samples are new.
    for (const name of left) crds.delete(name);
    for (const [id, { type }] of this.samples)
      if (left.includes(definitionName(type))) this.samples.delete(id);
    const changed = kinds.filter(({ crd }) => !isDeepStrictEqual(crds.get(crd.metadata.name), crd));
    const install = async (kind: LoadedKind): Promise<boolean> => {
      const { name } = kind.crd.metadata;
      const isNew = !crds.has(name);
      try {
        await stand.applyCrd(kind, isNew);
        crds.set(name, kind.crd);
        return isNew;
      } catch (error) {
        refused.set(name, `The CRD ${name} is refused: ${messageOf(error)}`);
        return false;
      }
    };
    const added = await Promise.all(changed.map(install));
    if (!isDeepStrictEqual(this.rules, rules)) await stand.grant(rules);
    this.rules = rules;
    // Its garbage collector would learn of them half a minute later.
    if (added.includes(true)) await stand.restartControllerManager();
    this.refused = [...refused.keys()];
    this.schemaChanged = changed.length > refused.size;
    return { refused: [...refused.values()], left };
  }

  /**
   * Applies samples that are new or changed in the files, and deletes those that were removed; `kubectl` may edit them until then.
   * @param signal ends it early
   * @returns a sentence for each sample that the cluster refuses; it is applied again the next time
   */
  async update(all: readonly Sample[], signal: AbortSignal): Promise<string[]> {
    const stays = ({ type }: Sample): boolean => this.refused.includes(definitionName(type));
    const until = this.schemaChanged ? systemClock.monotonic() + RETRIED_MILLISECONDS : -Infinity;
    const wanted = new Map(all.map((sample) => [objectId(sample.object), sample]));
    const refusals = this.refused.map(
      (crd) =>
        `The samples of ${crd} stay as they are, since its CRD is refused; "kubectl delete crd ${crd}" removes them, and the next save installs the new one`,
    );
    const tried = async ({ object }: Sample, action: () => Promise<void>): Promise<boolean> => {
      try {
        await action();
        return true;
      } catch (error) {
        refusals.push(`${describeRef(object)} is refused by the cluster: ${messageOf(error)}`);
        return false;
      }
    };
    for (const [id, sample] of this.samples)
      if (!stays(sample) && !wanted.has(id) && (await tried(sample, () => this.remove(sample))))
        this.samples.delete(id);
    for (const [id, sample] of wanted) {
      if (stays(sample) || isDeepStrictEqual(this.samples.get(id)?.object, sample.object)) continue;
      this.samples.delete(id);
      if (await tried(sample, () => this.apply(sample, until, signal))) this.samples.set(id, sample);
    }
    return refusals;
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
        if (systemClock.monotonic() >= until) throw error;
      }
      await sleep(systemClock, RETRY_MILLISECONDS, signal);
    }
  }
}

/** Has kubectl apply the files of a folder. @returns the lines that it prints for what was applied, and for what was not */
export async function applyFolder({ kubectl }: Stand, folder: string) {
  const apply = ['apply', '--server-side', '--force-conflicts', '--recursive', '-f', folder];
  let result = await kubectl(apply);
  if (result.code !== 0 && result.stdout !== '') {
    // What comes before its namespace or its CRD is applied once that is there.
    await kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s']);
    result = await kubectl(apply);
  }
  const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');
  return { applied: lines(result.stdout), refused: result.code === 0 ? [] : lines(result.stderr) };
}
