/** Something that is reached once, and stays so. */
export class Milestone {
  /** Resolves when it is. */
  readonly reached: Promise<undefined>;
  private readonly resolve: (value: undefined) => void;
  private passed = false;

  constructor() {
    ({ promise: this.reached, resolve: this.resolve } = Promise.withResolvers<undefined>());
  }

  get isReached(): boolean {
    return this.passed;
  }

  reach(): void {
    this.passed = true;
    this.resolve(undefined);
  }
}
