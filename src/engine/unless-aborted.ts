/** What the work comes to; where the signal aborts first, its reason is thrown, and the work goes on unheeded. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => {
    reject(signal.reason as Error);
  };
  signal.addEventListener('abort', abort);
  if (signal.aborted) abort();
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
