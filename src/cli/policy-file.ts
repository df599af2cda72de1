import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../contract/error.js';
import type { Kind, Policy } from '../contract/kind.js';
import type { Clock } from '../engine/clock.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { loadKinds } from './config.js';
import { CliError } from './exit.js';

interface PolicyFlags {
  readonly policy?: string;
  readonly config?: string;
}

export interface PolicyFile {
  /** As it was given, for messages. */
  readonly name: string;
  /** @throws CliError if it can't be read */
  read(): Promise<string>;
  /** @throws CliError if the text is no policy */
  parse(text: string): Policy;
}

/**
 * Reads the policy that `--policy` names, if it does. It may have sections for every known kind, also for those that
 * `--kinds` leaves out.
 * @throws CliError with exit code 2
 */
export async function policyOf(flags: PolicyFlags, builtIn: readonly Kind[]): Promise<Policy | undefined> {
  const file = await policyFileOf(flags, builtIn);
  return file?.parse(await file.read());
}

/** Returns the file that `--policy` names, if it does; it isn't read yet. */
export async function policyFileOf(
  { policy: name, config }: PolicyFlags,
  builtIn: readonly Kind[],
): Promise<PolicyFile | undefined> {
  if (name === undefined) return undefined;
  // Loaded here, so that a command without a policy needs no validator.
  const { parsePolicy, readPolicy } = await import('./policy.js');
  const kinds = await loadKinds({ builtIn, ...(config !== undefined && { config }) });
  return { name, read: () => readPolicy(name), parse: (text) => parsePolicy(name, text, kinds) };
}

/** Returns a parser of policies that are in the cluster; see `parsePolicy`. */
export function policyParser(
  { config }: Pick<PolicyFlags, 'config'>,
  builtIn: readonly Kind[],
): (name: string, text: string) => Promise<Policy> {
  return async (name, text) => {
    const { parsePolicy } = await import('./policy.js');
    return parsePolicy(name, text, await loadKinds({ builtIn, ...(config !== undefined && { config }) }));
  };
}

export interface FollowedPolicyProps {
  readonly file: PolicyFile;
  /** Kinds that run: sections of others don't matter. */
  readonly kinds: readonly Pick<Kind, 'name' | 'policyAtStart'>[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

export interface PolicyFollower {
  /** Throws if the kinds can't work with a policy that is valid by their schemas. */
  check(policy: Policy): void;
  /** Called with the kinds whose section differs, once a new policy is in force. */
  changed(kinds: readonly string[]): void;
}

/** The text of the file, or why there is none. */
type Found = { readonly text: string } | { readonly error: unknown };

/** Much less than a kubelet needs to bring a changed ConfigMap into a Pod. */
const POLL_MILLISECONDS = 2_000;

/**
 * The policy in force: the file's last valid content. The content is polled: a ConfigMap in a Pod changes by another link
 * to another folder, which no watch of a file sees.
 *
 * **Guarantees.** There always is a policy. An invalid one, or a file that is gone, changes nothing, is logged once, and
 * counts as refused until the file is valid again. Kinds with `policyAtStart` keep the section of the start; another one
 * waits for a restart.
 *
 * **Caveats.** A change counts once two polls have found the same, so that a file that is being written isn't taken for
 * complete.
 */
export class FollowedPolicy {
  private inForce: Policy;
  private digestInForce: string;
  /** Digests of the last content that was read, and that was acted upon. */
  private seen: string;
  private settled: string;

  private constructor(
    private readonly props: FollowedPolicyProps,
    text: string,
  ) {
    this.inForce = props.file.parse(text);
    this.digestInForce = this.seen = this.settled = digestOf({ text });
  }

  /** @throws CliError if the first policy is invalid */
  static async open(props: FollowedPolicyProps): Promise<FollowedPolicy> {
    return new FollowedPolicy(props, await props.file.read());
  }

  get current(): Policy {
    return this.inForce;
  }

  /** Identifies the text, in logs. */
  get digest(): string {
    return this.digestInForce;
  }

  /** Polls the file until the signal aborts; this doesn't keep the process alive. */
  follow(signal: AbortSignal, follower: PolicyFollower): void {
    this.props.clock.setTimer(POLL_MILLISECONDS, () => {
      if (signal.aborted) return;
      void this.poll(follower).finally(() => {
        this.follow(signal, follower);
      });
    });
  }

  private async poll(follower: PolicyFollower): Promise<void> {
    const { file } = this.props;
    const found = await file.read().then(
      (text): Found => ({ text }),
      (error: unknown): Found => ({ error }),
    );
    const digest = digestOf(found);
    const isStable = digest === this.seen;
    this.seen = digest;
    if (!isStable || digest === this.settled) return;
    this.settled = digest;
    let policy: Policy;
    try {
      if ('error' in found) throw found.error;
      policy = file.parse(found.text);
      follower.check(policy);
    } catch (error) {
      this.refuse(error, digest);
      return;
    }
    this.put(policy, digest, follower);
  }

  private put(policy: Policy, digest: string, follower: PolicyFollower): void {
    const { file, kinds, log, metrics } = this.props;
    const atStart = kinds.filter(({ policyAtStart }) => policyAtStart).map(({ name }) => name);
    const differing = new Set(
      kinds.map(({ name }) => name).filter((name) => !isDeepStrictEqual(this.inForce[name], policy[name])),
    );
    const waiting = atStart.filter((name) => differing.delete(name)).sort();
    const followed = [...differing].sort();
    this.inForce = {
      ...policy,
      ...Object.fromEntries(atStart.map((name) => [name, this.inForce[name]])),
    };
    this.digestInForce = digest;
    const isAll = waiting.length === 0;
    metrics.policyChanges.inc({ outcome: isAll ? 'in_force' : 'needs_restart' });
    metrics.policyRefused.set(0);
    metrics.policyNeedsRestart.set(isAll ? 0 : 1);
    if (isAll || followed.length > 0)
      log.info({ policy: file.name, digest, kinds: followed }, 'The policy has changed, and is in force');
    if (!isAll)
      log.warn(
        { policy: file.name, digest, kinds: waiting },
        'The policy of these kinds has changed, and needs a restart: that of the start stays in force',
      );
    if (followed.length > 0) follower.changed(followed);
  }

  private refuse(error: unknown, digest: string): void {
    const { file, log, metrics } = this.props;
    metrics.policyChanges.inc({ outcome: 'refused' });
    metrics.policyRefused.set(1);
    const errors = error instanceof CliError ? error.lines : [messageOf(error)];
    log.error(
      { policy: file.name, digest, inForce: this.digest, errors },
      'The policy has changed, and is refused: the one before stays in force',
    );
  }
}

function digestOf(found: Found): string {
  const what = 'text' in found ? `text ${found.text}` : `error ${messageOf(found.error)}`;
  return createHash('sha256').update(what).digest('hex').slice(0, 12);
}
