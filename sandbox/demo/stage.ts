import type { ManagedProcess } from '../process.js';
import type { Watchdog } from '../watchdog.js';
import type { Kubectl } from './kubectl.js';
import type { Show } from './show.js';

/** Options of the user. */
export interface DemoOptions {
  /** A context of the user's kubeconfig. @default - a sandbox of its own */
  readonly context?: string;
  /** Whether the sandbox stays when the demo has ended. */
  readonly keep: boolean;
  /** The image that the sample is to run. @default - the sample's own */
  readonly image?: string;
}

/** The part of the tutorial's sample that the demo uses. */
export interface Sample {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly size: number;
    readonly image: string;
    readonly ports?: readonly { readonly port: number; readonly nodePort?: number }[];
  };
}

/** Means of all steps. */
export interface Stage {
  readonly options: DemoOptions;
  readonly show: Show;
  readonly cleanUp: CleanUp;
  /** Sees to it that no process started outlives the demo. */
  readonly watchdog: Watchdog;
  /** A folder for files of the demo; it goes with it. */
  readonly folder: string;
  /** Aborted when the user interrupts the demo. */
  readonly signal: AbortSignal;
}

/** The cluster that the demo plays on: a sandbox, or the user's own. */
export interface DemoCluster {
  readonly kubectl: Kubectl;
  /** Maximum time to wait for a condition. */
  readonly deadlineMilliseconds: number;
  /** The arguments of `reconstruct` that start the controller here. */
  readonly controllerArguments: readonly string[];
  /** Makes what the controller needs: the CRD, and rights or a namespace. */
  install(): Promise<void>;
  /** Specifies whether the sample's node port is free. */
  hasNodePort(port: number): Promise<boolean>;
  /** Returns the number of requests that the controller has sent, in words, where that is known. */
  requests(): Promise<string | undefined>;
  /** Remark on the cluster in the end. @default - nothing */
  readonly farewell?: readonly string[];
}

/** The stage once the controller runs. */
export interface Scene extends Stage {
  readonly cluster: DemoCluster;
  readonly controller: ManagedProcess;
  readonly sample: Sample;
}

/** Cleanup at the end, the latest first. */
export class CleanUp {
  readonly #actions: { what: string; run: () => Promise<void>; byHand: string | undefined }[] = [];

  /**
   * @param what completes the sentence "Could not ..."
   * @param byHand the command that does the same, for what outlives this process
   */
  add(what: string, run: () => Promise<void>, byHand?: string): void {
    this.#actions.push({ what, run, byHand });
  }

  /** The commands for what is still to be undone by hand if this process ends now, the next first. */
  get byHand(): string[] {
    return this.#actions.flatMap(({ byHand }) => byHand ?? []).reverse();
  }

  /** Undoes all of it, also if a part fails. @returns what could not be undone, a sentence for each */
  async run(): Promise<string[]> {
    const problems: string[] = [];
    for (let action = this.#actions.at(-1); action !== undefined; action = this.#actions.at(-1)) {
      try {
        await action.run();
      } catch (error) {
        problems.push(`Could not ${action.what}: ${error instanceof Error ? error.message : String(error)}`);
      }
      // Others may have been added meanwhile.
      this.#actions.splice(this.#actions.indexOf(action), 1);
    }
    return problems;
  }
}
