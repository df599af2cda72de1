import type { V1ContainerState, V1ContainerStatus, V1Pod } from '@kubernetes/client-node';
import type { Readiness } from '../contract/conditions.js';
import type { CustomResourceDefinition } from '../contract/crd.js';
import type { RelatedTypeProps } from './status.js';
import type { Wire } from './kubernetes-types.js';
import { selectorLabels, type NamedKind } from '../contract/names.js';
import { compare, controllerOf, type AnyObject } from '../contract/object.js';
import { REASON, statusOf } from '../values/readiness.js';

/** Projection of a pod that is in trouble, or may be, beside its identity. */
export interface KeptPod {
  readonly trouble?: PodTrouble;
  /** Without a trouble: since when its node has been preparing it for its containers. RFC 3339. */
  readonly startingSince?: string;
  /** Name of what controls it, as a ReplicaSet. @default - none */
  readonly controller?: string;
}

/** Reason why a pod doesn't run, in words that don't change from one try to the next. */
export interface PodTrouble {
  /** The waiting container's own reason, `Unschedulable` or `ImageRunsAsRoot`. */
  readonly reason: string;
  readonly message: string;
}

/**
 * Returns what `related` of `defineKind` takes for the Pods of its workloads, by the label that `selectorLabels` gives their
 * templates. Where no status function returns a `readiness`, the conditions then say what keeps Pods from running, as
 * `ImagePullBackOff`. Of Pods that run, nothing is kept.
 *
 * @param own with a `keep`, what that returns is kept too, but for `trouble`, `startingSince` and `controller`
 *
 * @example
 * ```ts
 * defineKind({ crd, construct, children, related: [podsOf(crd)] });
 * ```
 */
export function podsOf(
  kind: NamedKind | CustomResourceDefinition,
  own: Partial<Pick<RelatedTypeProps, 'keep'>> = {},
): RelatedTypeProps {
  const [label = ''] = Object.keys(selectorLabels(kind, ''));
  const keep: RelatedTypeProps['keep'] = (pod) => {
    const [more, kept] = [own.keep?.(pod), keepPod(pod)];
    const { trouble, startingSince, controller, ...others } = more ?? {};
    return (more ?? kept) && { ...others, ...kept };
  };
  keepsTroubles.add(keep);
  return {
    ...{ apiVersion: 'v1', kind: 'Pod', selector: label, keep },
    nameOf: ({ metadata }) => metadata.labels?.[label],
  };
}

/** The `keep` of each list that `podsOf` has made: by it, an adapter knows that their troubles are kept. */
export const keepsTroubles = new WeakSet<RelatedTypeProps['keep']>();

/** Keeps nothing of a pod that runs, or whose containers are about to. */
export function keepPod(pod: AnyObject): (KeptPod & Readonly<Record<string, unknown>>) | undefined {
  const trouble = podTrouble(pod);
  const since = trouble ? undefined : startingSince(pod);
  if (!trouble && since === undefined) return undefined;
  const controller = controllerOf(pod)?.name;
  return {
    ...(trouble && { trouble }),
    ...(since !== undefined && { startingSince: since }),
    ...(controller !== undefined && { controller }),
  };
}

/** Maximum number of troubles in a message: more make it no better. */
export const MAX_TROUBLES = 3;

/**
 * Returns the readiness of workloads with what keeps their Pods from running. It never makes them unready.
 * @param pods as `podsOf` keeps them
 */
export function withTroubles(
  readiness: Readiness,
  workloads: readonly AnyObject[],
  pods: readonly AnyObject[],
): Readiness {
  if (readiness.phase === 'ready') return readiness;
  const present = podsOfPresentSpec(workloads, pods);
  const troubles = worstFirst(present.flatMap(({ trouble }) => trouble ?? [])).slice(0, MAX_TROUBLES);
  const [worst] = troubles;
  if (!worst) return readiness;
  const message = [readiness.message, ...troubles.map((trouble) => trouble.message)].join('; ');
  return readiness.phase === 'stalled'
    ? { ...readiness, message }
    : { phase: 'failing', reason: worst.reason, message };
}

/**
 * Returns the Pods of workloads alone: anyone who may create Pods may give them the label. Those of an earlier spec are left
 * out: they are on their way out, so their troubles are over.
 * @param pods as `podsOf` keeps them
 */
export function podsOfPresentSpec(
  workloads: readonly AnyObject[],
  pods: readonly AnyObject[],
): readonly KeptPod[] {
  return (pods as readonly KeptPod[]).filter(
    (pod) => workloads.some((one) => isPodOf(pod, one)) && !workloads.some((one) => isOutdated(pod, one)),
  );
}

/**
 * Reports whether a workload, or what it has made, controls a Pod, by the name: ReplicaSets and Jobs have that of their maker
 * before theirs. Where a reference names what doesn't exist, the garbage collector deletes the Pod.
 */
function isPodOf({ controller, ...pod }: KeptPod, { metadata: { name, uid } }: AnyObject): boolean {
  if (controller === undefined) return uid !== undefined && (pod as Partial<AnyObject>).metadata?.uid === uid;
  return controller === name || controller.startsWith(`${name}-`);
}

/**
 * Reports whether a Pod is of an earlier spec of this Deployment, which names its present ReplicaSet nowhere but in a message,
 * as in `ReplicaSet "web-5d8f" is progressing.`; none is where the message is of another form.
 * @see https://github.com/kubernetes/kubernetes/blob/master/pkg/controller/deployment/progress.go
 */
function isOutdated({ controller }: KeptPod, workload: AnyObject): boolean {
  if (workload.kind !== 'Deployment') return false;
  const { message = '' } = statusOf(workload).conditions.find(({ type }) => type === 'Progressing') ?? {};
  const [, present] = /replica ?set "([^"]+)"/i.exec(message) ?? [];
  const isIts = controller?.slice(0, controller.lastIndexOf('-')) === workload.metadata.name;
  return isIts && present !== undefined && controller !== present;
}

type Pod = Pick<Wire<V1Pod>, 'status'> & AnyObject;

/** Reasons that need an edit come before those that may pass. Any other waiting reason is between the last two. */
const WORST_FIRST: readonly string[] = [
  'ImageRunsAsRoot',
  'InvalidImageName',
  'ErrImageNeverPull',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
  'ImagePullBackOff',
  'CrashLoopBackOff',
];

/** Containers wait for these reasons in any pod that starts. */
const NO_TROUBLE: ReadonlySet<string> = new Set(['ContainerCreating', 'PodInitializing']);

/** A pull that fails is called so while it is tried; in the pauses between the tries it is `ImagePullBackOff`. */
const PULL_FAILURES: ReadonlySet<string> = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'RegistryUnavailable',
  'SignatureValidationFailed',
]);

/** Returns the worst of what keeps a pod from running; nothing for one that runs, starts, is going or has ended. */
export function podTrouble(pod: Pod): PodTrouble | undefined {
  const { status, metadata } = pod;
  if (!status || isOver(pod)) return undefined;
  const containers = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  const troubles = containers.flatMap((container) => containerTrouble(container, metadata.name) ?? []);
  const scheduled = status.conditions?.find(({ type }) => type === 'PodScheduled');
  if (scheduled?.status === 'False' && scheduled.reason === 'Unschedulable') {
    const why = steadyUnschedulable(scheduled.message ?? '', metadata.name);
    troubles.push({ reason: 'Unschedulable', message: `no node takes the pod${colon(why)}` });
  }
  return worstFirst(troubles)[0];
}

/**
 * Returns since when a node has been preparing the pod: its volumes are mounted, then its sandbox and its network are made.
 * Until that is done, events alone say why it takes its time, and its containers are `ContainerCreating`. Nothing
 * for a pod that is prepared, or on no node yet.
 * @see https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-has-network
 */
function startingSince(pod: Pod): string | undefined {
  if (isOver(pod)) return undefined;
  const prepared = pod.status?.conditions?.find(({ type }) => type === 'PodReadyToStartContainers');
  return prepared?.status === 'False' ? prepared.lastTransitionTime : undefined;
}

function isOver({ metadata, status }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined || ['Succeeded', 'Failed'].includes(status?.phase ?? '');
}

/** Returns one of each reason, the worst first, the same whatever the order of the troubles. */
export function worstFirst(troubles: readonly PodTrouble[]): PodTrouble[] {
  const found = new Map<string, PodTrouble>();
  for (const trouble of [...troubles].sort((a, b) => compare(a.message, b.message)))
    if (!found.has(trouble.reason)) found.set(trouble.reason, trouble);
  return [...found.values()].sort((a, b) => rank(a) - rank(b) || compare(a.reason, b.reason));
}

function rank({ reason }: PodTrouble): number {
  if (reason === 'Unschedulable') return WORST_FIRST.length + 1;
  const index = WORST_FIRST.indexOf(reason);
  return index < 0 ? WORST_FIRST.length : index;
}

function containerTrouble(
  { name, image, state, lastState }: Wire<V1ContainerStatus>,
  podName: string,
): PodTrouble | undefined {
  const { reason: waiting, message: text = '' } = state?.waiting ?? {};
  if (!waiting || NO_TROUBLE.has(waiting)) return undefined;
  const message = steady(text, podName);
  const container = `container "${name}"`;
  if (PULL_FAILURES.has(waiting)) {
    // A kubelet puts this before the failure of the last try during a pause, or in its place.
    const cause = message.replace(/^Back-off pulling image "[^"]*"(?:: )?(?:\w+: )?/, '');
    const what = `image "${image}" of ${container} can't be pulled`;
    return { reason: 'ImagePullBackOff', message: what + colon(cause) };
  }
  // A container that has run before comes back to this state between two pauses of its crash loop.
  const ended = lastState?.terminated;
  if (waiting === 'CrashLoopBackOff' || (waiting === 'RunContainerError' && ended))
    return { reason: 'CrashLoopBackOff', message: `${container} ${crash(ended, podName)}` };
  if (message.startsWith('container has runAsNonRoot and image will run as root'))
    return {
      reason: 'ImageRunsAsRoot',
      message: `the image of ${container} runs as root, and runAsNonRoot is set`,
    };
  const reason = REASON.test(waiting) ? waiting : 'ContainerWaiting';
  return { reason, message: `${container} can't be started (${reason})${colon(message)}` };
}

function crash(ended: Wire<V1ContainerState>['terminated'], podName: string): string {
  if (!ended) return 'ends again and again';
  const { exitCode, reason, message = '' } = ended;
  // The runtime's words for a container that never began; then its message is worth more than the code.
  if (reason === 'StartError' || reason === 'ContainerCannotRun')
    return `can't be started${colon(steady(message, podName))}`;
  return `ends again and again, last with exit code ${exitCode}${reason ? ` (${reason})` : ''}`;
}

function colon(detail: string): string {
  return detail && `: ${detail}`;
}

/** Maximum number of characters that are read of a message. A kubelet cuts those of containers at this length; those of registries have no limit. */
const MAX_READ = 4096;
/** Maximum number of characters that are kept of a message: there is one for each pod in trouble. */
const MAX_LENGTH = 500;

const PASSING: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  // As in `(pod: "web-5d8f-x2x7q_shop(0b9f...)", container: web)` and `pod=web-5d8f-x2x7q_shop(0b9f...)`.
  [/ ?\(pod: "[^"]*", container: [^()]*\)/g, ''],
  [/ ?\bpod=[^\s(]+\([^()]*\)/g, ''],
  [/\bback-off [\dhms.]+ /g, 'back-off '],
  // The near end of a connection has another port each time.
  [/(?:(?<!\d)\d{1,3}(?:\.\d{1,3}){3}|\[[\da-f:]{2,45}\]):\d{1,5}->/gi, ''],
  // A signature or a time may follow the question mark.
  [/(https?:\/\/[^\s"'?]+)\?[^\s"']*/g, '$1'],
  [/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/gi, '*'],
  // The id of a container, but not the digest of an image.
  [/(?<![\da-f:])[\da-f]{64}(?![\da-f])/g, '*'],
];

/**
 * Returns a message of a kubelet without what differs from pod to pod and from one try to the next: names of pods, UIDs,
 * pauses, ports. A status that holds it is written once instead of each time.
 */
export function steady(message: string, podName: string): string {
  const text = PASSING.reduce(
    (rest, [pattern, replacement]) => rest.replace(pattern, replacement),
    message.slice(0, MAX_READ).replaceAll(podName, '*'),
  ).trim();
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}...` : text;
}

/**
 * Returns why no node takes a pod, without the numbers of nodes, which change with the cluster and not with the pod: of
 * `0/5 nodes are available: 2 Insufficient cpu, 3 Insufficient memory. preemption: ...` the two causes.
 */
export function steadyUnschedulable(message: string, podName: string): string {
  const [, list] =
    /^\d+\/\d+ nodes are available: (.*?)(?:\. .*|\.)?$/s.exec(message.slice(0, MAX_READ)) ?? [];
  if (!list) return steady(message, podName);
  const causes = list.split(/, (?=\d+ )/).map((cause) => steady(cause.replace(/^\d+ /, ''), podName));
  return [...new Set(causes)].sort().join(', ');
}
