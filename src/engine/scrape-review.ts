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
  until: number;
  isRefused: boolean;
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
 * cached by token for a while, and concurrent requests with one token share a decision. Reviews in flight are bounded, and
 * refusals are evicted before permissions, so unknown tokens don't displace a scraper's. Tokens are kept as hashes.
 *
 * @see https://pkg.go.dev/sigs.k8s.io/controller-runtime/pkg/metrics/filters
 */
export class ScrapeReview {
  private readonly decisions = new Map<string, Decision>();
  private isFailing = false;
  private inFlight = 0;

  constructor(private readonly props: ScrapeReviewProps) {}

  /**
   * Returns the answer that refuses a request; undefined where it may be answered.
   * @param authorization the request's header of that name
   */
  readonly refusal = async (
    authorization: string | undefined,
    path: string,
  ): Promise<Refusal | undefined> => {
    const token = /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1];
    if (token === undefined) return UNAUTHORIZED;
    const { clock } = this.props;
    const id = createHash('sha256').update(`${path}\n${token}`).digest('base64');
    const known = this.decisions.get(id);
    if (known && clock.monotonic() < known.until) return known.refusal;
    if (this.inFlight >= SCRAPE_REVIEW.inFlight) return BUSY;
    // At the end, as the newest.
    this.decisions.delete(id);
    this.inFlight++;
    const decision: Decision = { refusal: this.review(token, path), until: Infinity, isRefused: false };
    this.decisions.set(id, decision);
    this.evict();
    const refusal = await decision.refusal;
    this.inFlight--;
    decision.isRefused = refusal !== undefined;
    const holds = refusal ? SCRAPE_REVIEW.refused : SCRAPE_REVIEW.allowed;
    decision.until = clock.monotonic() + (refusal === UNDECIDED ? 0 : holds);
    return refusal;
  };

  /** Removes the oldest decision that is a refusal or has expired, or else the oldest, once there are too many. */
  private evict(): void {
    if (this.decisions.size <= SCRAPE_REVIEW.remembered) return;
    const now = this.props.clock.monotonic();
    const all = [...this.decisions];
    const spare = all.find(([, { isRefused, until }]) => isRefused || until <= now) ?? all[0];
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
