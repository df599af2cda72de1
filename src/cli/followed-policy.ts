import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../contract/error.js';
import type { Policy } from '../contract/kind.js';
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
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** What a look at the file has found: its text, or why there is none. */
type Found = { readonly text: string } | { readonly error: unknown };

/** As long as it takes a kubelet to bring a changed ConfigMap into a Pod, this is nothing. */
const LOOK_MILLISECONDS = 2_000;

/**
 * The policy in force: what its file said when it was last right. The file is looked at every two seconds, by its
 * content: a ConfigMap in a Pod is changed by another link to another folder, of which no watch of a file tells.
 *
 * **Guarantees.** There always is a policy. What can't be one changes nothing, is told once, and counts as refused
 * until the file is right again; a file that has gone is no exception.
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

  /**
   * Looks at the file from now on, until the signal aborts; this doesn't keep the process alive.
   * @param onChange is told, once the new policy is in force, the kinds of which it says something else than before
   */
  follow(signal: AbortSignal, onChange: (kinds: readonly string[]) => void): void {
    this.props.clock.setTimer(LOOK_MILLISECONDS, () => {
      if (signal.aborted) return;
      void this.look(onChange).finally(() => {
        this.follow(signal, onChange);
      });
    });
  }

  private async look(onChange: (kinds: readonly string[]) => void): Promise<void> {
    const found = await this.find();
    const digest = digestOf(found);
    const isStable = digest === this.seen;
    this.seen = digest;
    if (!isStable || digest === this.settled) return;
    this.settled = digest;
    const policy = this.parse(found);
    if ('error' in policy) this.refuse(policy.error, digest);
    else this.put(policy.parsed, digest, onChange);
  }

  private parse(found: Found): { readonly parsed: Policy } | { readonly error: unknown } {
    if ('error' in found) return found;
    try {
      return { parsed: this.props.file.parse(found.text) };
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

  private put(policy: Policy, digest: string, onChange: (kinds: readonly string[]) => void): void {
    const { file, log, metrics } = this.props;
    const kinds = differing(this.inForce, policy);
    this.inForce = policy;
    this.digestInForce = digest;
    metrics.policyChanges.inc({ outcome: 'in_force' });
    metrics.policyRefused.set(0);
    log.info({ policy: file.name, digest, kinds }, 'The policy has changed, and is in force');
    if (kinds.length > 0) onChange(kinds);
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

/** The kinds of which two policies say something else. */
function differing(a: Policy, b: Policy): string[] {
  const kinds = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...kinds].filter((kind) => !isDeepStrictEqual(a[kind], b[kind])).sort();
}

function digestOf(found: Found): string {
  const what = 'text' in found ? `text ${found.text}` : `error ${messageOf(found.error)}`;
  return createHash('sha256').update(what).digest('hex').slice(0, 12);
}

function linesOf(error: unknown): readonly string[] {
  return error instanceof CliError ? error.lines : [messageOf(error)];
}
