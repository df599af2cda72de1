/** For so long, something may be other than it should be, while nothing else is waited for. */
export const CONVERGENCE_MILLISECONDS = 12_000;
/** The longest that pods may take. */
export const ROLLOUT_MILLISECONDS = 90_000;

/** How long to wait until a custom resource becomes what it should be; times are in milliseconds of one clock. */
export class Patience {
  /** Since when something else than pods is waited for. */
  private since: number;

  constructor(
    private readonly started: number,
    private readonly convergenceMilliseconds = CONVERGENCE_MILLISECONDS,
  ) {
    this.since = started;
  }

  /**
   * Whether it has lasted too long by now. While only pods are missing, they get their time; once they are there, the
   * operator gets its own, since it hears of them a moment later.
   */
  isOver(now: number, isRolling: boolean): boolean {
    if (!isRolling) return now - this.since > this.convergenceMilliseconds;
    this.since = now;
    return now - this.started > ROLLOUT_MILLISECONDS;
  }
}
