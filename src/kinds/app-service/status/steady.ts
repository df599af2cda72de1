/** What is read of a message. A kubelet cuts those of containers at the same length; those of registries have no limit. */
const READ_LIMIT = 4096;
/** Longer ones are cut: what is kept of a pod is kept for each pod in trouble. */
const LENGTH_LIMIT = 500;

const PASSING: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  // As in `(pod: "web-5d8f-x2x7q_shop(0b9f...)", container: web)` and `pod=web-5d8f-x2x7q_shop(0b9f...)`.
  [/ ?\(pod: "[^"]*", container: [^()]*\)/g, ''],
  [/ ?\bpod=[^\s(]+\([^()]*\)/g, ''],
  [/\bback-off [\dhms.]+ /g, 'back-off '],
  // The near end of a connection has another port each time.
  [/(?:(?<!\d)\d{1,3}(?:\.\d{1,3}){3}|\[[\da-f:]{2,45}\]):\d{1,5}->/gi, ''],
  // What follows the question mark may be a signature or a time.
  [/(https?:\/\/[^\s"'?]+)\?[^\s"']*/g, '$1'],
  [/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/gi, '*'],
  // The id of a container, but not the digest of an image.
  [/(?<![\da-f:])[\da-f]{64}(?![\da-f])/g, '*'],
];

/**
 * A message of a kubelet without what differs from pod to pod and from one try to the next: names of pods, UIDs,
 * pauses, ports. A status that holds it is written once instead of each time.
 */
export function steady(message: string, podName: string): string {
  const text = PASSING.reduce(
    (rest, [pattern, replacement]) => rest.replace(pattern, replacement),
    message.slice(0, READ_LIMIT).replaceAll(podName, '*'),
  ).trim();
  return text.length > LENGTH_LIMIT ? `${text.slice(0, LENGTH_LIMIT)}...` : text;
}

/**
 * Why no node takes a pod, without the numbers of nodes, which change with the cluster and not with the pod: of
 * `0/5 nodes are available: 2 Insufficient cpu, 3 Insufficient memory. preemption: ...` the two causes.
 */
export function steadyUnschedulable(message: string, podName: string): string {
  const [, list] =
    /^\d+\/\d+ nodes are available: (.*?)(?:\. .*|\.)?$/s.exec(message.slice(0, READ_LIMIT)) ?? [];
  if (!list) return steady(message, podName);
  const causes = list.split(/, (?=\d+ )/).map((cause) => steady(cause.replace(/^\d+ /, ''), podName));
  return [...new Set(causes)].sort().join(', ');
}
