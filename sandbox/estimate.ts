/** Number of packages that `go build -v` names of all programs. After the last one, the largest programs are linked in silence. */
const PACKAGES = 2_790;
/** Share of a build that is done by then, as measured. */
const COMPILED_SHARE = 0.95;

/** Highest share that is shown before the end. */
const MAX_SHARE = 0.99;

/** Estimates how far a build of all programs is, by the packages that Go has named. All times are milliseconds of any clock. */
export class BuildEstimate {
  #packages = 0;
  /** Time at which the first package was named, after all modules were downloaded. */
  #began: number | undefined;
  /** Time at which the last package was named. */
  #links: number | undefined;

  add(packages: number, now: number): void {
    this.#packages = packages;
    this.#began ??= now;
    if (packages >= PACKAGES) this.#links ??= now;
  }

  /** Returns the share that is done, which never falls. */
  share(now: number): number {
    const [began, links] = [this.#began ?? now, this.#links];
    if (links === undefined) return (COMPILED_SHARE * this.#packages) / PACKAGES;
    const part = links > began ? (now - began) / (links - began) : 1;
    return Math.min(COMPILED_SHARE * part, MAX_SHARE);
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
