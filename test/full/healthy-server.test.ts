import { expect, test } from 'vitest';
import { choosePorts } from '../../sandbox/ports.js';
import { jobWatcher } from '../../src/kinds/job-watcher/kind.js';
import { eventually, installCrd } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import { ownControlPlane } from '../support/test-clusters.js';

/** Nothing but the operator uses it, so versions stay where they are for minutes. */
const own = ownControlPlane({ apiOnly: true });

test('a server that installs a CRD and is idle then raises no alarm', async () => {
  const { cluster } = own;
  const address = `127.0.0.1:${(await choosePorts()).apiServer}`;
  const controller = await startController({
    ...{ cluster, user: 'operator-58', kinds: [jobWatcher], awaitStart: false },
    args: ['--metrics-bind-address', address],
  });
  const notServed = 'the kind is not served, will look for it again';
  await controller.logged(({ msg }) => msg === notServed);

  await installCrd(cluster, jobWatcher);
  await controller.started([jobWatcher]);

  // Each watch is heard of again, by a bookmark or, where the server has none to send, by another watch in its place.
  const silences = async (): Promise<Map<string, number>> => {
    const text = await (await fetch(`http://${address}/metrics`)).text();
    const lines = text.matchAll(/^reconstruct_watch_silence_seconds\{name="(.*)"\} (.*)$/gm);
    return new Map([...lines].map(([, name, seconds]) => [name!, Number(seconds)]));
  };
  const silent = await silences();
  expect(silent.size).toBeGreaterThan(1);
  await eventually(
    async () => {
      for (const [name, seconds] of await silences())
        if (seconds < (silent.get(name) ?? 0)) silent.delete(name);
        else if (silent.has(name)) silent.set(name, seconds);
      expect([...silent.keys()]).toEqual([]);
    },
    { deadlineMilliseconds: 120_000 },
  );
  expect(controller.log.filter(({ level, msg }) => level === 'warn' && msg !== notServed)).toEqual([]);
  expect(controller.log.filter(({ level }) => level === 'error')).toEqual([]);
});
