// Many new custom resources at once, beside the same children applied with no controller.
import { writes } from '../support/audit.mjs';
import { CONCURRENCY } from '../support/cluster.mjs';
import { each } from '../support/util.mjs';
import { applyChildren, createAll, customResources, Pool, witnessChildren } from '../support/workload.mjs';
import { settle } from '../support/statuses.mjs';

const CPU_MILLISECONDS = 6.9;

export async function burst(bench, size) {
  const phase = `burst of size ${size}`;
  const { count } = bench;
  // Every object makes the control plane a little slower, so each measurement stands in the middle of what it is
  // compared with: half of the raw writes before, half after.
  const raw = await between(bench, size, rawChildren, () => coldBurst(bench, size, `cold ${phase}`));
  const live = await between(bench, size, rawPipeline, () => liveBurst(bench, size, phase));
  await bench.withController();

  bench.note(phase, 'raw children, the halves before and after', raw.halves.map(rounded), 's');
  bench.note(phase, 'raw children', (2 * count) / raw.seconds, 'applies/s');
  bench.note(phase, 'cold burst', raw.measured, 's');
  bench.note(phase, 'cold burst to raw children', raw.measured / raw.seconds, '', 1.2);
  bench.note(phase, 'raw custom resources and children, the halves', live.halves.map(rounded), 's');
  bench.note(phase, 'live burst', live.measured, 's');
  bench.note(phase, 'live burst to raw custom resources and children', live.measured / live.seconds, '', 1.2);
}

async function between(bench, size, raw, measure) {
  const half = Math.ceil(bench.count / 2);
  const rawHalf = async () => {
    await bench.withoutController();
    return raw(bench, size, half);
  };
  const before = await rawHalf();
  const measured = await measure();
  const after = await rawHalf();
  return { halves: [before, after], seconds: before + after, measured };
}

/** As the controller does it: 16 custom resources at once, the children of each in turn. */
async function rawChildren(bench, size, count) {
  return inPassing(bench, async (namespace) => {
    const crs = [];
    await createAll(bench.cluster, customResources(namespace, count, size), (cr) => crs.push(cr));
    return existing(bench, namespace, count, () =>
      each(crs, CONCURRENCY, (cr) => applyChildren(bench.cluster, cr)),
    );
  });
}

/** As in a live burst: while custom resources are created, 16 at once, the children of those that exist are applied. */
async function rawPipeline(bench, size, count) {
  const { cluster } = bench;
  return inPassing(bench, (namespace) => {
    const children = new Pool((cr) => applyChildren(cluster, cr));
    return existing(bench, namespace, count, async () => {
      await createAll(cluster, customResources(namespace, count, size), (cr) => children.add(cr));
      await children.drained();
    });
  });
}

/** In a namespace of its own, of which nothing is left: else the controller would take it for its own. */
async function inPassing(bench, work) {
  const namespace = await bench.namespace('raw');
  const result = await work(namespace);
  await bench.cluster.deleteAll(namespace);
  return result;
}

/** Seconds until every child was seen to exist; the rollouts are over when this returns. */
async function existing(bench, namespace, count, work) {
  const witness = await witnessChildren(bench.cluster, namespace);
  const start = Date.now();
  const complete = witness.complete(count);
  await work();
  const end = await complete;
  await witness.stop();
  await settle(bench.cluster, [namespace], 0);
  return (end - start) / 1000;
}

/** The controller starts over custom resources that exist: from its first write on. */
async function coldBurst(bench, size, phase) {
  const namespace = await bench.namespace('cold');
  await createAll(bench.cluster, customResources(namespace, bench.count, size));
  const witness = await witnessChildren(bench.cluster, namespace);
  const mark = bench.audit.mark();
  let end;
  await bench.withController();
  await bench.costs(phase, [namespace], async () => {
    end = await witness.complete(bench.count);
  });
  await witness.stop();
  const [first] = writes(bench.audit.since(mark)).sort((a, b) => a.receivedAt - b.receivedAt);
  return (end - first.receivedAt) / 1000;
}

/** From the first custom resource created on, while the controller runs. */
async function liveBurst(bench, size, phase) {
  const namespace = await bench.namespace('live');
  const witness = await witnessChildren(bench.cluster, namespace);
  let seconds;
  const { cpuSeconds, entries } = await bench.costs(phase, [namespace], async () => {
    const start = Date.now();
    await createAll(bench.cluster, customResources(namespace, bench.count, size));
    seconds = ((await witness.complete(bench.count)) - start) / 1000;
  });
  await witness.stop();
  bench.keepPopulation(size, namespace);
  const perCr = (wanted) => entries.filter(({ what }) => wanted.includes(what)).length / bench.count;
  bench.note(phase, 'requests per custom resource: children', perCr(['deployments', 'services']), '', 2);
  bench.note(phase, 'requests per custom resource: status', perCr(['appservices/status']));
  bench.note(
    phase,
    'controller CPU per custom resource',
    (cpuSeconds / bench.count) * 1000,
    'ms',
    CPU_MILLISECONDS,
  );
  return seconds;
}

function rounded(seconds) {
  return Number(seconds.toFixed(2));
}
