import type { Clock } from './clock.js';
import type { Lease } from './lease.js';

/**
 * A lease as a candidate sees it. Only a record that changes is a sign of life of its holder, and only our own clock
 * says when it came: what the record has for times is by the clock of somebody else.
 */
export class ObservedLease {
  private seen: Lease | undefined;
  private spec: string | undefined;
  private changedAt = 0;
  private alone = Infinity;

  /** @param identity of the candidate */
  constructor(
    private readonly clock: Clock,
    private readonly identity: string,
  ) {}

  /** As it was last seen. */
  get lease(): Lease | undefined {
    return this.seen;
  }

  /** Empty where nobody has it. */
  get holder(): string {
    return this.seen?.spec?.holderIdentity ?? '';
  }

  /** Since when, by our monotonic clock, nobody else can have had it; never, where somebody else is its holder. */
  get aloneSince(): number {
    return this.alone;
  }

  observe(lease: Lease | undefined): void {
    const now = this.clock.monotonic();
    const spec = JSON.stringify(lease?.spec);
    const changed = spec !== this.spec;
    if (changed) this.changedAt = now;
    this.spec = spec;
    this.seen = lease;
    const { holder } = this;
    if (holder !== '' && holder !== this.identity) this.alone = Infinity;
    // Where it has become free, somebody may have had it and given it back since it was seen last.
    else if (this.alone === Infinity || (changed && holder === '')) this.alone = now;
  }

  /** Milliseconds until it has run out, if it isn't renewed; 0 or less if it has, or if nobody has it. */
  remaining(): number {
    if (this.holder === '') return 0;
    const seconds = this.seen?.spec?.leaseDurationSeconds ?? 0;
    return this.changedAt + seconds * 1000 - this.clock.monotonic();
  }
}
