import type { ManagedProcess } from '../process.js';
import { formatDuration, logToStderr, showProgress } from '../progress.js';
import { waitFor } from '../wait.js';
import type { Scene } from './stage.js';
import { appServices } from './kubectl.js';
import type { LiveObject } from './kubectl.js';

/** A step that did not go as it should. */
export class StepFailure extends Error {
  constructor(
    /** Expected state. */
    readonly expected: string,
    /** Actual state. */
    readonly seen: string,
  ) {
    super(`Expected ${expected}. Seen: ${seen}`);
  }
}

/** The user's cluster is not there, or does not let the demo in. */
export class UnreachableError extends Error {}

/** Outcome of a look at the cluster: the expected state, or the actual one. */
export type Observation<T> = { readonly found: T } | { readonly seen: string };

export interface UntilOptions {
  readonly deadlineMilliseconds: number;
  /** Process without which waiting has no use. @default - none */
  readonly controller?: ManagedProcess;
  readonly signal: AbortSignal;
}

/**
 * Looks again and again until there is what was looked for. A look that fails counts as "not yet".
 *
 * @param expected completes the sentence "Expected ..."
 * @throws StepFailure at the deadline, or once the controller has ended; an AbortError
 */
export async function until<T>(
  expected: string,
  look: () => Promise<Observation<T>> | Observation<T>,
  { deadlineMilliseconds, controller, signal }: UntilOptions,
): Promise<T> {
  const started = Date.now();
  const status = (): string => `  waiting for ${expected}: ${formatDuration(Date.now() - started)}`;
  const progress = showProgress(status, logToStderr);
  const probe = async (): Promise<{ readonly found: T }> => {
    const observation = await look();
    if ('found' in observation) return observation;
    throw new Error(observation.seen);
  };
  try {
    const processes = controller ? [controller] : [];
    const options = { timeoutMilliseconds: deadlineMilliseconds, processes, signal };
    return (await waitFor(expected, probe, options)).found;
  } catch (error) {
    signal.throwIfAborted();
    if (controller?.failure) throw new StepFailure(expected, controller.failure.message);
    const { cause } = error as { readonly cause?: Error };
    throw new StepFailure(
      `${expected}, within ${formatDuration(deadlineMilliseconds)}`,
      cause?.message ?? '',
    );
  } finally {
    progress.stop();
  }
}

/** Waits with the deadline of the cluster, unless another is given. */
export function inTime<T>(
  { cluster, controller, signal }: Scene,
  expected: string,
  look: () => Promise<Observation<T>> | Observation<T>,
  deadlineMilliseconds = cluster.deadlineMilliseconds,
): Promise<T> {
  return until(expected, look, { deadlineMilliseconds, controller, signal });
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

interface Pod extends LiveObject {
  readonly status?: {
    readonly containerStatuses?: readonly {
      readonly state?: { readonly waiting?: { readonly reason?: string; readonly message?: string } };
    }[];
  };
}

/** Label selector of the sample's children. */
export function childSelector({ sample }: Pick<Scene, 'sample'>): string {
  return `kosmos.io/appservice=${sample.metadata.name}`;
}

/** Waits until the AppService reports for its present spec that all of its pods are ready. */
export async function untilReady(scene: Scene, size: number): Promise<LiveObject> {
  const { kubectl } = scene.cluster;
  return inTime(scene, `${size} of ${size} pods ready, and the AppService to say so`, async () => {
    const found = await kubectl.get(appServices, scene.sample.metadata.name);
    if (found === undefined) return { seen: 'there is no AppService' };
    const { metadata, status } = found;
    const conditions = (status?.conditions ?? []) as readonly Condition[];
    const ready = conditions.find(({ type }) => type === 'Ready');
    const isCurrent =
      status?.observedGeneration === metadata.generation && status?.availableReplicas === size;
    if (isCurrent && ready?.status === 'True') return { found };
    const sentence = ready
      ? `Ready is ${ready.status}, ${ready.reason}: ${ready.message}`
      : 'its status is still empty';
    const pods = (await kubectl.list('pods', childSelector(scene))) as Pod[];
    // Such as an image that can't be pulled.
    const troubles = pods.flatMap((pod) =>
      (pod.status?.containerStatuses ?? []).flatMap(({ state }) =>
        state?.waiting
          ? `pod ${pod.metadata.name}: ${state.waiting.reason ?? ''} ${state.waiting.message ?? ''}`
          : [],
      ),
    );
    return { seen: [sentence, ...troubles].join('; ') };
  });
}
