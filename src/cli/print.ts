/** Writes to standard output. Whoever reads may stop early, as `head` does; that is no failure. */
export async function print(text: string): Promise<void> {
  await new Promise<void>((done, fail) => {
    const finish = (error?: Error | null): void => {
      if (error && (error as NodeJS.ErrnoException).code !== 'EPIPE') fail(error);
      else done();
    };
    process.stdout.once('error', finish);
    process.stdout.write(text, finish);
  });
}
