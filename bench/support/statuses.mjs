// Whether each custom resource's status says what its children say, judged with the kind's own status function.
import { isDeepStrictEqual } from 'node:util';
import { standardConditions } from '../../lib/author/status.js';
import { keepStatus } from '../../lib/values/projections.js';
import { appServiceStatus } from '../../lib/kinds/app-service/status.js';
import { render } from '../../lib/render/renderer.js';
import { appService, deployment, pod, service } from './cluster.mjs';
import { until } from './util.mjs';

const { watches } = appService.controllers({ render })[0];

function watchOf({ kind }) {
  return watches.find(({ type }) => type.kind === kind);
}

/** An object as the controller keeps it; nothing of a pod that is well. */
function kept(object) {
  return (watchOf(object).keep ?? keepStatus)(object);
}

/**
 * Waits until the Deployments have been rolled out, then until the statuses are right. Returns how many never were,
 * and how long the slowest took once nothing moved any more.
 */
export async function settle(cluster, namespaces, milliseconds = 30_000) {
  let live;
  await until(
    'rollouts',
    async () => {
      live = await Promise.all(namespaces.map((namespace) => read(cluster, namespace)));
      return live.every(({ deployments }) => deployments.every(isRolledOut));
    },
    { milliseconds: 600_000, every: 500 },
  );
  const rolledOutAt = performance.now();
  for (;;) {
    const faults = live.flatMap(faultsOf);
    const seconds = (performance.now() - rolledOutAt) / 1000;
    if (faults.length === 0 || seconds * 1000 > milliseconds) return { faults, lagSeconds: seconds };
    live = await Promise.all(namespaces.map((namespace) => read(cluster, namespace)));
  }
}

async function read(cluster, namespace) {
  const items = async (type) => (await cluster.list(type, namespace)).items;
  const [crs, deployments, services] = await Promise.all([appService.type, deployment, service].map(items));
  // The longest list by far, and of no use before.
  const pods = deployments.every(isRolledOut) ? await items(pod) : [];
  return { crs, deployments, services, pods };
}

function isRolledOut({ metadata, spec, status = {} }) {
  return (
    status.observedGeneration === metadata.generation &&
    (status.availableReplicas ?? 0) === spec.replicas &&
    (status.replicas ?? 0) === spec.replicas
  );
}

function faultsOf({ crs, deployments, services, pods }) {
  const byOwner = new Map();
  for (const child of [...deployments, ...services]) {
    const owner = child.metadata.ownerReferences?.[0]?.uid;
    byOwner.set(owner, [...(byOwner.get(owner) ?? []), child]);
  }
  const troubled = new Map();
  for (const known of pods.flatMap((object) => kept(object) ?? [])) {
    const [key] = watchOf(pod).mapsTo(known);
    troubled.set(key, [...(troubled.get(key) ?? []), known]);
  }
  return crs.flatMap((cr) => {
    const related = troubled.get(`${cr.metadata.namespace}/${cr.metadata.name}`) ?? [];
    const fault = faultOf(cr, byOwner.get(cr.metadata.uid) ?? [], related);
    return fault ? [`${cr.metadata.namespace}/${cr.metadata.name}: ${fault}`] : [];
  });
}

function faultOf(cr, children, related) {
  if (children.length !== (cr.spec.ports ? 2 : 1)) return `${children.length} children`;
  if (!cr.status?.conditions) return 'no status';
  const {
    readiness,
    conditions = [],
    fields = {},
  } = appServiceStatus({
    ...{ cr, related, failures: [], now: new Date() },
    children: children.map(kept),
  });
  const wanted = { ...fields, observedGeneration: cr.metadata.generation };
  for (const [name, value] of Object.entries(wanted)) {
    if (!isDeepStrictEqual(cr.status[name], value)) return `${name} is ${cr.status[name]}, not ${value}`;
  }
  // Of the verdict, each operator has words of its own; the conditions of the Deployment are passed on as they are.
  const verdict = standardConditions(readiness).map(({ message, ...condition }) => condition);
  for (const { type, status, reason, message } of [...verdict, ...conditions]) {
    const known = cr.status.conditions.find((condition) => condition.type === type);
    if (known?.status !== status || known.reason !== reason || (message ?? known.message) !== known.message)
      return `${type} is ${known?.status} ${known?.reason}: ${known?.message}, not ${status} ${reason}: ${message}`;
  }
  return undefined;
}
