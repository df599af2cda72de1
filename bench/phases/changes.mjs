// Changes to what exists: by the user, by somebody else, and many in a row.
import { setTimeout as delay } from 'node:timers/promises';
import { overlaps } from '../support/audit.mjs';
import { appService, CONCURRENCY, deployment } from '../support/cluster.mjs';
import { settle } from '../support/statuses.mjs';
import { each, median, quantile } from '../support/util.mjs';
import { Witness } from '../support/witness.mjs';
import { applyChildren, childrenOf, customResources, IMAGE, Pool } from '../support/workload.mjs';

const imageOf = ({ spec }) => spec.template.spec.containers[0].image;
const toImage = (value) => [{ op: 'replace', path: '/spec/template/spec/containers/0/image', value }];
const nameOf = (index) => `web-${index}`;

/** Every custom resource gets a new image. */
export async function update(bench, namespace) {
  const { cluster, count } = bench;
  const witness = await Witness.of(cluster, deployment, namespace);
  const names = Array.from({ length: count }, (_, index) => nameOf(index));
  let seconds;
  await bench.costs('update of all', [namespace], async () => {
    const start = Date.now();
    const pending = new Set(names);
    const changed = witness.until((object) => {
      if (object && imageOf(object) === `${IMAGE}.1`) pending.delete(object.metadata.name);
      return pending.size === 0;
    });
    await each(names, CONCURRENCY, (name) =>
      cluster.patch(appService.type, namespace, name, { spec: { image: `${IMAGE}.1` } }),
    );
    seconds = ((await changed) - start) / 1000;
  });
  await witness.stop();
  bench.note('update of all', 'until every Deployment is changed', seconds, 's');
}

/** Somebody changes an owned field, five times a second. */
export async function drift(bench, namespace) {
  const { cluster, count } = bench;
  const witness = await Witness.of(cluster, deployment, namespace);
  const latencies = [];
  const pending = new Map();
  witness.onChange(({ metadata: { name }, ...object }) => {
    const since = pending.get(name);
    if (since === undefined || !since.seen) {
      if (since && imageOf(object) !== IMAGE) since.seen = true;
      return;
    }
    if (imageOf(object) !== IMAGE) return;
    latencies.push(performance.now() - since.at);
    pending.delete(name);
  });
  // Each object once, since a writer that keeps fighting is another matter.
  const edits = Math.min(200, count);
  await bench.costs('drift, 5 a second', [namespace], async () => {
    for (let index = 0; index < edits; index++) {
      const name = nameOf(index);
      pending.set(name, { at: performance.now(), seen: false });
      void cluster.patch(deployment, namespace, name, toImage(`${IMAGE}-drift`));
      await delay(200);
    }
    await delay(1_000);
  });
  await witness.stop();
  const ofAll = [...latencies, ...[...pending].map(() => Infinity)];
  bench.note('drift, 5 a second', 'edits', edits);
  bench.note('drift, 5 a second', 'corrected, p50', quantile(ofAll, 0.5), 'ms');
  bench.note('drift, 5 a second', 'corrected, p99', quantile(ofAll, 0.99), 'ms', 1_000);
  await driftAtOnce(bench, namespace);
}

/** Each takes half a second, and one alone may be off by half. Nothing is spoilt so often that the brake is put on. */
const ROUNDS = 10;
const SHARES = 10;

/** A tenth of all at once; raw, 16 workers spoil while 16 others put right. Round by round, in turn. */
async function driftAtOnce(bench, namespace) {
  const phase = 'drift of 10 % at once';
  const { cluster, count } = bench;
  const rawNamespace = await bench.namespace('raw');
  const crs = customResources(rawNamespace, count, 0);
  await each(crs, CONCURRENCY, (cr) => applyChildren(cluster, cr));
  await settle(cluster, [rawNamespace], 0);
  const share = Math.floor(count / SHARES);
  const rounds = [];
  await bench.costs(phase, [namespace], async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const indexes = Array.from(
        { length: share },
        (_, index) => count - 1 - (round % SHARES) * share - index,
      );
      const repair = new Pool((index) => cluster.apply(deployment, childrenOf(crs[index])[0], 'raw'));
      const spoil = {
        raw: () => spoiled(cluster, rawNamespace, indexes, (index) => repair.add(index)),
        operator: () => spoiled(cluster, namespace, indexes, () => undefined),
      };
      const seconds = {};
      // What the control plane makes of one mustn't weigh on the other, and each goes first in turn.
      for (const who of round % 2 === 0 ? ['raw', 'operator'] : ['operator', 'raw']) {
        seconds[who] = await spoil[who]();
        await settle(cluster, [rawNamespace, namespace], 0);
      }
      rounds.push(seconds);
    }
  });
  const all = (who) => rounds.map((seconds) => seconds[who]);
  bench.note(phase, 'until all are corrected, median', median(all('operator')), 's');
  bench.note(phase, 'the same writes raw, median', median(all('raw')), 's');
  bench.note(
    phase,
    'ratio to the same writes raw, median',
    median(rounds.map(({ raw, operator }) => operator / raw)),
    '',
    1.2,
  );
}

/** Seconds from the first edit until all were spoiled and are right again. */
async function spoiled(cluster, namespace, indexes, afterEach) {
  const witness = await Witness.of(cluster, deployment, namespace);
  const spoilt = new Set();
  const wanted = new Set(indexes.map(nameOf));
  const start = Date.now();
  const right = witness.until((object) => {
    const name = object?.metadata.name;
    if (!wanted.has(name)) return false;
    if (imageOf(object) !== IMAGE) spoilt.add(name);
    else if (spoilt.has(name)) wanted.delete(name);
    return wanted.size === 0;
  });
  await each(indexes, CONCURRENCY, async (index) => {
    await cluster.patch(deployment, namespace, nameOf(index), toImage(`${IMAGE}-drift`));
    afterEach(index);
  });
  const end = await right;
  await witness.stop();
  return (end - start) / 1000;
}

const EDITS = 500;
/** Number of times that the edits are repeated: how far behind an operator is at one moment is chance. */
const HOT_ROUNDS = 5;

/** One custom resource, edited again and again without a pause; times are medians of the rounds. */
export async function hot(bench, namespace) {
  const phase = 'a hot custom resource';
  const { cluster } = bench;
  const name = nameOf(0);
  const [deployments, crs] = await Promise.all(
    [deployment, appService.type].map((type) => Witness.of(cluster, type, namespace)),
  );
  const converged = { deployment: [], status: [] };
  const round = async (number) => {
    let [generation, lastEdit, image] = [];
    for (let edit = 1; edit <= EDITS; edit++) {
      lastEdit = Date.now();
      image = `${IMAGE}-hot-${number}-${edit}`;
      ({
        metadata: { generation },
      } = await cluster.patch(appService.type, namespace, name, { spec: { image } }));
    }
    const changed = deployments.until(() => imageOf(deployments.objects.get(name)) === image);
    const told = crs.until(() => crs.objects.get(name).status.observedGeneration >= generation);
    const [deployment, status] = await Promise.all([changed, told]);
    converged.deployment.push(deployment - lastEdit);
    converged.status.push(status - lastEdit);
  };
  const { entries } = await bench.costs(phase, [namespace], async () => {
    for (let number = 1; number <= HOT_ROUNDS; number++) await round(number);
  });
  await Promise.all([deployments.stop(), crs.stop()]);
  const own = entries.filter(
    ({ verb, what, name: about }) => verb === 'patch' && what === 'deployments' && about === name,
  );
  bench.note(phase, 'edits', EDITS * HOT_ROUNDS);
  bench.note(phase, 'Deployment right after the last edit', median(converged.deployment) / 1000, 's', 1);
  bench.note(phase, 'status right after the last edit', median(converged.status) / 1000, 's');
  bench.note(phase, 'writes of the Deployment', own.length, '', EDITS * HOT_ROUNDS);
  bench.note(phase, 'writes of the Deployment that overlapped', overlaps(own), '', 0);
}
