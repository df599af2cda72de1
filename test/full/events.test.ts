import { beforeAll, expect, test } from 'vitest';
import type { EventProps } from '../../src/contract/plan.js';
import type { AnyObject, ObjectRef } from '../../src/contract/object.js';
import { Api } from '../../src/client/api.js';
import { systemClock } from '../../src/client/clock.js';
import { EventRecorder } from '../../src/engine/loop/events.js';
import { loadKubeconfig } from '../../src/client/kubeconfig.js';
import { UndiciTransport } from '../../src/client/transport.js';
import { rulesFor } from '../../src/install/rules.js';
import { Metrics } from '../../src/telemetry/metrics.js';
import { silentLogger } from '../../src/telemetry/logger.js';
import { accountKubeconfig, events, eventually, grant } from '../support/cluster.js';
import { openCluster } from '../support/test-clusters.js';

interface Told extends AnyObject {
  readonly regarding: ObjectRef;
  readonly note: string;
  readonly series?: { readonly count: number };
}

const user = 'operator-38';
const cluster = openCluster();
let namespace: string;

beforeAll(async () => {
  namespace = await cluster.makeNamespace('events');
  // As an operator without kinds has them.
  await grant(cluster, { user, rules: rulesFor([]), namespaces: [namespace] });
});

test('a storm of equal events is one event with a series, in a few requests that the API server accepts', async () => {
  const access = loadKubeconfig({ kubeconfig: await accountKubeconfig(cluster, user) });
  const transport = new UndiciTransport(access, 'reconstruct-test');
  const metrics = new Metrics();
  const recorder = new EventRecorder({
    api: new Api(transport),
    clock: systemClock,
    random: Math.random,
    log: silentLogger,
    metrics,
    reportingController: 'kosmos.io/reconstruct',
    reportingInstance: 'test',
  });
  const regarding = { apiVersion: 'v1', kind: 'ConfigMap', namespace, name: 'web', uid: 'some-uid' };
  const event: EventProps = {
    type: 'Warning',
    reason: 'Contested',
    action: 'Apply',
    note: 'by kubectl-edit',
  };
  const told = () => cluster.list<Told>(events, namespace);

  recorder.send(regarding, event);
  await eventually(async () => {
    expect(await told()).toMatchObject([{ note: 'by kubectl-edit', regarding: { name: 'web' } }]);
  });
  for (let times = 0; times < 999; times++) recorder.send(regarding, event);
  await eventually(async () => {
    expect((await told())[0]?.series?.count).toBeGreaterThanOrEqual(2);
  });
  for (let times = 0; times < 234; times++) recorder.send(regarding, event);
  await recorder.close();
  await transport.close();

  expect((await told()).map(({ series }) => series?.count)).toEqual([1_234]);
  const { values } = await metrics.events.get();
  expect(values.map(({ labels, value }) => [labels.outcome, value])).toEqual([
    ['sent', 1],
    ['series', 2],
  ]);
  // What `kubectl describe` reads: the same object by the older API.
  const core = await cluster.send('GET', `/api/v1/namespaces/${namespace}/events`);
  expect(core.body.items).toMatchObject([
    { involvedObject: { name: 'web' }, series: { count: 1_234 }, message: 'by kubectl-edit' },
  ]);
});
