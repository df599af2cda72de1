// Many StreamIngresses and the few objects that they share: how often those are written, and what settled ones cost.
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { streamIngress as kind } from '../../lib/kinds/stream-ingress/kind.js';
import { byKind, writes } from '../support/audit.mjs';
import { Bench } from '../support/bench.mjs';
import { CONCURRENCY } from '../support/cluster.mjs';
import { makeProxy, makeUpstreams, readyCount, streamOf } from '../support/streams.mjs';
import { each } from '../support/util.mjs';
import { Witness } from '../support/witness.mjs';

const BURST = 100;
const BURST_MILLISECONDS = 10_000;

/** In a control plane of their own: endpoints are written by hand, and no controller has a part in it. */
export async function streamIngress(figures, options) {
  // All are of one namespace, which may not open that many by default.
  const own = ['--policy', fileURLToPath(new URL('../support/streams-policy.json', import.meta.url))];
  const bench = await Bench.start(figures, { ...options, args: own }, { kinds: [kind], apiOnly: true });
  try {
    const namespace = await bench.namespace('streams');
    await makeProxy(bench.cluster);
    await makeUpstreams(bench.cluster, namespace);
    await bench.withController();
    await bench.quiet();
    const witness = await Witness.of(bench.cluster, kind.type, namespace);
    const made = await burst(bench, namespace, witness);
    await settled(bench, namespace, witness, made);
    await witness.stop();
  } finally {
    await bench.stop();
  }
}

/** One every tenth of a second, so that the controller can't wait until all are there. */
async function burst(bench, namespace, witness) {
  const count = Math.min(BURST, bench.count);
  const phase = `burst of ${count} StreamIngresses`;
  const mark = bench.audit.mark();
  const start = performance.now();
  for (let index = 0; index < count; index++) {
    await delay(Math.max(0, start + (index * BURST_MILLISECONDS) / count - performance.now()));
    await bench.cluster.create(kind.type, streamOf(namespace, index));
  }
  const lastMade = Date.now();
  bench.note(phase, 'all made within', (performance.now() - start) / 1000, 's');
  const readyAt = await readyCount(witness, count);
  bench.note(phase, 'all Ready after the last was made', (readyAt - lastMade) / 1000, 's');
  await bench.quiet();
  const written = writes(bench.audit.since(mark));
  const shared = sharedWrites(written);
  bench.note(phase, 'writes of each shared object', shared);
  bench.note(phase, 'writes of the one written most', Math.max(...Object.values(shared)), '', 3);
  bench.note(phase, 'requests', byKind(written));
  return count;
}

/** How often each object that many share was written, whatever the answer: `{ 'configmaps tcp-services': 2 }`. */
function sharedWrites(entries) {
  const shared = entries.filter(({ what }) => what === 'configmaps' || what === 'services');
  const byObject = Map.groupBy(shared, ({ what, name }) => `${what} ${name}`);
  return Object.fromEntries([...byObject].map(([object, { length }]) => [object, length]));
}

async function settled(bench, namespace, witness, made) {
  const { cluster, count } = bench;
  const phase = `${count} settled StreamIngresses`;
  const further = Array.from({ length: count - made }, (_, index) => streamOf(namespace, made + index));
  await each(further, CONCURRENCY, (cr) => cluster.create(kind.type, cr));
  await readyCount(witness, count);
  await bench.quiet();
  await bench.leaveAlone(phase);
  const mark = bench.audit.mark();
  const controller = await bench.freshController();
  await bench.quiet();
  await delay(5_000);
  const entries = bench.audit.since(mark);
  bench.note(phase, 'after a restart: writes', writes(entries).length, '', 0);
  bench.note(phase, 'after a restart: requests', byKind(entries));
  bench.note(phase, 'after a restart: peak RSS', controller.resident.peak, 'MiB');
  bench.note(phase, 'after a restart: RSS', controller.resident.now, 'MiB');
}
