import type { Watchdog } from '../watchdog.js';
import type { CleanUp } from './clean-up.js';
import type { Controller } from './controller.js';
import type { Kubectl } from './kubectl.js';
import type { DemoOptions } from './options.js';
import type { Sample } from './sample.js';
import type { Show } from './show.js';

/** What all steps work with. */
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
  /** How long a condition is waited for. */
  readonly deadlineMilliseconds: number;
  /** The arguments of `reconstruct` that start the controller here. */
  readonly controllerArguments: readonly string[];
  /** Makes what the controller needs: the CRD, and rights or a namespace. */
  install(): Promise<void>;
  /** Whether the sample's node port can be had. */
  hasNodePort(port: number): Promise<boolean>;
  /** How many requests the controller has sent, in words, where that is known. */
  requests(): Promise<string | undefined>;
  /** What to tell of the cluster in the end. @default - nothing */
  readonly farewell?: readonly string[];
}

/** The stage once the controller runs. */
export interface Scene extends Stage {
  readonly cluster: DemoCluster;
  readonly controller: Controller;
  readonly sample: Sample;
}
