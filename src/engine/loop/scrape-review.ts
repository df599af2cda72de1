import { createHash } from 'node:crypto';
import { messageOf } from '../../contract/error.js';
import type { Logger } from '../../telemetry/logger.js';
import type { Api } from '../../client/api.js';
import type { Clock } from '../../client/clock.js';
import { SCRAPE_REVIEW } from '../../client/retry.js';

export interface ScrapeReviewProps {
  readonly api: Pick<Api, 'review'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Status and text of the answer to a request that is refused. */
export interface Refusal {
  readonly status: 401 | 403 | 500 | 503;
  readonly body: string;
}

/** Status of a TokenReview, as far as it is read here. */
interface TokenReviewStatus {
  readonly authenticated?: boolean;
  readonly user?: {
    readonly username?: string;
    readonly uid?: string;
    readonly groups?: readonly string[];
    readonly extra?: Readonly<Record<string, readonly string[]>>;
  };
}

/** A refusal, or none, and until when it holds by the monotonic clock. */
interface Decision {
  readonly refusal: Promise<Refusal | undefined>;
  /** Never past while it is being made. */
  until: number;
  /** Whether the token is known as one that was permitted. */
  isPermitted: boolean;
  /** Review that is under way to replace a permission. */
  renewal?: Promise<Refusal | undefined> | undefined;
}

/** Review of an unknown token, which counts for a second, and as long as it takes. */
interface Counted {
  readonly source: string;
  until: number;
}

const UNAUTHORIZED: Refusal = { status: 401, body: 'Unauthorized\n' };
const FORBIDDEN: Refusal = { status: 403, body: 'Forbidden\n' };
const UNDECIDED: Refusal = { status: 500, body: 'Authorization failed\n' };
const BUSY: Refusal = { status: 503, body: 'Too many authorizations in progress\n' };

/**
 * Has the API server decide who may read a path of this process: a TokenReview of the bearer token, then a
 * SubjectAccessReview of its user for `get` on the path.
 *
 * **Guarantees.** Requests are refused when the API server doesn't answer. It is asked only when a request comes. A decision is
 * cached by token for a while, and concurrent requests with one token share a decision. Reviews of unknown tokens are bounded,
 * together and for each source. A token that was permitted is reviewed beyond that, and ahead of the end of its decision;
 * refusals are evicted before permissions. So unknown tokens don't keep a scraper out. Tokens are kept as hashes.
 *
 * @see https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/metrics/filters
 */
export class ScrapeReview {
  private readonly decisions = new Map<string, Decision>();
  private isFailing = false;
  private counted: readonly Counted[] = [];

  constructor(private readonly props: ScrapeReviewProps) {}

  /**
   * Returns the answer that refuses a request; undefined where it may be answered.
   * @param authorization the request's header of that name
   * @param source address that the request comes from
   */
  readonly refusal = async (
    authorization: string | undefined,
    path: string,
    source = '',
  ): Promise<Refusal | undefined> => {
    const token = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
    if (token === undefined) return UNAUTHORIZED;
    const now = this.props.clock.monotonic();
    const id = createHash('sha256').update(`${path}\n${token}`).digest('base64');
    const known = this.decisions.get(id);
    if (known?.isPermitted && now >= known.until - SCRAPE_REVIEW.ahead)
      known.renewal ??= this.renew(id, known, token, path);
    if (known && now < known.until) return known.refusal;
    if (known?.renewal) return known.renewal;
    const counted = this.count(source);
    if (!counted) return BUSY;
    const refusal = await this.decide(id, this.review(token, path));
    counted.until = Math.max(now + 1_000, this.props.clock.monotonic());
    return refusal;
  };

  /** Makes a decision, at the end, as the newest; one too many displaces the oldest refusal, or else the oldest. */
  private async decide(id: string, review: Promise<Refusal | undefined>): Promise<Refusal | undefined> {
    const decision: Decision = { refusal: review, until: Infinity, isPermitted: false };
    this.decisions.delete(id);
    const all = [...this.decisions];
    const [oldest] = all.find(([, { isPermitted }]) => !isPermitted) ?? all[0] ?? [];
    if (oldest !== undefined && all.length >= SCRAPE_REVIEW.remembered) this.decisions.delete(oldest);
    this.decisions.set(id, decision);
    const refusal = await review;
    decision.isPermitted = !refusal;
    const holds = refusal ? SCRAPE_REVIEW.refused : SCRAPE_REVIEW.allowed;
    decision.until = this.props.clock.monotonic() + (refusal === UNDECIDED ? 0 : holds);
    return refusal;
  }

  /** Replaces a permission. While the API server doesn't decide, it holds until its end, and the token stays known. */
  private async renew(
    id: string,
    known: Decision,
    token: string,
    path: string,
  ): Promise<Refusal | undefined> {
    const refusal = await this.review(token, path);
    if (refusal !== UNDECIDED) return this.decide(id, Promise.resolve(refusal));
    known.renewal = undefined;
    return refusal;
  }

  /** Returns the place of one more review of an unknown token; nothing where there are too many. */
  private count(source: string): Counted | undefined {
    const now = this.props.clock.monotonic();
    this.counted = this.counted.filter(({ until }) => until > now);
    const own = this.counted.filter((each) => each.source === source);
    if (this.counted.length >= SCRAPE_REVIEW.unknown || own.length >= SCRAPE_REVIEW.unknownOfSource)
      return undefined;
    const counted = { source, until: Infinity };
    this.counted = [...this.counted, counted];
    return counted;
  }

  private async review(token: string, path: string): Promise<Refusal | undefined> {
    const { api, log } = this.props;
    const signal = AbortSignal.timeout(SCRAPE_REVIEW.timeout);
    try {
      const { authenticated, user } = await api.review<TokenReviewStatus>(
        ...['authentication.k8s.io/v1', 'TokenReview', { token }, signal],
      );
      const { username, uid, groups, extra } = user ?? {};
      const isKnown = authenticated === true && username !== undefined && username !== '';
      const spec = { user: username, uid, groups, extra, nonResourceAttributes: { path, verb: 'get' } };
      const access = isKnown
        ? await api.review<{ allowed?: boolean; denied?: boolean }>(
            ...['authorization.k8s.io/v1', 'SubjectAccessReview', spec, signal],
          )
        : undefined;
      if (this.isFailing) log.info({ path }, 'requests are authorized again');
      this.isFailing = false;
      if (!access) return UNAUTHORIZED;
      return access.allowed === true && access.denied !== true ? undefined : FORBIDDEN;
    } catch (error) {
      const hint =
        'The operator needs the right to create tokenreviews and subjectaccessreviews, as `reconstruct install --metrics-secure` grants it';
      if (!this.isFailing)
        log.warn(
          { path, error: messageOf(error), hint },
          'request refused, not authorized by the API server',
        );
      this.isFailing = true;
      return UNDECIDED;
    }
  }
}
