import { messageOf } from '../../contract/error.js';
import type { CustomResourceDefinition } from '../../contract/crd.js';
import type { ResourceType } from '../../contract/resource.js';
import type { PolicyRule } from '../../install/rules.js';
import { CliError } from '../exit.js';

/** Ends processes with this one, however it ends. */
export interface Guard {
  /** The process leads a group of its own. */
  watch(pid: number): void;
  forget(pid: number): void;
  /** Lets everything be that it watches. */
  release(): Promise<void>;
}

/** What of a kind has to be in the cluster before its custom resources. */
export interface InstalledKind {
  readonly type: ResourceType;
  readonly crd: CustomResourceDefinition;
}

/** A control plane on this machine. */
export interface Cluster {
  /** The path of the admin's kubeconfig. */
  readonly adminKubeconfig: string;
  readonly kubectlPath: string;
  /** Nothing is left of it. Can be called more than once. */
  stop(): Promise<void>;
}

/** A control plane, and the account of an operator in it. */
export interface Stand extends Cluster {
  /** The path of the kubeconfig with which the operator is the ServiceAccount of an installation. */
  readonly operatorKubeconfig: string;
  /**
   * Applies the CRDs that are new or other than before, and gives the operator exactly these rights.
   */
  install(kinds: readonly InstalledKind[], rules: readonly PolicyRule[]): Promise<Installed>;
}

export interface Installed {
  /** A sentence for each CRD that the cluster refuses. */
  readonly refused: readonly string[];
  /** Whether a CRD is other than before. */
  readonly changed: boolean;
  /** The names of CRDs that are asked for no more; they stay in the cluster. */
  readonly left: readonly string[];
}

/** What `lib/testing/dev-stand.js` exports. */
export interface StandModule {
  readonly startGuard: () => Promise<Guard>;
  /** @param log takes news for people: a build's progress, a program that has ended by itself */
  readonly startStand: (log: (line: string) => void) => Promise<Stand>;
  /** One in which nothing is installed, not even an account. @param log as above */
  readonly startEmpty: (log: (line: string) => void) => Promise<Cluster>;
}

/**
 * The sandbox belongs to the testing kit, which is no part of the bundle: it is loaded from beside it, and where only the
 * bundle is, as in the image, there is none.
 * @throws CliError with exit code 2 where it isn't there
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
