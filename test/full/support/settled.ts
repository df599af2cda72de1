import type { Cluster } from './cluster.js';
import { eventually } from './eventually.js';
import { isIn, summary, writes } from './requests.js';

export interface SettledOptions {
  /** @defaultValue 30,000 */
  readonly deadlineMilliseconds?: number;
  readonly namespace?: string;
}

/**
 * Waits until a user has written nothing for a second: what its own writes lead to has happened by then.
 * @param options.namespace - only writes in it count, for an operator that works for several tests
 */
export async function settled(
  cluster: Cluster,
  user: string,
  { deadlineMilliseconds = 30_000, namespace }: SettledOptions = {},
): Promise<void> {
  await eventually(
    async () => {
      // Before it is read, which takes its time.
      const now = Date.now();
      const last = writes(await cluster.sandbox.audit(user)).findLast(isIn(namespace));
      if (last && now - Date.parse(last.stageTimestamp) < 1_000)
        throw new Error(`${user} still writes: ${summary(last)}`);
    },
    { deadlineMilliseconds, intervalMilliseconds: 200 },
  );
}
