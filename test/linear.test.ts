import { expect, test } from 'vitest';
import type { Reader } from '../src/contract/controller.js';
import { APPLIED_HASH_ANNOTATION } from '../src/contract/names.js';
import { contentHash } from '../src/values/json.js';
import { waitingOf } from '../src/author/order.js';
import { keepStatus } from '../src/values/projections.js';
import { compileRegularExpression } from '../src/values/regular-expression.js';
import { steady, steadyUnschedulable } from '../src/author/pods.js';
import { replicaFailure } from '../src/kinds/app-service/status.js';
import { systemClock } from '../src/client/clock.js';
import { Queue } from '../src/engine/loop/work-queue.js';
import { Metrics } from '../src/telemetry/metrics.js';
import { Store } from '../src/engine/watch/cache.js';
import type { Target, Targets } from '../src/kinds/stream-ingress/targets.js';
import { upstreamsIn } from '../src/kinds/stream-ingress/watched.js';
import { isIPv4Format, isMailAddress, isRequestUri, parseDuration } from '../src/validate/formats.js';
import { redactLine } from '../src/telemetry/logger.js';

const of = (text: string, bytes: number): string => text.repeat(Math.ceil(bytes / text.length));

/** A custom resource with a chain of objects, the first half of which is ready. */
function waitInChain(length: number): unknown {
  const named = (n: number) => ({ namespace: 'shop', name: `a${n}` });
  const objects = Array.from({ length }, (_, n) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: named(n),
  }));
  const dependencies = new Map(objects.map((object, n) => [object, objects.slice(0, n)]));
  const live = objects.slice(0, length / 2).map((object) => ({
    ...object,
    metadata: { ...object.metadata, annotations: { [APPLIED_HASH_ANNOTATION]: contentHash(object) } },
  }));
  const cr = { apiVersion: 'example.com/v1', kind: 'Chain', metadata: { name: 'a' }, spec: {} };
  return waitingOf(cr, dependencies, live, new Date());
}

/** The endpoints of a Service in many slices. */
function manySlices(count: number): unknown {
  const readyPorts = (n: number): string[] => Array.from({ length: 100 }, (_, port) => `${n}-${port}/TCP`);
  const slices = Array.from({ length: count }, (_, n) => ({
    ...{ service: 'shop/web', readyPorts: readyPorts(n) },
  }));
  const reader = { mappedTo: () => slices } as unknown as Reader;
  return upstreamsIn(
    { crossNamespace: 'Allow' } as unknown as Targets,
    { name: 'default' } as Target,
    reader,
    true,
  );
}

/** Records of field managers that name one item of a list by other keys each time. */
function manyKeys(count: number): void {
  const env = { 'f:env': { 'k:{"name":"a"}': { 'f:value': {} } } };
  const keys = Array.from({ length: count }, (_, n) => [`k:{"${n === 0 ? 'name' : `x${n}`}":"c"}`, env]);
  const annotations = { [APPLIED_HASH_ANNOTATION]: 'x u' };
  const record = { 'f:metadata': { 'f:annotations': { [`f:${APPLIED_HASH_ANNOTATION}`]: {} } } };
  const entry = (manager: string, fieldsV1: object) => ({
    ...{ manager, operation: 'Apply', fieldsV1: { ...record, ...fieldsV1 } },
  });
  const managedFields = [entry('a', { 'f:spec': { 'f:containers': Object.fromEntries(keys) as object } })];
  const items = Array.from({ length: 40_000 }, (_, n) => ({ name: `a${n}`, value: '' }));
  const metadata = { namespace: 'shop', name: 'a', resourceVersion: '1', annotations, managedFields };
  const spec = { containers: [{ name: 'c', env: items }] };
  new Store({ keep: keepStatus }).observed({ apiVersion: 'v1', kind: 'Pod', metadata, spec });
}

/** A queue in which all keys wait in one lane, as after a start. */
async function manyQueued(count: number): Promise<void> {
  const metrics = new Metrics();
  const queue = new Queue({ clock: systemClock, random: () => 0, metrics, controller: 'widget' });
  for (let n = 0; n < count; n++) queue.add(`shop/a${n}`, 'initial');
  for (let n = 0; n < count; n++) queue.done((await queue.take())!);
}

/** Before, each took minutes at this length, or centuries; the bound leaves room for the busiest machine. */
test.each<readonly [string, () => unknown]>([
  [
    'a record with many keys',
    () => {
      manyKeys(3_000);
    },
  ],
  ['a queue of many keys', async () => manyQueued(150_000)],
  ['an order of many objects', () => waitInChain(600)],
  ['a Service of many slices', () => manySlices(2_000)],
  [
    'a log line with the beginnings of many tokens',
    () => redactLine(JSON.stringify({ msg: of('eyJ-', 2_000_000) })),
  ],
  ["a kubelet's message with many brackets", () => steady(`pod=${of('(', 60_000)}`, 'web')],
  ["a kubelet's message with many digits", () => steady(of('1', 1_000_000), 'web')],
  ["a kubelet's message with many containers", () => steady(of('(pod: "", container: ', 1_000_000), 'web')],
  [
    "a scheduler's message with many nodes",
    () => steadyUnschedulable(`0/5 nodes are available: ${of('. ', 1e6)}`, 'web'),
  ],
  [
    'a refusal by a security standard',
    () => replicaFailure(`violates PodSecurity "${of('a', 200_000)}`, 'Baseline'),
  ],
  ['a duration of many digits', () => parseDuration(of('1', 200_000))],
  ['an address of many zeros', () => isIPv4Format(`${of('0', 200_000)}x.`)],
  ['a mail address in front of which is much space', () => isMailAddress(`${of('\u00a0', 200_000)}"`)],
  ['an address that is much authority', () => isRequestUri(`a://${of('a', 200_000)}\u2028`)],
  [
    'a regular expression of many brackets',
    () => {
      expect(() => compileRegularExpression(`{+${of('[[:', 30_000)}`)).toThrow();
    },
  ],
])('%s is handled in time that grows with its length', async (_, handle) => {
  // Time of this process alone: others may be busy.
  const start = process.cpuUsage();
  await handle();
  const { user, system } = process.cpuUsage(start);
  expect((user + system) / 1_000).toBeLessThan(10_000);
});
