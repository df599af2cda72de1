/** Does something for each, some at once, so that the API server isn't flooded. */
export async function inBatches<T>(
  items: readonly T[],
  act: (item: T) => Promise<unknown>,
  size = 16,
): Promise<void> {
  const waiting = [...items];
  const work = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await act(item);
  };
  await Promise.all(Array.from({ length: size }, work));
}
