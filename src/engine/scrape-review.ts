import { createHash } from 'node:crypto';
import { messageOf } from '../contract/error.js';
import type { Logger } from '../telemetry/logger.js';
import type { Api } from './api.js';
import type { Clock } from './clock.js';
import { SCRAPE_REVIEW } from './retry.js';

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
  /** From when on the next request renews it. */
  renewAt: number;
  /** @default - it is being made */
  isRefused?: boolean;
}

/** Reviews of tokens that aren't known, of one source or of all. */
interface Unknown {
  inFlight: number;
  /** In this second. */
  begun: number;
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
 * in flight and by the second, also for each source. A token that was permitted is reviewed beyond that, and ahead of the end of its
 * decision; refusals are evicted before permissions. So unknown tokens don't keep a scraper out. Tokens are kept as hashes.
 *
 * @see https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/metrics/filters
 */
export class ScrapeReview {
  private readonly decisions = new Map<string, Decision>();
  private isFailing = false;
  private second = -Infinity;
  private readonly all: Unknown = { inFlight: 0, begun: 0 };
  private readonly sources = new Map<string, Unknown>();

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
    if (known && now < known.until) {
      if (known.isRefused === false && now >= known.renewAt) void this.renew(id, known, token, path);
      return known.refusal;
    }
    if (known?.isRefused === false) return this.decide(id, this.review(token, path), true);
    const counted = this.admitted(source);
    if (!counted) return BUSY;
    for (const each of counted) each.inFlight++;
    const refusal = await this.decide(id, this.review(token, path));
    for (const each of counted) each.inFlight--;
    return refusal;
  };

  /**
   * Makes a decision, at the end, as the newest.
   * @param wasPermitted whether the token was known: it stays so while the API server doesn't decide
   */
  private async decide(
    id: string,
    answer: Promise<Refusal | undefined>,
    wasPermitted = false,
  ): Promise<Refusal | undefined> {
    const decision: Decision = { refusal: answer, until: Infinity, renewAt: Infinity };
    this.decisions.delete(id);
    this.decisions.set(id, decision);
    this.evict();
    const refusal = await answer;
    const now = this.props.clock.monotonic();
    decision.isRefused = refusal !== undefined && !(wasPermitted && refusal === UNDECIDED);
    const holds = refusal ? SCRAPE_REVIEW.refused : SCRAPE_REVIEW.allowed;
    decision.until = now + (refusal === UNDECIDED ? 0 : holds);
    decision.renewAt = now + SCRAPE_REVIEW.renewed;
    return refusal;
  }

  /** Replaces a permission that still holds; one that can't be renewed holds until its end. */
  private async renew(id: string, known: Decision, token: string, path: string): Promise<void> {
    known.renewAt = Infinity;
    const refusal = await this.review(token, path);
    if (refusal !== UNDECIDED) await this.decide(id, Promise.resolve(refusal));
    else known.renewAt = this.props.clock.monotonic() + SCRAPE_REVIEW.timeout;
  }

  /** Returns where the review of an unknown token counts; nothing where there are too many. */
  private admitted(source: string): readonly Unknown[] | undefined {
    const { inFlight, perSecond, inFlightOfSource, perSecondOfSource } = SCRAPE_REVIEW;
    const second = Math.floor(this.props.clock.monotonic() / 1_000);
    if (second !== this.second) {
      this.second = second;
      this.all.begun = 0;
      for (const [address, one] of this.sources) {
        one.begun = 0;
        if (one.inFlight === 0) this.sources.delete(address);
      }
    }
    if (this.all.inFlight >= inFlight || this.all.begun >= perSecond) return undefined;
    const own = this.sources.get(source) ?? { inFlight: 0, begun: 0 };
    if (own.inFlight >= inFlightOfSource || own.begun >= perSecondOfSource) return undefined;
    this.sources.set(source, own);
    const counted = [this.all, own];
    for (const each of counted) each.begun++;
    return counted;
  }

  /** Removes the oldest decision that is a refusal, or else the oldest, once there are too many. */
  private evict(): void {
    if (this.decisions.size <= SCRAPE_REVIEW.remembered) return;
    const all = [...this.decisions];
    const spare = all.find(([, { isRefused }]) => isRefused) ?? all[0];
    if (spare) this.decisions.delete(spare[0]);
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
