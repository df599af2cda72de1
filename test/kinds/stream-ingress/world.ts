import type { ChangeSet } from '../../../src/contract/change.js';
import type { Controller, Reader, Watch } from '../../../src/contract/controller.js';
import type { Plan } from '../../../src/contract/plan.js';
import { OperatorError } from '../../../src/contract/error.js';
import type { ShareStep } from '../../../src/engine/steps/share.js';
import { controllerOf, objectKey, type AnyObject } from '../../../src/contract/object.js';
import { keepStatus } from '../../../src/values/projections.js';
import { groupKind } from '../../../src/contract/resource.js';
import { streamIngress as kind } from '../../../src/kinds/stream-ingress/kind.js';
import type { StreamIngressStatus } from '../../../src/kinds/stream-ingress/spec.js';
import type { StreamIngressPolicy } from '../../../src/kinds/stream-ingress/targets.js';
import { render } from '../../../src/render/renderer.js';
import { managed, MANAGER, object } from './builders.js';

export const NOW = new Date('2026-01-01T12:00:00Z');

export interface Setup {
  readonly policy?: StreamIngressPolicy;
  readonly flags?: Readonly<Record<string, string>>;
}

/** Both controllers of the kind: that of the statuses, and that of the shared objects. */
export function controllers({ policy, flags }: Setup = {}): {
  statuses: Controller;
  shared: Controller | undefined;
} {
  const [statuses, shared] = kind.controllers({ render, ...(policy && { policy }), ...(flags && { flags }) });
  return { statuses: statuses!, shared };
}

/** A cluster with these objects, as a controller sees it through its watches. */
export function readerOf({ watches }: Controller, objects: readonly object[]): Reader {
  const seen = watches.map((watch) => ({
    watch,
    objects: (objects as readonly AnyObject[])
      .filter((each) => groupKind(each) === groupKind(watch.type))
      .filter(({ metadata }) => watch.namespaces?.includes(metadata.namespace ?? '') ?? true)
      .filter(({ metadata }) => watch.name === undefined || watch.name === metadata.name)
      .flatMap((each) => (watch.keep ?? keepStatus)(each) ?? []),
  }));
  // The most precise first, as an object belongs to that.
  seen.sort((a, b) => Number(b.watch.name !== undefined) - Number(a.watch.name !== undefined));
  const of = (type: { apiVersion: string; kind: string }) => {
    const found = seen.filter(({ watch }) => groupKind(watch.type) === groupKind(type));
    if (found.length === 0) throw new Error(`${groupKind(type)} isn't watched`);
    const known = new Map<string, { object: AnyObject; watch: Watch }>();
    for (const { watch, objects: kept } of found)
      for (const each of kept) {
        const key = objectKey(each.metadata.namespace, each.metadata.name);
        if (!known.has(key)) known.set(key, { object: each, watch });
      }
    return known;
  };
  const all = (type: { apiVersion: string; kind: string }) => [...of(type).values()];
  return {
    get: (type, key) => of(type).get(key)?.object,
    all: () => [],
    controlledBy: (type, uid) =>
      all(type).flatMap(({ object }) => (controllerOf(object)?.uid === uid ? object : [])),
    mappedTo: (type, key) =>
      all(type).flatMap(({ object, watch }) => (watch.mapsTo(object).includes(key) ? object : [])),
    find: () => ({}),
  };
}

export function reconcile(controller: Controller, objects: readonly object[], key = 'default'): Plan {
  return controller.reconcile(key, readerOf(controller, objects), NOW);
}

/** The conditions of every custom resource, by its name: `Ready: False PortConflict` and the like. */
export function conditions(plan: Plan, changes: ChangeSet = []): Record<string, Record<string, string>> {
  return Object.fromEntries(
    plan.conclude(changes).status.map(({ target, status }) => {
      if (status instanceof OperatorError) throw status;
      const { conditions: found = [] } = status as StreamIngressStatus;
      const words = found.map(({ type, status: held, reason }) => [type, `${held} ${reason}`]);
      return [target.metadata.name, Object.fromEntries(words) as Record<string, string>];
    }),
  );
}

/** Steps of a plan that does nothing but share. */
export function sharing({ steps }: Plan): readonly ShareStep[] {
  const isOther = steps.some((step) => step.do !== 'engine/share');
  if (isOther) throw new Error(`there are other steps: ${steps.map((step) => step.do).join(', ')}`);
  return steps as readonly ShareStep[];
}

/** What is applied, in a line for each object. */
export function applied(plan: Plan): string[] {
  return sharing(plan).map(({ object: { kind: of, metadata, data, spec } }) => {
    const { ports } = (spec ?? {}) as { ports?: { port: number; protocol: string }[] };
    const parts = ports ? ports.map(({ port, protocol }) => `${port}/${protocol}`) : Object.keys(data ?? {});
    return `${of} ${metadata.name}: ${parts.join(' ')}`;
  });
}

/** The Service of ingress-nginx as its chart makes it, with ports of ours. */
export function nginxService(...ours: readonly number[]): AnyObject {
  const item = (port: number) => `k:{"port":${port},"protocol":"TCP"}`;
  const fields = (ports: readonly number[]) => ({
    'f:spec': {
      'f:ports': Object.fromEntries(
        ports.map((port) => [item(port), { '.': {}, 'f:name': {}, 'f:targetPort': {} }]),
      ),
    },
  });
  return object('Service', 'ingress-nginx/ingress-nginx-controller', {
    metadata: {
      managedFields: [
        managed('helm', fields([80, 443]), 'Update'),
        ...(ours.length > 0 ? [managed(MANAGER, fields(ours))] : []),
      ],
    },
    spec: {
      type: 'LoadBalancer',
      ports: [
        { name: 'http', port: 80, targetPort: 'http', protocol: 'TCP' },
        { name: 'https', port: 443, targetPort: 'https', protocol: 'TCP' },
        ...ours.map((port) => ({ name: `si-${port}-tcp`, port, targetPort: port, protocol: 'TCP' })),
      ],
    },
    status: { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } },
  });
}

/** The ConfigMap of TCP ports: some are ours, some are somebody's. */
export function tcpServices(
  ours: Readonly<Record<string, string>>,
  others: Readonly<Record<string, string>> = {},
): AnyObject {
  const fields = (keys: object) => ({
    'f:data': Object.fromEntries(Object.keys(keys).map((key) => [`f:${key}`, {}])),
  });
  return object('ConfigMap', 'ingress-nginx/tcp-services', {
    metadata: { managedFields: [managed(MANAGER, fields(ours)), managed('helm', fields(others), 'Update')] },
    data: { ...ours, ...others },
  });
}

/** `shop/db` with port 5432, and somebody ready behind it. */
export const upstream: readonly AnyObject[] = [
  object('Service', 'shop/db', { spec: { ports: [{ name: 'sql', port: 5432, protocol: 'TCP' }] } }),
  {
    ...object('EndpointSlice', 'shop/db-x', {
      metadata: { labels: { 'kubernetes.io/service-name': 'db' } },
      endpoints: [{ conditions: { ready: true } }],
      ports: [{ name: 'sql', port: 5432, protocol: 'TCP' }],
    }),
    apiVersion: 'discovery.k8s.io/v1',
  },
];
