/** A step that did not go as it should. */
export class StepFailure extends Error {
  constructor(
    /** What was waited for. */
    readonly expected: string,
    /** What there was instead. */
    readonly seen: string,
  ) {
    super(`Expected ${expected}. Seen: ${seen}`);
    this.name = 'StepFailure';
  }
}

/** The user's cluster is not there, or does not let the demo in. */
export class UnreachableError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'UnreachableError';
  }
}
