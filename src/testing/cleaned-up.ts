/**
 * Does something, and cleans up after it however it ends.
 *
 * **Errors**: what `act` throws, whether or not it could be cleaned up then; else what `cleanUp` throws.
 */
export async function cleanedUp<T>(act: () => Promise<T>, cleanUp: () => Promise<unknown>): Promise<T> {
  let result: T;
  try {
    result = await act();
  } catch (error) {
    // As a rule it fails for the same reason.
    await cleanUp().catch(() => undefined);
    throw error;
  }
  await cleanUp();
  return result;
}
