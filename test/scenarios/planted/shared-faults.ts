import type { Controller, Plan } from '../../../src/contract/controller.js';
import type { Kind } from '../../../src/contract/kind.js';
import type { AnyObject } from '../../../src/contract/object.js';
import { groupKind } from '../../../src/contract/resource.js';
import type { SweepReader } from '../../../src/contract/sweep.js';
import { jobWatcher } from '../../../src/kinds/job-watcher/kind.js';
import { streamIngress } from '../../../src/kinds/stream-ingress/kind.js';

type Reconcile = Controller['reconcile'];

/** The same kind, whose controllers reconcile in another way; each of them remembers for itself. */
function wrapped(kind: Kind, wrap: (reconcile: Reconcile) => Reconcile): Kind {
  return {
    ...kind,
    controllers: (context) =>
      kind.controllers(context).map((controller) => {
        const { name, kind: of, watches, metrics, settle } = controller;
        const reconcile = wrap((key, reader, now) => controller.reconcile(key, reader, now));
        return {
          ...{ name, kind: of, watches, reconcile },
          ...(metrics && { metrics }),
          ...(settle && { settle }),
        };
      }),
  };
}

function withData(plan: Plan, change: (data: Data) => Data): Plan {
  return {
    ...plan,
    apply: plan.apply.map(({ shared: { mustExist = false } = {}, ...step }) =>
      step.object.kind === 'ConfigMap'
        ? { ...step, object: { ...step.object, data: change((step.object.data ?? {}) as Data) } }
        : { ...step, shared: { mustExist } },
    ),
  };
}

type Data = Readonly<Record<string, string>>;

/** A port that nobody asks for any more keeps its entry. */
export const lingering = wrapped(streamIngress, (reconcile) => {
  let seen: Data = {};
  return (...given) => withData(reconcile(...given), (data) => (seen = { ...seen, ...data }));
});

/** A port goes on to lead to where it led first. */
export const leadingBack = wrapped(streamIngress, (reconcile) => {
  let first: Data = {};
  return (...given) =>
    withData(reconcile(...given), (data) => {
      first = { ...data, ...first };
      return Object.fromEntries(Object.keys(data).map((port) => [port, first[port] ?? '']));
    });
});

/** A TTL that was given once goes on to count, so that Jobs are deleted too early. */
export const hasty = wrapped(jobWatcher, (reconcile) => {
  const ttls = new Map<string | undefined, string>();
  const withEarlierTtl = (cr: AnyObject): AnyObject => {
    const { completedTTL = ttls.get(cr.metadata.uid), ...spec } = cr.spec as { completedTTL?: string };
    if (completedTTL !== undefined) ttls.set(cr.metadata.uid, completedTTL);
    return { ...cr, spec: { ...spec, ...(completedTTL !== undefined && { completedTTL }) } };
  };
  const seenBy = (reader: SweepReader): SweepReader => ({
    get: (type, key) => reader.get(type, key),
    controlledBy: (type, uid) => reader.controlledBy(type, uid),
    deletions: (type, key) => reader.deletions(type, key),
    clockSkewMilliseconds: reader.clockSkewMilliseconds,
    mappedTo: (type, key) => {
      const objects = reader.mappedTo(type, key);
      return groupKind(type) === groupKind(jobWatcher.type) ? objects.map(withEarlierTtl) : objects;
    },
  });
  return (key, reader, now) => reconcile(key, seenBy(reader as SweepReader), now);
});
