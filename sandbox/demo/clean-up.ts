interface Action {
  readonly what: string;
  readonly run: () => Promise<void>;
  readonly byHand?: string;
}

/** What is to be undone at the end, the latest first. */
export class CleanUp {
  readonly #actions: Action[] = [];

  /**
   * @param what completes the sentence "Could not ..."
   * @param byHand the command that does the same, for what outlives this process
   */
  add(what: string, run: () => Promise<void>, byHand?: string): void {
    this.#actions.push({ what, run, ...(byHand !== undefined && { byHand }) });
  }

  /** The commands for what is still to be undone by hand if this process ends now, the next first. */
  get byHand(): string[] {
    return this.#actions.flatMap(({ byHand }) => byHand ?? []).reverse();
  }

  /**
   * Undoes all of it, also if a part fails.
   *
   * @returns what could not be undone, a sentence for each
   */
  async run(): Promise<string[]> {
    const problems: string[] = [];
    for (let action = this.#actions.at(-1); action !== undefined; action = this.#actions.at(-1)) {
      try {
        await action.run();
      } catch (error) {
        problems.push(`Could not ${action.what}: ${error instanceof Error ? error.message : String(error)}`);
      }
      this.#actions.pop();
    }
    return problems;
  }
}
