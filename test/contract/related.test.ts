import { describe, expect, it, vi } from 'vitest';
import type { OwningKind, OwnFunctions } from '../../src/contract/owned-children.js';
import type { Plan, Reader } from '../../src/contract/controller.js';
import { OperatorError } from '../../src/contract/error.js';
import type { AnyObject } from '../../src/contract/object.js';
import { OwnedChildren } from '../../src/contract/owned-children.js';
import { groupKind, resourceType } from '../../src/contract/resource.js';
import type { StatusFunction, StatusInput } from '../../src/contract/status.js';

const WIDGET = resourceType({ apiVersion: 'demo.io/v1', kind: 'Widget' });
const DEPLOYMENT = resourceType({ apiVersion: 'apps/v1', kind: 'Deployment' });
const ROUTE = resourceType({ apiVersion: 'gateway.io/v1', kind: 'Route' });
const POD = resourceType({ apiVersion: 'v1', kind: 'Pod' });

type Meta = Partial<AnyObject['metadata']> & { readonly managedFields?: object[] };

function object(type: { apiVersion: string; kind: string }, name: string, meta: Meta = {}): AnyObject {
  return { apiVersion: type.apiVersion, kind: type.kind, metadata: { namespace: 'shop', name, ...meta } };
}

const CR = { ...object(WIDGET, 'web', { uid: 'u', generation: 1 }), spec: {} };
const keepReplicas = ({ spec }: AnyObject) => ({
  spec: { replicas: (spec as { replicas: number }).replicas },
});
const keepReason = ({ reason }: AnyObject) => (reason ? { reason } : undefined);
const nameOf = ({ metadata }: AnyObject): string | undefined => metadata.labels?.['demo.io/widget'];

const KIND: OwningKind = {
  ...{ name: 'widget', type: WIDGET, construct: undefined as never },
  children: [
    { ...DEPLOYMENT, keep: keepReplicas },
    { ...ROUTE, optional: true },
  ],
  formerChildren: [],
  related: [{ ...POD, selector: 'demo.io/widget', keep: keepReason, nameOf }],
};

interface Given {
  readonly own?: OwnFunctions;
  readonly children?: readonly AnyObject[];
  readonly related?: readonly AnyObject[];
  readonly render?: () => AnyObject[];
}

function planned({ own, children = [], related = [], render }: Given): Plan {
  const reader: Reader = {
    get: () => CR,
    controlledBy: (type) => children.filter((child) => groupKind(child) === groupKind(type)),
    mappedTo: (type, key) => (type.kind === 'Pod' && key === 'shop/web' ? related : []),
    clockSkewMilliseconds: undefined,
  };
  const adapter = new OwnedChildren(KIND, render ?? (() => [object(DEPLOYMENT, 'web')]), own);
  return adapter.reconcile('shop/web', reader, new Date(0));
}

const watchOf = (type: { kind: string }, kind = KIND) =>
  new OwnedChildren(kind, () => []).watches.find((watch) => watch.type.kind === type.kind)!;

describe('What is kept of a child', () => {
  it('is what every child has, and what the kind asks for', () => {
    const live = {
      ...object(DEPLOYMENT, 'web', { uid: 'd', labels: { a: 'b' }, managedFields: [{}] }),
      ...{ spec: { replicas: 3, paused: true }, status: { replicas: 2 } },
    };
    const { metadata, ...rest } = watchOf(DEPLOYMENT).keep!(live)!;
    expect(rest).toEqual({
      ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
      ...{ spec: { replicas: 3 }, status: { replicas: 2 } },
    });
    expect(metadata).toMatchObject({ name: 'web', uid: 'd' });
    expect(metadata).not.toHaveProperty('labels');
  });

  it('never is another object, whatever the kind returns', () => {
    const keep = () => ({ kind: 'Other', metadata: { name: 'other', labels: { a: 'b' } }, status: 'mine' });
    const { keep: projected } = watchOf(DEPLOYMENT, { ...KIND, children: [{ ...DEPLOYMENT, keep }] });
    const live = { ...object(DEPLOYMENT, 'web', { uid: 'd' }), status: { replicas: 2 } };
    expect(projected!(live)).toMatchObject({
      ...{ kind: 'Deployment', metadata: { name: 'web', uid: 'd', labels: { a: 'b' } } },
      status: { replicas: 2 },
    });
  });
});

describe('Types of a kind', () => {
  it('keep of related objects what tells them, and what the kind asks for; or nothing', () => {
    const pod = object(POD, 'web-1', { uid: 'p', labels: { 'demo.io/widget': 'web' }, managedFields: [{}] });
    const watch = watchOf(POD);
    expect(watch.keep!({ ...pod, spec: {} })).toBeUndefined();
    expect(watch.keep!({ ...pod, spec: {}, reason: 'Crash' })).toEqual({
      ...object(POD, 'web-1', { uid: 'p', labels: { 'demo.io/widget': 'web' } }),
      reason: 'Crash',
    });
  });

  it('map related objects to the custom resource of their namespace that they name', () => {
    const watch = watchOf(POD);
    expect(watch.mapsTo(object(POD, 'web-1', { labels: { 'demo.io/widget': 'web' } }))).toEqual(['shop/web']);
    expect(watch.mapsTo(object(POD, 'web-1'))).toEqual([]);
  });
});

describe('The status function', () => {
  const input = (given: Given, changes: Parameters<Plan['status'][number]['status']>[0] = []) => {
    const status = vi.fn<(input: StatusInput<never, object>) => ReturnType<StatusFunction<never, object>>>(
      () => ({ readiness: { phase: 'ready', reason: 'Fine', message: '' } }),
    );
    planned({ ...given, own: { status } }).status[0]?.status(changes);
    return status.mock.lastCall![0];
  };

  it('is given what went wrong, and with which child', () => {
    const error = new OperatorError({ reason: 'KindNotInstalled', message: 'no' });
    const ref = { apiVersion: 'gateway.io/v1', kind: 'Route', name: 'web' };
    const changes = [{ ref: { ...ref, kind: 'Other' }, action: 'created' } as const];
    expect(input({}, changes).failures).toEqual([]);
    expect(input({}, [...changes, { ref, action: 'failed', error }]).failures).toEqual([{ ref, error }]);
  });
});

describe('A kind that hands over', () => {
  const deployment = { ...object(DEPLOYMENT, 'web'), spec: { replicas: 3 } };
  const step = { object: deployment, fieldManager: 'widget-replicas' };

  it('is asked with the custom resource and its children, and its steps come first', () => {
    const handOver = vi.fn(() => [step]);
    const { apply } = planned({ own: { handOver }, children: [deployment] });
    expect(handOver).toHaveBeenCalledExactlyOnceWith({ cr: CR, children: [deployment] });
    expect(apply.map(({ fieldManager, handOver: is }) => [fieldManager, is])).toEqual([
      ['widget-replicas', true],
      ['widget-controller', undefined],
    ]);
    expect(apply[0]?.owner).toEqual(apply[1]?.owner);
    expect(apply[0]?.owner).toMatchObject({ kind: CR.kind, uid: CR.metadata.uid, controller: true });
  });

  it('is looked at again at once where there is something to hand over of what was made', () => {
    const ref = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
    const { again } = planned({ own: { handOver: () => [step] } });
    expect(again?.([{ ref, action: 'created' }])).toBe(true);
    expect(again?.([{ ref, action: 'recreated' }])).toBe(true);
    expect(again?.([{ ref, action: 'configured' }])).toBe(false);
    const nothing = planned({ own: { handOver: () => [] } });
    expect(nothing.again?.([{ ref, action: 'created' }])).toBe(false);
    expect(planned({})).not.toHaveProperty('again');
  });

  it('applies nothing where it can not tell what to hand over', () => {
    const handOver = (): never => {
      throw new TypeError('oops');
    };
    expect(planned({ own: { handOver } })).toMatchObject({ apply: [], error: { reason: 'RenderFailed' } });
  });
});
