import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../contract/error.js';
import type { Kind, Policy } from '../contract/kind.js';
import type { Clock } from '../engine/clock.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import { CliError } from './exit.js';

/** A file with a policy. */
export interface PolicyFile {
  /** As it was given, for messages. */
  readonly name: string;
  /** @throws CliError if it can't be read */
  read(): Promise<string>;
  /** @throws CliError if the text is no policy */
  parse(text: string): Policy;
}

export interface FollowedPolicyProps {
  readonly file: PolicyFile;
  /** Those that run: of no other does it matter what the policy says. */
  readonly kinds: readonly Pick<Kind, 'name' | 'policyAtStart'>[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Who works by the policy. */
export interface PolicyFollower {
  /** Throws if the kinds can't work with a policy, be it right by their schemas. */
  check(policy: Policy): void;
  /** Is told, once a new policy is in force, the kinds of which it says something else than before. */
  changed(kinds: readonly string[]): void;
}

/** What a look at the file has found: its text, or why there is none. */
type Found = { readonly text: string } | { readonly error: unknown };

/** As long as it takes a kubelet to bring a changed ConfigMap into a Pod, this is nothing. */
const LOOK_MILLISECONDS = 2_000;

/**
 * The policy in force: what its file said when it was last right. The file is looked at every two seconds, by its
 * content: a ConfigMap in a Pod is changed by another link to another folder, of which no watch of a file tells.
 *
 * **Guarantees.** There always is a policy. What can't be one, or can't work, changes nothing, is told once, and counts
 * as refused until the file is right again; a file that has gone is no exception. Only what is followed is told to be
 * in force: of kinds with `policyAtStart` the section of the start stays, and what differs from it waits for a restart.
 *
 * **Caveats.** A change is taken up once two looks have found the same, so that half of what somebody is just writing
 * isn't taken for the whole.
 */
export class FollowedPolicy {
  private inForce: Policy;
  private digestInForce: string;
  /** What was found last, and what was last acted upon, by their digests. */
  private seen: string;
  private settled: string;

  private constructor(
    private readonly props: FollowedPolicyProps,
    text: string,
  ) {
    this.inForce = props.file.parse(text);
    this.digestInForce = this.seen = this.settled = digestOf({ text });
  }

  /** @throws CliError if there is no policy to begin with */
  static async open(props: FollowedPolicyProps): Promise<FollowedPolicy> {
    return new FollowedPolicy(props, await props.file.read());
  }

  get current(): Policy {
    return this.inForce;
  }

  /** Tells texts apart, in logs. */
  get digest(): string {
    return this.digestInForce;
  }

  /** Looks at the file from now on, until the signal aborts; this doesn't keep the process alive. */
  follow(signal: AbortSignal, follower: PolicyFollower): void {
    this.props.clock.setTimer(LOOK_MILLISECONDS, () => {
      if (signal.aborted) return;
      void this.look(follower).finally(() => {
        this.follow(signal, follower);
      });
    });
  }

  private async look(follower: PolicyFollower): Promise<void> {
    const found = await this.find();
    const digest = digestOf(found);
    const isStable = digest === this.seen;
    this.seen = digest;
    if (!isStable || digest === this.settled) return;
    this.settled = digest;
    const policy = this.parse(found, follower);
    if ('error' in policy) this.refuse(policy.error, digest);
    else this.put(policy.parsed, digest, follower);
  }

  private parse(
    found: Found,
    follower: PolicyFollower,
  ): { readonly parsed: Policy } | { readonly error: unknown } {
    if ('error' in found) return found;
    try {
      const parsed = this.props.file.parse(found.text);
      follower.check(parsed);
      return { parsed };
    } catch (error) {
      return { error };
    }
  }

  private async find(): Promise<Found> {
    try {
      return { text: await this.props.file.read() };
    } catch (error) {
      return { error };
    }
  }

  private put(policy: Policy, digest: string, follower: PolicyFollower): void {
    const { file, log, metrics } = this.props;
    const { followed, waiting } = this.differing(policy);
    this.inForce = { ...policy, ...this.sectionsOfStart() };
    this.digestInForce = digest;
    const isAll = waiting.length === 0;
    metrics.policyChanges.inc({ outcome: isAll ? 'in_force' : 'needs_restart' });
    metrics.policyRefused.set(0);
    metrics.policyNeedsRestart.set(isAll ? 0 : 1);
    if (isAll || followed.length > 0) {
      log.info({ policy: file.name, digest, kinds: followed }, 'The policy has changed, and is in force');
    }
    if (!isAll) {
      log.warn(
        { policy: file.name, digest, kinds: waiting },
        'The policy of these kinds has changed, and needs a restart: that of the start stays in force',
      );
    }
    if (followed.length > 0) follower.changed(followed);
  }

  /** The kinds of which a policy says something else than the one in force, by what becomes of it. */
  private differing(policy: Policy): { readonly followed: string[]; readonly waiting: string[] } {
    const kinds = this.props.kinds.filter(({ name }) => !isDeepStrictEqual(this.inForce[name], policy[name]));
    const names = (some: typeof kinds): string[] => [...new Set(some.map(({ name }) => name))].sort();
    return {
      followed: names(kinds.filter(({ policyAtStart }) => !policyAtStart)),
      waiting: names(kinds.filter(({ policyAtStart }) => policyAtStart)),
    };
  }

  private sectionsOfStart(): Policy {
    const names = this.props.kinds.filter(({ policyAtStart }) => policyAtStart).map(({ name }) => name);
    return Object.fromEntries(names.map((name) => [name, this.inForce[name]]));
  }

  private refuse(error: unknown, digest: string): void {
    const { file, log, metrics } = this.props;
    metrics.policyChanges.inc({ outcome: 'refused' });
    metrics.policyRefused.set(1);
    log.error(
      { policy: file.name, digest, inForce: this.digest, errors: linesOf(error) },
      'The policy has changed, and is refused: the one before stays in force',
    );
  }
}

function digestOf(found: Found): string {
  const what = 'text' in found ? `text ${found.text}` : `error ${messageOf(found.error)}`;
  return createHash('sha256').update(what).digest('hex').slice(0, 12);
}

function linesOf(error: unknown): readonly string[] {
  return error instanceof CliError ? error.lines : [messageOf(error)];
}
