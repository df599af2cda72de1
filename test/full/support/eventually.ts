import { eventually as eventuallyOfKit } from '../../../src/testing/eventually.js';
import type { EventuallyOptions } from '../../../src/testing/eventually.js';
import { recentLog } from './recent-log.js';

export type { EventuallyOptions };

/** That of the testing kit; what it throws in the end tells what controllers logged, since nobody can look later. */
export async function eventually<T>(probe: () => Promise<T> | T, options?: EventuallyOptions): Promise<T> {
  try {
    return await eventuallyOfKit(probe, options);
  } catch (error) {
    const log = recentLog();
    if (error instanceof Error && log.length > 0)
      error.message += `\nWhat controllers logged last:\n${log.join('\n')}`;
    throw error;
  }
}
