import { messageOf } from '../../contract/error.js';

/** The API server takes no custom resource with that spec. What else it refuses is none of these. */
export class SpecRefused extends Error {}

/** @param write of the custom resource */
export async function refusable(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    const message = messageOf(error);
    throw message.includes('answered 422') ? new SpecRefused(message) : error;
  }
}

/** Undefined where the spec is refused. */
export async function unlessRefused<T>(act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof SpecRefused) return undefined;
    throw error;
  }
}
