import type { Cluster } from './cluster.js';
import { eventually } from './eventually.js';
import { summary, writes } from './requests.js';

/** Waits until a user has written nothing for a second: what its own writes lead to has happened by then. */
export async function settled(cluster: Cluster, user: string, deadlineMilliseconds = 30_000): Promise<void> {
  await eventually(
    async () => {
      // Before it is read, which takes its time.
      const now = Date.now();
      const last = writes(await cluster.sandbox.audit(user)).at(-1);
      if (last && now - Date.parse(last.stageTimestamp) < 1_000)
        throw new Error(`${user} still writes: ${summary(last)}`);
    },
    { deadlineMilliseconds, intervalMilliseconds: 200 },
  );
}
