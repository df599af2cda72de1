import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../contract/error.js';
import type { Kind, Policy } from '../contract/kind.js';
import type { Clock } from '../client/clock.js';
import type { Logger } from '../telemetry/logger.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { SharedOptions } from './options.js';
import { loadKinds } from './config.js';
import { CliError } from './output.js';

type PolicyFlags = Pick<SharedOptions, 'policy' | 'config'>;

/** Makes a policy of a text. @param name named in messages @throws CliError with exit code 2 */
type PolicyParser = (name: string, text: string) => Policy;

/** Returns a parser that knows the sections of every kind, also of those that `--kinds` leaves out. */
export async function policyParser({ config }: PolicyFlags): Promise<PolicyParser> {
  // Loaded here, so that a controller without a policy needs no validator.
  const { parsePolicy } = await import('./policy.js');
  const kinds = await loadKinds({ config });
  return (name, text) => parsePolicy(name, text, kinds);
}

/** Reads the policy that `--policy` names, if it does. @throws CliError with exit code 2 */
export async function policyOf(flags: PolicyFlags): Promise<Policy | undefined> {
  const { policy: file } = flags;
  if (file === undefined) return undefined;
  return (await policyParser(flags))(file, await readPolicy(file));
}

/** @throws CliError with exit code 2 */
export async function readPolicy(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: unknown) => {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const why = missing ? 'there is no such file' : `can't be read: ${messageOf(error)}`;
    throw new CliError(`${file}: ${why}; check the path given to --policy`);
  });
}

interface FollowedPolicyProps {
  readonly file: string;
  readonly read: () => Promise<string>;
  readonly parse: PolicyParser;
  /** Kinds that run: sections of others don't matter. */
  readonly kinds: readonly Pick<Kind, 'name' | 'policyAtStart'>[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

interface PolicyFollower {
  /** Throws if the kinds can't work with a policy that is valid by their schemas. */
  check(policy: Policy): void;
  /** Called with the kinds whose section differs, once a new policy is in force. */
  changed(kinds: readonly string[]): void;
}

/** Interval between polls; a kubelet takes about a minute to update a mounted ConfigMap. */
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
  current: Policy;
  /** Digests of the policy in force, of the last content that was read, and of the last that was acted upon. */
  digest: string;
  private seen: string;
  private settled: string;

  private constructor(
    private readonly props: FollowedPolicyProps,
    text: string,
  ) {
    this.current = props.parse(props.file, text);
    this.digest = this.seen = this.settled = digestOf(text);
  }

  static async open(props: FollowedPolicyProps): Promise<FollowedPolicy> {
    return new FollowedPolicy(props, await props.read());
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
    const { file, read, parse, log, metrics } = this.props;
    const found = await read().catch((error: unknown) => ({ error }));
    const digest = digestOf(typeof found === 'string' ? found : `error ${messageOf(found.error)}`);
    const isStable = digest === this.seen;
    this.seen = digest;
    if (!isStable || digest === this.settled) return;
    this.settled = digest;
    try {
      if (typeof found !== 'string') throw found.error;
      const policy = parse(file, found);
      follower.check(policy);
      this.put(policy, digest, follower);
    } catch (error) {
      metrics.policyChanges.inc({ outcome: 'refused' });
      metrics.policyRefused.set(1);
      const errors = error instanceof CliError ? error.lines : [messageOf(error)];
      log.error(
        { policy: file, digest, inForce: this.digest, errors },
        'changed policy refused, keeping the previous one',
      );
    }
  }

  private put(policy: Policy, digest: string, follower: PolicyFollower): void {
    const { file, kinds, log, metrics } = this.props;
    const changed = kinds.filter(({ name }) => !isDeepStrictEqual(this.current[name], policy[name]));
    const [waiting = [], followed = []] = [true, false].map((atStart) =>
      changed
        .filter(({ policyAtStart = false }) => policyAtStart === atStart)
        .map(({ name }) => name)
        .sort(),
    );
    const kept = kinds.filter(({ policyAtStart }) => policyAtStart);
    this.current = { ...policy, ...Object.fromEntries(kept.map(({ name }) => [name, this.current[name]])) };
    this.digest = digest;
    const isAll = waiting.length === 0;
    metrics.policyChanges.inc({ outcome: isAll ? 'in_force' : 'needs_restart' });
    metrics.policyRefused.set(0);
    metrics.policyNeedsRestart.set(isAll ? 0 : 1);
    if (isAll || followed.length > 0)
      log.info({ policy: file, digest, kinds: followed }, 'policy changed and is in force');
    if (!isAll)
      log.warn(
        { policy: file, digest, kinds: waiting },
        'policy of these kinds changed and needs a restart, keeping the one of the start',
      );
    if (followed.length > 0) follower.changed(followed);
  }
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
