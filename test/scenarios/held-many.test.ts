import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repoFolder } from '../../sandbox/paths.js';
import { appService } from '../../src/kinds/app-service/kind.js';
import { eventually } from '../support/cluster.js';
import { startController } from '../support/operator.js';
import type { RunningController } from '../support/operator.js';
import { requestsFromNowOn, settled, summary } from '../support/requests.js';
import { Subject } from '../support/subject.js';
import type { LiveResource } from '../support/subject.js';
import { ownControlPlane } from '../support/test-clusters.js';

/** Number of custom resources; HELD_COUNT=10000 takes some twenty minutes. */
const count = Number(process.env.HELD_COUNT ?? 200);
const patience = { deadlineMilliseconds: 60_000 + 300 * count, intervalMilliseconds: 1_000 + count };
const user = 'operator-111';
/** The controllers of Kubernetes take half an hour for ten thousand, and nothing here waits for them. */
const plane = ownControlPlane({ apiOnly: true });

test(
  'held updates are silent once they are looked at, also after a restart over all of them',
  { timeout: 5 * patience.deadlineMilliseconds },
  async () => {
    // GIVEN custom resources of one build
    const { cluster } = plane;
    const apps = await Subject.make(cluster, appService, 'held-many');
    const start = (config?: string): Promise<RunningController> =>
      startController({
        ...{ cluster, user, kinds: [appService], namespaces: [apps.namespace] },
        ...(config !== undefined && { config, args: ['--on-upgrade', 'hold'] }),
      });
    const all = async (isSo: (status: LiveResource['status']) => boolean): Promise<void> => {
      await eventually(async () => {
        const found = await cluster.list<LiveResource>(appService.type, apps.namespace);
        expect(found.filter(({ status }) => isSo(status))).toHaveLength(count);
      }, patience);
    };
    const first = await start();
    // There are 2,768 node ports.
    const service = { type: 'ClusterIP' };
    const spec = { size: 0, image: 'example.com/web:1', ports: [{ port: 80 }], service };
    for (let from = 0; from < count; from += 50)
      await Promise.all(
        Array.from({ length: Math.min(50, count - from) }, (_, index) =>
          apps.create(`web-${from + index}`, spec),
        ),
      );
    await all((status) => status?.observedGeneration === 1);
    expect(await first.stop()).toBe(0);

    // WHEN another build is held
    const next = join(repoFolder(), 'test/support/kinds/next-version.config.mjs');
    const looking = await requestsFromNowOn(cluster, user);
    const second = await start(next);
    await all(
      (status) =>
        status?.conditions?.some((one) => one.type === 'UpdatePending' && one.status === 'True') === true,
    );
    await settled(cluster, user, patience);
    // A watch begins again from time to time.
    const looks = (await looking()).filter(
      ({ objectRef, verb }) => objectRef?.resource === 'deployments' && verb !== 'watch',
    );
    // It is read, and tried once.
    expect(looks).toHaveLength(2 * count);
    await second.kill();

    // THEN the next start over them asks for nothing but its watches
    const requests = await requestsFromNowOn(cluster, user);
    const third = await start(next);
    await eventually(() => {
      const seen = new Set(third.log.filter(({ msg }) => msg === 'reconciled').map(({ name }) => name));
      expect(seen.size).toBe(count);
    }, patience);
    await settled(cluster, user);
    // Those of the process before may end late.
    const sent = new Set((await requests()).map(summary));
    const watched = ['appservices', 'deployments', 'services'];
    expect([...sent].sort()).toEqual(watched.map((resource) => `watch ${resource} ${apps.namespace}/ 200`));
    expect(await third.stop()).toBe(0);
  },
);
