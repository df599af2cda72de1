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

  constructor(private readonly clock: Clock) {}

  /** As it was last seen. */
  get lease(): Lease | undefined {
    return this.seen;
  }

  /** Empty where nobody has it. */
  get holder(): string {
    return this.seen?.spec?.holderIdentity ?? '';
  }

  observe(lease: Lease | undefined): void {
    const spec = JSON.stringify(lease?.spec);
    if (spec !== this.spec) this.changedAt = this.clock.monotonic();
    this.spec = spec;
    this.seen = lease;
  }

  /** Milliseconds until it has run out, if it isn't renewed; 0 or less if it has, or if nobody has it. */
  remaining(): number {
    if (this.holder === '') return 0;
    const seconds = this.seen?.spec?.leaseDurationSeconds ?? 0;
    return this.changedAt + seconds * 1000 - this.clock.monotonic();
  }
}
