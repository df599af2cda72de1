/**
 * Share of a build that is done when `go build -v` has named so many packages, by the CPU time of Go and its compilers. The largest
 * packages come late; after the last one, the largest programs are linked in silence.
 */
const SHARES = [
  [0, 0],
  [660, 0.13],
  [1060, 0.27],
  [1530, 0.45],
  [2010, 0.61],
  [2400, 0.76],
  [2600, 0.88],
  [2790, 0.95],
] as const;

const [LAST_PACKAGES, LAST_SHARE] = SHARES[SHARES.length - 1] ?? [0, 1];

/** Highest share that is shown before the end. */
const MAX_SHARE = 0.99;

/** Estimates how far a build of all programs is, by the packages that Go has named. All times are milliseconds of any clock. */
export class BuildEstimate {
  #packages = 0;
  /** When the first package was named, after all modules were downloaded. */
  #began: number | undefined;
  /** When the last one was. */
  #links: number | undefined;

  add(packages: number, now: number): void {
    this.#packages = packages;
    this.#began ??= now;
    if (packages >= LAST_PACKAGES) this.#links ??= now;
  }

  /** Returns the share that is done, which never falls. */
  share(now: number): number {
    const [began, links] = [this.#began ?? now, this.#links];
    if (links === undefined) return shareAt(this.#packages);
    const part = links > began ? (now - began) / (links - began) : 1;
    return Math.min(LAST_SHARE * part, MAX_SHARE);
  }

  /** Describes the state, e.g. `37 %, about 3 min left`. */
  describe(now: number): string {
    const share = this.share(now);
    if (share < 0.01) return '0 %, some minutes left';
    const seconds = ((now - (this.#began ?? now)) * (1 - share)) / share / 1_000;
    const left =
      seconds < 90 ? `${Math.max(1, Math.ceil(seconds / 10)) * 10} s` : `${Math.round(seconds / 60)} min`;
    return `${Math.floor(share * 100)} %, about ${left} left`;
  }
}

function shareAt(packages: number): number {
  const index = SHARES.findIndex(([count]) => count > packages);
  const [before, after] = [SHARES[index - 1], SHARES[index]];
  if (!before || !after) return LAST_SHARE;
  const part = (packages - before[0]) / (after[0] - before[0]);
  return before[1] + part * (after[1] - before[1]);
}
