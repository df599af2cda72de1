export interface BackoffProps {
  readonly initialMilliseconds: number;
  readonly maxMilliseconds: number;
  /** The delay is stretched by a random share of itself, from none to this: 1 is up to twice as long. */
  readonly jitter: number;
}

/** `initial × 2^failures`, bounded and jittered; `failures` counts from 0. */
export function backoffDelay(props: BackoffProps, failures: number, random: () => number): number {
  // 2 ** 1024 is Infinity, which Math.min takes care of.
  const delay = Math.min(props.initialMilliseconds * 2 ** failures, props.maxMilliseconds);
  return delay * (1 + random() * props.jitter);
}
