/** What is needed of a test that runs, as vitest hands it to its function. */
export interface RunningTest {
  readonly name: string;
  readonly file: { readonly tasks: readonly EarlierTask[] };
}

interface EarlierTask {
  readonly name: string;
  readonly result?: { readonly state: string };
}

/** The names of what else is in a test's file and hasn't passed: it has failed, was left out, or comes later. */
export function othersNotPassed(test: RunningTest): string[] {
  const others = test.file.tasks.filter((task) => task !== test);
  return others.filter(({ result }) => result?.state !== 'pass').map(({ name }) => name);
}
