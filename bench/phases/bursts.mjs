// Many new custom resources at once, beside the same children applied with no operator.
import { beyondWatching, writes } from '../support/audit.mjs';
import { CONCURRENCY } from '../support/cluster.mjs';
import { settle } from '../support/statuses.mjs';
import { each } from '../support/util.mjs';
import { applyChildren, createAll, customResources, witnessChildren } from '../support/workload.mjs';

/** The operator starts over custom resources that exist: from its first write until every child exists. */
export async function coldBurst(bench, size) {
  const phase = `cold burst of size ${size}`;
  const { count } = bench;
  const raw = await rawChildren(bench, size, Math.ceil(count / 2));
  const namespace = await bench.namespace('cold');
  await createAll(bench.cluster, customResources(namespace, count, size));
  const witness = await witnessChildren(bench.cluster, namespace);
  let end;
  const work = async () => (end = await witness.complete(count));
  const usage = await bench.costs(phase, [namespace], work, { cold: true });
  await witness.stop();
  const [first] = writes(usage.entries).sort((a, b) => a.receivedAt - b.receivedAt);
  const seconds = (end - first.receivedAt) / 1000;
  notePerCr(bench, phase, usage);
  bench.note(phase, 'until every child exists', seconds, 's');
  bench.note(phase, 'ratio to the same children applied raw', seconds / count / raw, '', 1.2);
}

/** From the first custom resource created on, while the operator runs. Returns the namespace, in which all has settled. */
export async function liveBurst(bench, size) {
  const phase = `live burst of ${bench.count} of size ${size}`;
  await bench.withController();
  const namespace = await bench.namespace('live');
  const witness = await witnessChildren(bench.cluster, namespace);
  let seconds;
  const usage = await bench.costs(phase, [namespace], async () => {
    const start = Date.now();
    await createAll(bench.cluster, customResources(namespace, bench.count, size));
    seconds = ((await witness.complete(bench.count)) - start) / 1000;
  });
  await witness.stop();
  notePerCr(bench, phase, usage);
  bench.note(phase, 'until every child exists', seconds, 's');
  return namespace;
}

function notePerCr(bench, phase, { cpuSeconds, entries }) {
  const { count } = bench;
  bench.note(phase, 'requests per custom resource', beyondWatching(entries).length / count);
  bench.note(phase, 'CPU per custom resource', (cpuSeconds / count) * 1000, 'ms');
}

/** Seconds per custom resource as an operator does it: 16 at once, the children of each in turn. Nothing is left. */
async function rawChildren(bench, size, count) {
  const { cluster } = bench;
  const namespace = await bench.namespace('raw');
  const crs = [];
  await createAll(cluster, customResources(namespace, count, size), (cr) => crs.push(cr));
  const witness = await witnessChildren(cluster, namespace);
  const start = Date.now();
  const complete = witness.complete(count);
  await each(crs, CONCURRENCY, (cr) => applyChildren(cluster, cr));
  const end = await complete;
  await witness.stop();
  await settle(cluster, [namespace], 0);
  await cluster.deleteAll(namespace);
  return (end - start) / 1000 / count;
}
