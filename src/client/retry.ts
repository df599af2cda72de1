/**
 * Retry policy of client and engine, in milliseconds unless the name says otherwise. Timings that belong to one module alone,
 * such as how long a status may wait or a rendering may take, stand there.
 *
 * - `RETRY`: backoffs, by what has failed; `key` is that of a reconcile.
 * - `PAUSES`: bounds of a key's backoff for reasons that only a change elsewhere ends.
 * - `REQUEUE`: when a key is taken again for other causes; a conflict or a stale view is tried again at once, `immediateTries` times.
 * - `TRIES`: tries within one reconcile or command, without a pause.
 * - `THROTTLED`: requests of commands that the server asks to come again.
 */
import type { Wait } from './clock.js';

/** Pause that doubles with each failure in a row, and is stretched at random by up to itself. */
export interface Backoff {
  /** First pause, before it is stretched. */
  readonly initial: number;
  /** Longest pause, stretched as far as may be. */
  readonly longest: number;
}

/** Returns the pause after a failure. @param failures number of failures before this one */
export function backoffDelay({ initial, longest }: Backoff, failures: number, random: () => number): number {
  // 2 ** 1024 is Infinity, which Math.min takes care of.
  return Math.min(initial * 2 ** failures, longest / 2) * (1 + random());
}

/** Maximum number of tries, in a row, of what another try may get through. */
export const TRIES = {
  /** Write of an object that others write at the same time. */
  conflict: 10,
  /** Release of the lease. */
  release: 3,
  /** Event; beyond, it is dropped. */
  event: 12,
  /** The rest of a shared object in one pass, after the whole was a conflict. */
  shared: 3,
} as const;

/**
 * Tries again, at once, what has failed.
 * @param mayHelp reports whether another try may get through, once it has prepared it
 * @throws the error of the last try
 */
export async function retried<T>(
  tries: number,
  attempt: () => Promise<T>,
  mayHelp: (error: unknown) => boolean | Promise<boolean>,
): Promise<T> {
  for (let left = tries - 1; ; left--) {
    try {
      return await attempt();
    } catch (error) {
      if (left === 0 || !(await mayHelp(error))) throw error;
    }
  }
}

/** Tries of a request to a server that asks to come again later, and the longest pause between two. */
export interface Throttling {
  readonly tries: number;
  readonly longestPause: number;
}

export const THROTTLED = {
  command: { tries: 5, longestPause: 5_000 },
  /** Tests meet a server that has just started, and new CRDs. */
  test: { tries: 100, longestPause: 100 },
} as const satisfies Record<string, Throttling>;

/** Wait of a command for what it has asked for. */
export const COMMAND_WAIT: Wait = { interval: 200, deadline: 120_000 };

export const RETRY = {
  /** A key after a failed reconcile; 5 min are what a user waits who fixed the cause. */
  key: { initial: 5, longest: 300_000 },
  /** A failed watch or list; the numbers of client-go's reflector. */
  watch: { initial: 800, longest: 60_000 },
  /** A server that sends `Retry-After` to watches works; one that starts does so several times in a row. */
  refusedWatch: { initial: 800, longest: 5_000 },
  /** A kind that isn't served: at most half a minute, so that it is in use soon after it was installed. */
  missingKind: { initial: 800, longest: 30_000 },
  event: { initial: 500, longest: 60_000 },
} as const satisfies Record<string, Backoff>;

/** Maximum time of a `Retry-After`: a longer one counts as this. */
export const MAX_RETRY_AFTER = 60_000;
/** `Retry-After` is lengthened, since the server counts from when it answers, and spread so that clients don't return together. */
export const RETRY_AFTER_MARGIN = { least: 1.05, spread: 0.15 };

/** Bounds of the pause before references that were too much are asked for again. */
export const TOO_LARGE = { least: 60_000, most: 300_000 } as const;

/** Bounds of a key's pause after failures that need a change elsewhere and that no watch announces, by reason. */
export const PAUSES: Readonly<Record<string, { readonly least: number; readonly most: number }>> = {
  // Nothing can be created in a namespace that is being deleted, and what is in it will be gone soon.
  NamespaceTerminating: { least: 60_000, most: 300_000 },
  // No event announces that a right was granted.
  Forbidden: { least: 60_000, most: 120_000 },
  // Nor that a quota was raised.
  QuotaExceeded: { least: 60_000, most: 120_000 },
  // The Service that has the port may be in a namespace that isn't watched.
  NodePortConflict: { least: 0, most: 300_000 },
  ReferenceTooLarge: TOO_LARGE,
};

/** Pauses after which a key is taken again after a reconcile. */
export const REQUEUE = {
  /** A reconcile that takes longer is given up, and fails. */
  timeout: 120_000,
  /** Number of tries after which a stale view is a failure: usually it is current at once. */
  immediateTries: 5,
  /** A plan that asked for a time that had passed when it was made. */
  past: 1_000,
  /** A plan whose time came while it was carried out; not at once, so that a kind that always asks for one doesn't loop. */
  missed: 20,
  /** An object that was to be deleted has changed, while something else has failed. */
  changed: 1_000,
  /** A child was written, which may hide what others did just before. Usually what it leads to wakes the key earlier. */
  ownWrite: 10_000,
  /** The status of a custom resource was changed by another writer, such as an operator of another version. */
  foreignStatus: 5_000,
  /** The pace of deletions was used up. */
  paced: 1_000,
  /** At least this, where objects of a plan are refused until different times. */
  refused: 100,
  /** Number of failures in a row, by overload or without an answer, that aren't reported, unless a longer pause is asked for. */
  unreportedFailures: 3,
  unreportedPause: 5_000,
} as const;

/** Time in which a body that was refused for good isn't sent again, where nothing changes. */
export const REFUSAL_MILLISECONDS = 600_000;
/** Maximum time from a change of a Service to the release of its node ports. */
export const RELEASE_MILLISECONDS = 10_000;

/** A writer that keeps changing a field of ours: corrections of one object. */
export const CONTESTED = {
  /** Maximum number of corrections in a row without a pause. */
  freeCorrections: 5,
  /** Each further one waits, first this, then twice as long each time. */
  firstPause: 10_000,
  longestPause: 300_000,
  /** After this long without a correction, all is forgotten. */
  forget: 600_000,
} as const;

/** The API server. */
export const SERVER = {
  /** Between attempts while it is out of reach, by failures so far; the last holds for all that follow. */
  probePauses: [50, 1_000, 2_000, 5_000],
  /** Share by which these are shortened at random, so that clients don't probe together. */
  probeJitter: 0.1,
  /** Shorter than the pauses, so that a probe that hangs doesn't stretch them. */
  probeTimeout: 4_000,
  /** Number of failures in a row after which requests fail at once; a single one may be a connection that ended. */
  failuresUntilUnreachable: 3,
  /** A server that starts is ready sooner; one that isn't may lack something few requests need, such as a KMS plugin. */
  notReady: 60_000,
  /** Between a lost connection and the second attempt: until all of undici has noticed the loss. */
  secondTry: 50,
  connectTimeout: 10_000,
  /** The API server ends a request itself after 34 s, and says so. @see `requestTimeoutUpperBound` of k8s.io/apiserver */
  answerTimeout: 45_000,
  /** HTTP/2 pings; this many without a byte in return end the connection. */
  ping: 15_000,
  silentPings: 3,
} as const;

export const CREDENTIALS = {
  /** Credentials are read again after this; bound tokens on disk are rotated well before they expire. */
  lifetime: 30_000,
  /** For a credential plugin, which may wait for a login in a browser. */
  pluginTimeout: 60_000,
} as const;

export const WATCH = {
  /** Watches end by themselves after one to two of these, so that load moves to API servers that were added. */
  lifetimeSeconds: 300,
  /** The server sends a bookmark about every minute where it has one to send, so after this a watch is replaced to be sure. */
  silence: 75_000,
  /** Silence that replacing the watch hasn't ended: the process is reported as unhealthy. */
  unhealthySilence: 300_000,
  /** A server fills its cache of a type in seconds; refusals of watches meanwhile are reported after this many, half a minute. */
  initializingTries: 10,
  /** A watch that ends sooner than this without an event has failed. */
  short: 1_000,
  /** A watch that lasted for this long ends the backoff; a version that then expires is no failure of the one that follows. */
  worked: 10_000,
  /** 500, 502 and 504 for this long give up the version that was reached. */
  trouble: 30_000,
  /** Trouble after this much time without any is new trouble. */
  troubleOver: 60_000,
  /** Time after the answer in which all that a watch has missed has arrived: it is sent at once, from memory. */
  caughtUp: 1_000,
  /** A list that is older than this, up to a tenth more, is repeated when its watch ends. */
  listLifetime: 10 * 3_600_000,
  /** Time after which a list that was due and failed is repeated; the watch goes on meanwhile. */
  listAgain: 3_600_000,
  /** A server that is behind for longer was restored from a backup: API servers catch up in seconds, caches in a minute. */
  lag: 120_000,
  /** The hash in `/openapi/v3` moves within a second of a schema change (1.36); other API servers may be later. */
  schema: 10_000,
  /** An answer that holds for all who follow a type is asked for again after this. */
  askedAgain: 5_000,
  /** A kind never seen, whose CRD may not be read, counts as not installed after this. */
  neverSeen: 10_000,
} as const;

/** The lease, as in client-go: it outlasts the renew deadline, and that several attempts. */
export const LEASE = {
  durationSeconds: 15,
  renewDeadline: 10_000,
  retryPeriod: 2_000,
  /** Share by which candidates retry sooner at random; never later, or takeovers would be late. */
  jitter: 0.2,
  /** A renewal may be this late, beyond the lease's duration, before the process is unhealthy; as in controller-runtime. */
  unhealthyAfter: 20_000,
} as const;

/** Decisions on who may read metrics, kept for no longer than by controller-runtime (allowed 5 min, refused 30 s). */
export const SCRAPE_REVIEW = {
  /** A revoked token is accepted for up to this long. */
  allowed: 60_000,
  /** A request in the last 30 s of a permission has it renewed, and is answered by it. */
  ahead: 30_000,
  /** A newly granted right takes effect after up to this long. */
  refused: 30_000,
  /** Tokens, of which a scraper has one at a time. */
  remembered: 256,
  /** Maximum number of reviews of unknown tokens in a second, or under way: anyone who reaches the port can cause them. */
  unknown: 16,
  /** The same for one address. */
  unknownOfSource: 4,
  /** Prometheus gives up after 10 s. */
  timeout: 8_000,
} as const;

/** Time for what is under way when the process stops: Kubernetes kills a Pod after 30 s, and the lease is released before. */
export const DRAIN = 20_000;

/** Share of a lower lane while others are busy. */
export const LANE_SHARE = {
  /** Keys of other lanes taken in a row before one of this lane. */
  passedOver: { change: 7, child: 7, initial: 7, status: 15 },
  /** A lane isn't passed over for longer than this, where workers are slow. */
  longest: 30_000,
} as const;

/** Maximum number of requests under way that change something. */
export const MAX_WRITES = 32;
