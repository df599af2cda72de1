export interface WriteLimitProps {
  /** Where it starts, and what it never exceeds. */
  readonly max: number;
  readonly onChange: (limit: number) => void;
}

/** Says how many cuts there had been when a write began. */
export type Round = number;

/**
 * How many writes may be under way at once: as many as the server bears, found out as TCP does. Each answer lets it
 * grow a little, by one for as many writes as there are at once; a sign of overload halves it.
 *
 * **Guarantees.** At least one write may always be under way. Many writes that meet the same overload halve it once:
 * a write that began before the last cut tells nothing about what has been under way since.
 */
export class WriteLimit {
  private exact: number;
  private cuts: Round = 0;
  private underWay = 0;

  constructor(private readonly props: WriteLimitProps) {
    this.exact = props.max;
    props.onChange(this.limit);
  }

  get limit(): number {
    return Math.floor(this.exact);
  }

  get free(): boolean {
    return this.underWay < this.limit;
  }

  /** Of a write that begins now. */
  get round(): Round {
    return this.cuts;
  }

  begin(): void {
    this.underWay++;
  }

  end(): void {
    this.underWay--;
  }

  grow(): void {
    if (this.exact < this.props.max) this.set(this.exact + 1 / this.exact);
  }

  halve(round: Round): void {
    if (round < this.cuts) return;
    this.cuts++;
    this.set(this.exact / 2);
  }

  private set(exact: number): void {
    const before = this.limit;
    this.exact = Math.min(Math.max(exact, 1), this.props.max);
    if (this.limit !== before) this.props.onChange(this.limit);
  }
}
