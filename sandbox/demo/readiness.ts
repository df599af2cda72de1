import type { Scene } from './cluster.js';
import type { LiveObject } from './kubectl.js';
import { until, type Observation } from './until.js';

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

/** What selects the children of the sample. */
export function childSelector({ sample }: Pick<Scene, 'sample'>): string {
  return `kosmos.io/appservice=${sample.metadata.name}`;
}

/** Waits until the AppService says of its present spec that all of its pods are ready. */
export async function untilReady(scene: Scene, size: number): Promise<LiveObject> {
  const { cluster, sample } = scene;
  return inTime(scene, `${size} of ${size} pods ready, and the AppService to say so`, async () => {
    const found = await cluster.kubectl.get('appservice', sample.metadata.name);
    if (found === undefined) return { seen: 'there is no AppService' };
    if (isReady(found, size)) return { found };
    return { seen: [readySentence(found), ...(await podTroubles(scene))].join('; ') };
  });
}

/** `until`, by default with the deadline of the cluster. */
export function inTime<T>(
  { cluster, controller, signal }: Scene,
  expected: string,
  look: () => Promise<Observation<T>> | Observation<T>,
  deadlineMilliseconds = cluster.deadlineMilliseconds,
): Promise<T> {
  return until(expected, look, { deadlineMilliseconds, controller, signal });
}

function isReady({ metadata, status }: LiveObject, size: number): boolean {
  return (
    status?.observedGeneration === metadata.generation &&
    status?.availableReplicas === size &&
    conditionsOf(status).some((each) => each.type === 'Ready' && each.status === 'True')
  );
}

function readySentence({ status }: LiveObject): string {
  const ready = conditionsOf(status).find(({ type }) => type === 'Ready');
  return ready ? `Ready is ${ready.status}, ${ready.reason}: ${ready.message}` : 'its status is still empty';
}

function conditionsOf(status: LiveObject['status']): readonly Condition[] {
  return (status?.conditions ?? []) as readonly Condition[];
}

/** Why containers do not start: an image that cannot be pulled, for example. */
async function podTroubles(scene: Scene): Promise<string[]> {
  const pods = (await scene.cluster.kubectl.list('pods', childSelector(scene))) as Pod[];
  return pods.flatMap(({ metadata, status }) =>
    (status?.containerStatuses ?? []).flatMap(({ state }) =>
      state?.waiting
        ? `pod ${metadata.name}: ${state.waiting.reason ?? ''} ${state.waiting.message ?? ''}`
        : [],
    ),
  );
}
