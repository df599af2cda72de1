import { Construct } from 'constructs';
import { inspect } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import type { ChangeSet } from '../../src/contract/change.js';
import type { Reader } from '../../src/contract/controller.js';
import type { EventProps, OwnStep, Plan } from '../../src/contract/plan.js';
import { OperatorError } from '../../src/contract/error.js';
import type { AdminFiles, Render } from '../../src/contract/kind.js';
import { OWN_CONSTRUCTS } from '../../src/render/renderer.js';
import { APPLIED_HASH_ANNOTATION, LAST_APPLIED_ANNOTATION } from '../../src/contract/names.js';
import { withCreated } from '../../src/values/created.js';
import { contentHash } from '../../src/values/json.js';
import type { AnyObject, CustomResource } from '../../src/contract/object.js';
import { OwnedChildren } from '../../src/author/owned-children.js';
import type { OwnFunctions, OwningKind } from '../../src/author/owned-children.js';
import { deletingReadiness } from '../../src/author/deletion.js';
import { readinessIn } from '../../src/author/order.js';
import { keepPod, podsOf } from '../../src/author/pods.js';
import { keepUnreadable } from '../../src/values/projections.js';
import { waitOf } from '../../src/values/readiness.js';
import { checksumAnnotations } from '../../src/author/references.js';
import { ReferenceResolver } from '../../src/author/references.js';
import { groupKind, resourceType } from '../../src/contract/resource.js';

const NOW = new Date('2026-01-02T03:04:05Z');
const WIDGET = resourceType({ apiVersion: 'demo.io/v1', kind: 'Widget' });
const SERVICE = resourceType({ apiVersion: 'v1', kind: 'Service' });
const DEPLOYMENT = resourceType({ apiVersion: 'apps/v1', kind: 'Deployment' });
const SECRET = resourceType({ apiVersion: 'v1', kind: 'Secret' });
const POD = resourceType({ apiVersion: 'v1', kind: 'Pod' });
const OWNER = {
  ...{ apiVersion: 'demo.io/v1', kind: 'Widget', name: 'web', uid: 'u' },
  ...{ controller: true, blockOwnerDeletion: true },
};
/** Of an object with our reference that another writer has made. */
const PLANTED = { labels: { planted: 'yes' } };
const GOING = { deletionTimestamp: '2026-01-01T00:00:00Z' };

type Meta = Partial<AnyObject['metadata']> & { readonly managedFields?: object[] };

function object(type: { apiVersion: string; kind: string }, name: string, meta: Meta = {}): AnyObject {
  return { apiVersion: type.apiVersion, kind: type.kind, metadata: { namespace: 'shop', name, ...meta } };
}

const WEB = object(SERVICE, 'web');

function cr(meta: object = {}, conditions?: object[]): CustomResource {
  const made = object(WIDGET, 'web', { uid: 'u', generation: 4, ...meta });
  return { ...made, spec: {}, ...(conditions && { status: { conditions } }) };
}

/** Never made: `render` stands for it, and without checks, since the tests render thousands of times. */
class Widget extends Construct {}
OWN_CONSTRUCTS.add(Widget);

const KIND: OwningKind = {
  ...{ name: 'widget', type: WIDGET, construct: Widget },
  ...{ children: [SERVICE, DEPLOYMENT], formerChildren: [SECRET] },
};

interface Given extends OwnFunctions {
  readonly cr?: CustomResource | undefined;
  readonly children?: readonly AnyObject[];
  readonly related?: readonly AnyObject[];
  readonly render?: Render;
  readonly inForce?: { readonly current: AdminFiles };
  readonly kind?: Partial<OwningKind>;
}

function controller({ render = () => [WEB], status, handOver, kind, ...given }: Given = {}): OwnedChildren {
  return new OwnedChildren(
    { ...KIND, ...kind },
    { ...given, render },
    {
      ...(status && { status }),
      ...(handOver && { handOver }),
    },
  );
}

function readerOf({ children = [], related = [], ...given }: Given): Reader {
  const found = 'cr' in given ? given.cr : cr();
  return {
    get: (type, key) =>
      groupKind(type) === 'Widget.demo.io' && key === 'shop/web' ? (found as never) : undefined,
    all: () => [],
    controlledBy: (type, uid, manager) =>
      children.filter(
        (child) =>
          uid === 'u' &&
          groupKind(child) === groupKind(type) &&
          (manager === undefined || child.metadata.labels?.planted === undefined),
      ),
    mappedTo: (type, key) => (type.kind === 'Pod' && key === 'shop/web' ? related : []),
    find: () => ({}),
  };
}

const planned = (given: Given = {}): Plan => controller(given).reconcile('shop/web', readerOf(given), NOW);

const statusOf = (plan: Plan, changes: ChangeSet = []) =>
  plan.conclude(changes).status[0]?.status as {
    readonly conditions: readonly Readonly<Record<string, string>>[];
  };

const eventsOf = (plan: Plan, changes: ChangeSet = []): EventProps[] =>
  plan.conclude(changes).events.map(({ event }) => event);

/** Steps in their order, such as `own Service web`; a barrier is `|`. */
const stepsOf = ({ steps }: Plan): string[] =>
  steps.map((step) =>
    step.do === 'barrier' ? '|' : `${step.do} ${step.object.kind} ${step.object.metadata.name}`,
  );

const ownSteps = ({ steps }: Plan): OwnStep[] => steps.filter((step) => step.do === 'own');
const applied = (plan: Plan): AnyObject[] => ownSteps(plan).map((step) => step.object);
const pruned = (plan: Plan): string[] => stepsOf(plan).filter((step) => step.startsWith('prune '));

/** Error of a plan that does nothing. */
function refusalOf(plan: Plan): OperatorError | undefined {
  expect(stepsOf(plan).filter((step) => step !== '|')).toEqual([]);
  return plan.error;
}

/** Time of the next reconcile, after nothing has changed. */
function timeOf(plan: Plan): Date | undefined {
  const { next } = plan.conclude([]);
  if (next === 'now') throw new Error('It is at once');
  return next;
}

const REF = { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: 'web' };
const failing = (retry: 'onChange' | 'backoff', reason = 'Invalid'): ChangeSet => [
  { ref: REF, action: 'failed', error: new OperatorError({ reason, message: 'no', retry }) },
];

describe('OwnedChildren, with the Pods of its workloads', () => {
  const podOf = (replicaSet: string | undefined, waiting: string) => ({
    ...object(POD, 'web-1'),
    ...keepPod({
      ...object(POD, 'web-1', {
        ...(replicaSet && {
          ownerReferences: [{ ...OWNER, apiVersion: 'apps/v1', kind: 'ReplicaSet', name: replicaSet }],
        }),
      }),
      status: {
        phase: 'Pending',
        containerStatuses: [{ name: 'web', image: 'web:1', state: { waiting: { reason: waiting } } }],
      },
    }),
  });
  const deployment = (available: number) => ({
    ...object(DEPLOYMENT, 'web', { generation: 1 }),
    status: {
      ...{ observedGeneration: 1, replicas: 3, updatedReplicas: 3, availableReplicas: available },
      ...(available < 3 && { unavailableReplicas: 3 - available }),
      conditions: [{ type: 'Progressing', status: 'True', message: 'ReplicaSet "web-5d8f" is progressing.' }],
    },
  });
  const readyOf = (related: readonly AnyObject[], available = 2, more: Given = {}) => {
    const kind = { related: [{ ...POD, ...podsOf(WIDGET), namespaced: true, plural: 'pods' }] };
    const given = {
      kind,
      related,
      children: [deployment(available)],
      render: () => [deployment(available)],
      ...more,
    };
    const [ready] = statusOf(planned(given)).conditions;
    return [ready?.status, ready?.reason, ready?.message];
  };
  const counted = 'Deployment shop/web: 2 of 3 pods are available';
  const pull = 'image "web:1" of container "web" can\'t be pulled';

  it('says what keeps them from running, and of those of the present spec alone', () => {
    expect(readyOf([])).toEqual(['Unknown', 'RollingOut', counted]);
    expect(readyOf([podOf('web-5d8f', 'ErrImagePull')])).toEqual([
      ...['False', 'ImagePullBackOff', `${counted}; ${pull}`],
    ]);
    expect(readyOf([podOf('web-0a1b', 'ErrImagePull')])).toEqual(['Unknown', 'RollingOut', counted]);
    const keep = () => ({ ip: '10.0.0.1' });
    const kind = { related: [{ ...POD, ...podsOf(WIDGET, { keep }), namespaced: true, plural: 'pods' }] };
    expect(readyOf([podOf('web-5d8f', 'ErrImagePull')], 2, { kind })[1]).toBe('ImagePullBackOff');
    // A StatefulSet, or a Deployment of a longer name.
    expect(readyOf([podOf('web-db-0a1b', 'ErrImagePull')])[1]).toBe('ImagePullBackOff');
  });

  it.each([undefined, 'other-5d8f'])(
    'says nothing of a Pod with its label that %s controls',
    (replicaSet) => {
      expect(readyOf([podOf(replicaSet, 'ErrImagePull')])).toEqual(['Unknown', 'RollingOut', counted]);
    },
  );

  it.each([{}, [null], 'none'])('says so beside a child whose conditions are %j', (conditions) => {
    const children = [{ ...WEB, status: { conditions } }, deployment(2)];
    const given = { children, render: () => children };
    expect(readyOf([podOf('web-5d8f', 'ErrImagePull')], 2, given)[1]).toBe('ImagePullBackOff');
  });

  it('is ready whatever Pods with its label do, and leaves a status function its word', () => {
    expect(readyOf([podOf('web-5d8f', 'ErrImagePull')], 3)[0]).toBe('True');
    const readiness = { phase: 'progressing', reason: 'Mine', message: 'Wait' } as const;
    const status = () => ({ readiness });
    expect(readyOf([podOf('web-5d8f', 'ErrImagePull')], 2, { status })).toEqual(['Unknown', 'Mine', 'Wait']);
  });
});

describe('OwnedChildren, watches', () => {
  const watchOf = (kind: string, more: Partial<OwningKind> = {}) =>
    controller({ kind: more }).watches.find(({ type }) => type.kind === kind)!;

  it.each([
    ['its owner', OWNER, ['shop/web']],
    ['its owner in another version', { ...OWNER, apiVersion: 'demo.io/v2' }, ['shop/web']],
    ['no owner of another kind', { ...OWNER, kind: 'Gadget' }, []],
    ['no owner of another group', { ...OWNER, apiVersion: 'other.io/v1' }, []],
    ['no owner that does not control it', { ...OWNER, controller: false }, []],
  ])('map a child to %s', (_, owner, keys) => {
    expect(watchOf('Service').mapsTo(object(SERVICE, 'x', { ownerReferences: [owner] }))).toEqual(keys);
  });

  it('keep of a child what every child has and what the kind asks for, and never another identity', () => {
    const keep = ({ spec }: AnyObject) => ({
      ...{ kind: 'Other', status: 'mine', metadata: { name: 'other', labels: { kept: 'yes' } } },
      spec: { replicas: (spec as { replicas: number }).replicas },
    });
    const live = {
      ...object(DEPLOYMENT, 'web', { uid: 'd', labels: { a: 'b' }, managedFields: [{}] }),
      ...{ spec: { replicas: 3, paused: true }, status: { replicas: 2 } },
    };
    const { metadata, ...rest } = watchOf('Deployment', { children: [{ ...DEPLOYMENT, keep }] }).keep!(live)!;
    expect(rest).toEqual({
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', spec: { replicas: 3 }, status: { replicas: 2 } },
    });
    expect(metadata).toMatchObject({ name: 'web', uid: 'd', labels: { kept: 'yes' } });
  });

  it('judge a child by the status that the kind makes of it, where it makes one', () => {
    const conditions = [{ type: 'Ready', status: 'False', reason: 'Degraded', message: 'no pods' }];
    const keep = ({ status }: AnyObject) => ({
      status: (status as { health?: string }).health === undefined ? undefined : { conditions },
    });
    const { keep: kept } = watchOf('Deployment', { children: [{ ...DEPLOYMENT, keep }] });
    const live = object(DEPLOYMENT, 'web');
    expect(kept!({ ...live, status: { health: 'Degraded' } })).toMatchObject({ status: { conditions } });
    expect(kept!({ ...live, status: { replicas: 2 } })).toMatchObject({ status: { replicas: 2 } });
  });

  it('keep of the spec of a child what its readiness needs, beside what the kind asks for', () => {
    const set = { ...DEPLOYMENT, kind: 'DaemonSet' };
    const spec = { template: 't', updateStrategy: { type: 'OnDelete' }, minReadySeconds: 1 };
    const keep = () => ({ spec: { template: spec.template } });
    const watch = watchOf('DaemonSet', { children: [{ ...set, keep }] });
    expect(watch.keep!({ ...object(set, 'web'), spec })!.spec).toEqual({
      ...{ template: 't', updateStrategy: { type: 'OnDelete' } },
    });
  });

  it('keep of related objects identity, labels and what the kind asks for, and map them by name', () => {
    const keep = ({ reason }: AnyObject) => (reason ? { reason } : undefined);
    const nameOf = ({ metadata }: AnyObject) => metadata.labels?.['demo.io/widget'];
    const watch = watchOf('Pod', { related: [{ ...POD, selector: 'demo.io/widget', keep, nameOf }] });
    const labels = { 'demo.io/widget': 'web' };
    const live = object(POD, 'web-1', { uid: 'p', labels, managedFields: [{}] });
    expect(watch.keep!({ ...live, spec: {} })).toBeUndefined();
    expect(watch.keep!({ ...live, spec: {}, reason: 'Crash' })).toEqual({
      ...object(POD, 'web-1', { uid: 'p', labels }),
      reason: 'Crash',
    });
    expect(watch.mapsTo(live)).toEqual(['shop/web']);
    expect(watch.mapsTo(object(POD, 'web-1'))).toEqual([]);
  });
});

describe('OwnedChildren, plans', () => {
  it('apply what is rendered, as its controller, and write the status', () => {
    const plan = planned();
    expect(plan.steps).toEqual([
      { do: 'own', object: WEB, fieldManager: 'widget-controller', owner: OWNER },
      { do: 'barrier' },
    ]);
    expect(plan.conclude([]).status).toMatchObject([
      { fieldManager: 'widget-status', target: { metadata: { uid: 'u' } } },
    ]);
    expect(plan.error).toBeUndefined();
  });

  it('delete nothing that has their reference, and was not applied for them', () => {
    const children = [WEB, object(SERVICE, 'planted', PLANTED), object(SECRET, 'former', PLANTED)];
    expect(pruned(planned({ children }))).toEqual([]);
  });

  it('hand over no field of an object that was not applied for them', () => {
    const given: unknown[] = [];
    const handOver: OwnFunctions['handOver'] = ({ children }) => {
      given.push(...children);
      return [];
    };
    planned({ children: [WEB, object(SERVICE, 'planted', PLANTED)], handOver });
    expect(given).toEqual([WEB]);
  });

  it('take no notice of an object for the status that the rendering does not name', () => {
    const ready = { status: { conditions: [{ type: 'Available', status: 'True' }], readyReplicas: 1 } };
    const seen: unknown[] = [];
    const status: OwnFunctions['status'] = ({ children }) => {
      seen.push(...children);
      return {};
    };
    const children = [
      object(DEPLOYMENT, 'web'),
      { ...object(DEPLOYMENT, 'planted', PLANTED), ...ready },
      { ...object(DEPLOYMENT, 'going', GOING), ...ready },
    ];
    const plan = planned({ children, status, render: () => [object(DEPLOYMENT, 'web')] });
    statusOf(plan);
    statusOf(plan, [{ ref: REF, action: 'configured' }]);
    expect(seen).toEqual([children[0], children[0]]);
  });

  it('recreate what the kind says, and nothing else', () => {
    const children = [SERVICE, { ...DEPLOYMENT, recreate: true }];
    const plan = planned({ kind: { children }, render: () => [WEB, object(DEPLOYMENT, 'web')] });
    expect(ownSteps(plan).map(({ recreate }) => recreate)).toEqual([undefined, true]);
  });

  it.each([
    ['gone', undefined],
    ['on its way out', cr(GOING)],
  ])('are empty for what is %s', (_, gone) => {
    const plan = planned({ cr: gone, children: [object(SERVICE, 'old')] });
    expect({ ...plan, conclude: plan.conclude([]) }).toEqual({
      ...{ steps: [], conclude: { status: [], events: [], wakes: [] } },
    });
  });

  it('delete behind all applies what is no longer rendered, of present and former types, but not what is going already', () => {
    const children = [
      ...[WEB, object(SERVICE, 'old'), object(DEPLOYMENT, 'web'), object(SECRET, 'former')],
      object(SERVICE, 'going', GOING),
    ];
    expect(stepsOf(planned({ children }))).toEqual([
      ...['own Service web', '|', 'prune Service old', 'prune Deployment web', 'prune Secret former'],
    ]);
  });

  it('read the children once where nothing changes, and once more after a change', () => {
    const given = { children: [WEB], status: () => ({}), handOver: () => [] };
    const reader = readerOf(given);
    const controlledBy = vi.spyOn(reader, 'controlledBy');
    const plan = controller(given).reconcile('shop/web', reader, NOW);
    statusOf(plan, [{ ref: REF, action: 'unchanged' }]);
    const asked = controlledBy.mock.calls.map(([type, , manager]) => `${type.kind} ${manager ?? ''}`);
    const own = ['Service widget-controller', 'Deployment widget-controller', 'Secret widget-controller'];
    expect(asked).toEqual(['Service ', 'Deployment ', ...own]);
    statusOf(plan, [{ ref: REF, action: 'configured' }]);
    expect(controlledBy).toHaveBeenCalledTimes(7);
  });

  it.each([
    ['an OperatorError', new OperatorError({ reason: 'BadPort', message: 'port 0' }), 'BadPort'],
    ['anything else', new TypeError('oops'), 'RenderFailed'],
  ])('stall when rendering throws %s, and touch no child', (_, thrown, reason) => {
    const render = (): never => {
      throw thrown;
    };
    const plan = planned({ children: [object(SERVICE, 'old')], render });
    expect(refusalOf(plan)?.reason).toBe(reason);
    expect(statusOf(plan).conditions).toMatchObject([
      { type: 'Ready', status: 'False', reason },
      { type: 'Reconciling', status: 'False' },
      { type: 'Stalled', status: 'True' },
    ]);
  });

  const step = { object: object(DEPLOYMENT, 'web'), fieldManager: 'widget-replicas' };

  it('begin with what is to be handed over', () => {
    const handOver = vi.fn(() => [step]);
    const { steps } = planned({ handOver, children: [WEB] });
    expect(handOver).toHaveBeenCalledExactlyOnceWith({ cr: cr(), children: [WEB] });
    expect(steps).toMatchObject([
      { do: 'handOver', ...step },
      { do: 'own', fieldManager: 'widget-controller', owner: OWNER },
      { do: 'barrier' },
    ]);
  });

  it.each([
    ['created', [step], 'now'],
    ['recreated', [step], 'now'],
    ['configured', [step], undefined],
    ['created', [], undefined],
  ] as const)('that %s with %j to be handed over are made again: %s', (action, steps, next) => {
    const changes: ChangeSet = [{ ref: REF, action }];
    expect(planned({ handOver: () => steps }).conclude(changes).next).toBe(next);
    expect(planned().conclude(changes).next).toBeUndefined();
  });

  it('apply nothing where the hand-over fails', () => {
    const handOver = (): never => {
      throw new TypeError('oops');
    };
    expect(refusalOf(planned({ handOver }))?.reason).toBe('RenderFailed');
  });
});

describe('OwnedChildren, status', () => {
  it('carries the generation that it speaks of', () => {
    expect(statusOf(planned())).toMatchObject({
      observedGeneration: 4,
      conditions: [{ type: 'Ready', status: 'True', observedGeneration: 4 }, {}, {}],
    });
  });

  it('takes fields, further conditions and the time of the next look from the function of the kind', () => {
    const readiness = { phase: 'ready', reason: 'Fine', message: '' } as const;
    const extra = { type: 'Extra', status: 'True', reason: 'X', message: '' } as const;
    const requeueAt = new Date('2026-01-02T04:00:00Z');
    const status = vi.fn(() => ({ readiness, fields: { replicas: 2 }, conditions: [extra], requeueAt }));
    const changes = failing('backoff');
    const plan = planned({ status });
    expect(statusOf(plan)).toMatchObject({
      replicas: 2,
      conditions: [{ reason: 'Fine' }, {}, {}, { type: 'Extra', lastTransitionTime: '2026-01-02T03:04:05Z' }],
    });
    expect(plan.conclude(changes).next).toBe(requeueAt);
    expect(status).toHaveBeenLastCalledWith({
      ...{ cr: cr(), children: [], related: [], now: NOW },
      failures: [{ ref: REF, error: changes[0]?.error }],
    });
  });

  it.each([
    ['onChange', 'False', 'True'],
    ['backoff', 'True', 'False'],
  ] as const)('reports an apply that failed: %s', (retry, reconciling, stalled) => {
    const { conditions } = statusOf(planned(), failing(retry));
    expect(conditions.map(({ status }) => status)).toEqual(['False', reconciling, stalled]);
    expect(conditions[0]?.reason).toBe('Invalid');
  });

  const throwing = (): never => {
    throw new TypeError('no children');
  };
  it.each([
    ['throws', throwing, /computed: no children \(at test\/contract\/owned-children\.test\.ts:\d+:\d+\)$/],
    [
      'returns nothing of use',
      () => undefined as never,
      /^The status of Widget shop\/web can't be computed: /,
    ],
  ])('reports that the function of the kind %s', (_, status, message) => {
    const plan = planned({ status });
    expect(statusOf(plan)).toMatchObject({
      observedGeneration: 4,
      conditions: [
        { status: 'False', reason: 'StatusFailed', message: expect.stringMatching(message) as string },
        { type: 'Reconciling', status: 'True' },
        { type: 'Stalled', status: 'False' },
      ],
    });
    const error = { reason: 'StatusFailed', retry: 'backoff', isBug: true };
    expect(plan.conclude([])).toMatchObject({
      error,
      events: [{ event: { type: 'Warning', reason: 'StatusFailed' } }],
    });
  });

  const copy = { annotations: { [LAST_APPLIED_ANNOTATION]: 'hunter2' } };
  it.each<[name: 'status' | 'handOver', value: object, meta?: Meta]>([
    ['status', { password: 'hunter2' }],
    ['handOver', { password: 'hunter2' }],
    ['status', {}, copy],
  ])(
    'says type and place alone of what %s throws that was given values of a Secret: %j %j',
    (name, value, meta) => {
      const throws = ({ children: [secret] }: { readonly children: readonly AnyObject[] }): never =>
        JSON.parse(secret?.password as string) as never;
      const secret = { ...object(SECRET, 'web', meta), ...value };
      const given = {
        [name]: throws as never,
        children: [secret],
        render: () => [secret],
        kind: { children: [SECRET], formerChildren: [] },
      };
      const plan = planned(given);
      expect(statusOf(plan).conditions[0]?.message).toMatch(
        /SyntaxError, whose text is not shown, since Secrets were read \(at test\/contract\/owned-children\.test\.ts:\d+:\d+\)$/,
      );
      expect(inspect([plan.error, plan.conclude([]).error], { depth: 9 })).not.toContain('hunter2');
    },
  );

  it.each<[what: string, secret: object, status: () => never, said: string]>([
    ['a function that was given a Secret without values throws', {}, throwing, 'no children'],
    [
      'a field is called that the schema lacks',
      { password: 'hunter2' },
      () => ({ fields: { rowz: 1 } }) as never,
      'it has a field rowz',
    ],
  ])('says all of it where %s', (_, kept, status, said) => {
    const secret = { ...object(SECRET, 'web'), ...kept };
    const kind = { children: [SECRET], formerChildren: [], statusFields: ['rows'] };
    const plan = planned({ status, children: [secret], render: () => [secret], kind });
    expect(statusOf(plan).conditions[0]?.message).toContain(`computed: ${said}`);
  });

  it('judges by the children where the function of the kind does not', () => {
    const status = () => ({ fields: { url: 'http://web' } });
    const child = { ...object(SERVICE, 'web', { generation: 2 }), status: { observedGeneration: 1 } };
    expect(statusOf(planned({ status, children: [child] }))).toMatchObject({
      url: 'http://web',
      conditions: [{ status: 'Unknown', reason: 'RollingOut' }, {}, {}],
    });
    expect(statusOf(planned({ status })).conditions[0]).toMatchObject({ status: 'True' });
  });

  it('reports a field that the schema does not have', () => {
    const status = () => ({ fields: { url: 'http://web' } });
    const readyOf = (kind: Partial<OwningKind>) => statusOf(planned({ status, kind })).conditions[0];
    expect(readyOf({ statusFields: ['conditions', 'uri'] })).toMatchObject({
      reason: 'StatusFailed',
      message: expect.stringContaining(
        'it has a field url, of which the schema knows nothing; add url: {',
      ) as string,
    });
    for (const kind of [{}, { statusFields: ['url'] }])
      expect(readyOf(kind)).toMatchObject({ status: 'True' });
  });
});

describe('OwnedChildren, what can not be read', () => {
  const error = new OperatorError({ reason: 'TooDeep', message: 'Widget shop/web is too deep' });
  const conditions = [{ type: 'Ready', status: 'False', lastTransitionTime: '2026-01-01T00:00:00Z' }];

  it('stalls the custom resource, and asks nothing of the kind', () => {
    const render = vi.fn();
    const unreadable = keepUnreadable(cr({}, conditions) as never, error) as never;
    const plan = planned({ cr: unreadable, render, status: render, children: [WEB] });
    expect(refusalOf(plan)?.reason).toBe('TooDeep');
    expect(statusOf(plan).conditions[0]).toMatchObject({
      ...{ type: 'Ready', status: 'False', reason: 'TooDeep', message: 'Widget shop/web is too deep' },
      lastTransitionTime: '2026-01-01T00:00:00Z',
    });
    expect(render).not.toHaveBeenCalled();
  });

  it('stalls one whose construct would read it of a child', () => {
    const children = [keepUnreadable(object(SERVICE, 'web', { uid: 's' }), error)];
    expect(planned({ kind: { observes: true }, children }).error?.reason).toBe('TooDeep');
    expect(planned({ children }).error).toBeUndefined();
  });

  it.each([
    ['contains itself', () => circle],
    ['is no JSON', () => ({ count: 1n })],
    ['is nothing', () => undefined],
  ])('is reported where the status %s', (_, fields) => {
    const status = () => (fields() ? { fields: fields() } : undefined) as never;
    expect(statusOf(planned({ status })).conditions[0]).toMatchObject({ reason: 'StatusFailed' });
  });
  const circle: Record<string, unknown> = {};
  circle.a = circle;
});

describe('OwnedChildren, an object that waits for another', () => {
  const JOB = resourceType({ apiVersion: 'batch/v1', kind: 'Job' });
  const job = { ...object(JOB, 'migrate'), spec: { version: 2 } };
  const web = { ...object(DEPLOYMENT, 'web'), spec: { version: 2 } };
  const started = { startTime: '2026-01-02T03:00:00Z' };
  const ended = (type: string) => ({ ...started, conditions: [{ type, status: 'True', message: 'It did' }] });
  const live = (rendered: AnyObject, status: object = {}, meta: object = {}): AnyObject => {
    const annotations = { [APPLIED_HASH_ANNOTATION]: contentHash(rendered) };
    return { ...rendered, metadata: { ...rendered.metadata, uid: 'x', annotations, ...meta }, status };
  };
  const old = live({ ...web, spec: { version: 1 } });
  const render: Render = () => Object.assign([job, web], { dependencies: new Map([[web, [job]]]) });
  const kind = { children: [JOB, DEPLOYMENT] };
  const readyOf = (children: readonly AnyObject[], own?: CustomResource) => {
    const plan = planned({ kind, render, children, ...(own && { cr: own }) });
    const waits = ownSteps(plan).map(
      ({ object: one, waitsFor = [] }) => waitOf(one, waitsFor, readinessIn(children))?.ref.name,
    );
    const { conditions } = statusOf(plan);
    const waiting = conditions.find(({ type }) => type === 'Waiting');
    return { waits, ready: conditions[0], waiting, requeueAt: timeOf(plan)?.toISOString() };
  };

  const WAITING = 'Deployment shop/web waits: Job shop/migrate has yet to';
  it.each<[what: string, children: readonly AnyObject[], reason: string, message: string]>([
    ['is not there', [old], 'WaitingForDependency', `${WAITING} be applied`],
    [
      'is of another rendering',
      [live({ ...job, spec: {} }, ended('Complete')), old],
      'WaitingForDependency',
      `${WAITING} be applied`,
    ],
    [
      'is being deleted',
      [live(job, ended('Complete'), GOING), old],
      'WaitingForDependency',
      `${WAITING} be applied`,
    ],
    ['is a Job that runs', [live(job, started), old], 'WaitingForDependency', `${WAITING} complete`],
    [
      'has failed',
      [live(job, ended('Failed')), old],
      'JobFailed',
      'Job shop/migrate: It did; Deployment shop/web waits for it',
    ],
  ])('waits where the other %s', (_, children, reason, message) => {
    const { waits, ready } = readyOf(children);
    expect(waits).toEqual([undefined, 'migrate']);
    expect(ready).toMatchObject({ reason, message });
  });

  it.each([
    ['the other is ready', [live(job, ended('Complete')), old]],
    ['it is as rendered, so that drift is corrected', [live(web)]],
  ])('does not wait where %s', (_, children) => {
    expect(readyOf(children).waits).toEqual([undefined, undefined]);
  });

  it('is late ten minutes after it began to wait, however long Ready was Unknown before', () => {
    const children = [live(job, started), old];
    const rolling = { type: 'Ready', status: 'Unknown', lastTransitionTime: '2026-01-02T02:00:00Z' };
    const since = (lastTransitionTime: string): CustomResource =>
      cr({}, [rolling, { type: 'Waiting', status: 'True', lastTransitionTime }]);
    const first = readyOf(children, cr({}, [rolling]));
    expect(first).toMatchObject({
      ready: { status: 'Unknown', reason: 'WaitingForDependency' },
      waiting: { status: 'True', lastTransitionTime: '2026-01-02T03:04:05Z' },
      requeueAt: '2026-01-02T03:14:05.000Z',
    });
    expect(readyOf(children, since('2026-01-02T02:54:06Z'))).toMatchObject({
      ready: { reason: 'WaitingForDependency' },
      requeueAt: '2026-01-02T03:04:06.000Z',
    });
    const late = readyOf(children, since('2026-01-02T02:54:05Z'));
    expect(late.requeueAt).toBeUndefined();
    expect(late).toMatchObject({
      ready: {
        ...{ status: 'False', reason: 'DependencyTimeout' },
        message: 'Deployment shop/web waits for more than ten minutes: Job shop/migrate has yet to complete',
      },
      waiting: { lastTransitionTime: '2026-01-02T02:54:05Z' },
    });
    expect(readyOf([live(web)], since('2026-01-02T02:54:05Z')).waiting).toBeUndefined();
    for (const written of ['2026-01-01T00:00:00+99:99', '2036-01-01T00:00:00Z'])
      expect(readyOf(children, since(written)).requeueAt).toBe('2026-01-02T03:14:05.000Z');
  });
});

describe('OwnedChildren, references', () => {
  const CONFIG_MAP = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });
  const theme = { apiVersion: 'v1', kind: 'ConfigMap', name: () => 'web', optional: true };
  const kind = { children: [CONFIG_MAP], references: new ReferenceResolver(WIDGET, { theme }) };
  const render: Render = (_, __, inputs) => [
    { ...object(CONFIG_MAP, 'web'), data: checksumAnnotations(inputs?.references ?? {}) },
  ];
  it.each([
    ['that is there', theme, { theme: { ...object(CONFIG_MAP, 'web'), data: { text: 'hi' } } }],
    ['unless one is missing', { ...theme, optional: false }, 1],
  ])('gives the status function what the construct reads, %s', (_, reference, expected) => {
    const found = reference.optional ? [{ ...object(CONFIG_MAP, 'web'), data: { text: 'hi' } }] : [];
    const find: Reader['find'] = ({ keep }) => ({ objects: found.map(keep) });
    const references = new ReferenceResolver(WIDGET, { theme: reference });
    for (const [remembers, isBroken] of [
      [false, false],
      [true, false],
      [true, true],
    ] as const) {
      const read: unknown[] = [];
      const status = (input: { readonly references: unknown; readonly failures: readonly unknown[] }) => {
        read.push(input.references ?? input.failures.length);
        return {};
      };
      const broken: Render = () => {
        throw new Error('broken');
      };
      const one = controller({
        kind: { ...kind, references, remembers },
        render: isBroken ? broken : render,
        status,
      });
      one.reconcile('shop/web', { ...readerOf({}), find }, NOW).conclude([]);
      expect(read).toEqual(read.map(() => expected));
      expect(read).toHaveLength(remembers ? 2 : 1);
    }
  });

  it('holds one that refers to what it makes itself, and stalls it once that is sure', () => {
    const one = controller({ kind, render });
    const planAt = (milliseconds: number, live?: AnyObject): Plan => {
      const find: Reader['find'] = ({ keep }) => ({ objects: live ? [keep(live)] : [] });
      return one.reconcile('shop/web', { ...readerOf({}), find }, new Date(NOW.getTime() + milliseconds));
    };
    const made: AnyObject[] = [];
    for (let turn = 0; turn < 1_000; turn++) made.push(...applied(planAt(turn, made.at(-1))));
    const last = made.at(-1)!;
    expect(new Set(made.map(contentHash)).size).toBeLessThan(400);
    expect(planAt(15_000, last)).toMatchObject({
      ...{ steps: [{ do: 'own', object: last }, { do: 'barrier' }], error: { reason: 'NeverSettles' } },
    });
    const theirs = { ...object(CONFIG_MAP, 'web'), data: {} };
    expect(applied(planAt(70_000, theirs))).toEqual(render(KIND, cr(), { references: { theme: theirs } }));
  });

  it.each([
    ['flaps for an hour', 1_000, 3_600],
    ['flaps fast', 20, 3_000],
    ['flaps slowly', 9_000, 400],
    ['flaps slowly for a day', 9_000, 9_600],
    ['flaps every five minutes', 300_000, 2_000],
  ])('follows what others change, which %s, and what they leave in the end', (_, milliseconds, most) => {
    const one = controller({ kind, render });
    const theirs = (text: string) => ({ ...object(CONFIG_MAP, 'web'), data: { text } });
    const planAt = (turn: number, text: string, at = NOW.getTime() + turn * milliseconds): Plan => {
      const find: Reader['find'] = ({ keep }) => ({ objects: [keep(theirs(text))] });
      const plan = one.reconcile('shop/web', { ...readerOf({}), find }, new Date(at));
      const next = timeOf(plan)?.getTime();
      const isDue = next !== undefined && next < NOW.getTime() + (turn + 1) * milliseconds;
      return isDue && !plan.error ? planAt(turn, text, next) : plan;
    };
    let followed = 0;
    const wanted = (text: string) => render(KIND, cr(), { references: { theme: theirs(text) } })[0];
    for (let turn = 0; turn < most; turn++) {
      const plan = planAt(turn, String(turn % 2));
      expect(plan.error).toBeUndefined();
      if (contentHash(applied(plan)[0]!) === contentHash(wanted(String(turn % 2))!)) followed++;
    }
    expect(followed).toBeGreaterThan(0.85 * most);
    expect(applied(planAt(most, 'the end'))[0]).toEqual(wanted('the end'));
  });

  it('holds one again that follows its own effects after others have changed what it reads', () => {
    const one = controller({ kind, render });
    let at = NOW.getTime();
    const planWith = (live: AnyObject): Plan => {
      const find: Reader['find'] = ({ keep }) => ({ objects: [keep(live)] });
      return one.reconcile('shop/web', { ...readerOf({}), find }, new Date((at += 1_000)));
    };
    const theirs = (turn: number) => ({ ...object(CONFIG_MAP, 'web'), data: { text: String(turn % 2) } });
    for (let turn = 0; turn < 100; turn++) planWith(theirs(turn));
    let stalls = 0;
    let live = theirs(0);
    for (let turn = 0; turn < 5_000; turn++) {
      const plan = planWith(live);
      live = applied(plan)[0] as typeof live;
      if (plan.error) stalls++;
    }
    expect(stalls).toBeGreaterThan(0);
  });

  it('follows its own effects for a bounded number of writes after each edit of what it holds', () => {
    const one = controller({ kind, render });
    let at = NOW.getTime();
    const planWith = (live: AnyObject): Plan => {
      const find: Reader['find'] = ({ keep }) => ({ objects: [keep(live)] });
      return one.reconcile('shop/web', { ...readerOf({}), find }, new Date((at += 20)));
    };
    let live: AnyObject = WEB;
    let writes = 0;
    for (let edit = 0; edit < 40; edit++) {
      live = { ...object(CONFIG_MAP, 'web'), data: { text: String(edit % 2) } };
      for (let next; contentHash((next = applied(planWith(live))[0]!)) !== contentHash(live); live = next)
        writes++;
    }
    expect(writes).toBeLessThan(10_000);
    at += 15_000;
    expect(planWith(live)).toMatchObject({ error: { reason: 'NeverSettles' } });
  });

  it('applies what others leave behind in the middle of a hold, a minute later, and recreates what is deleted', () => {
    const one = controller({ kind, render });
    const theirs = (text: string) => ({ ...object(CONFIG_MAP, 'web'), data: { text } });
    const planAt = (milliseconds: number, text: string): Plan => {
      const find: Reader['find'] = ({ keep }) => ({ objects: [keep(theirs(text))] });
      return one.reconcile('shop/web', { ...readerOf({}), find }, new Date(NOW.getTime() + milliseconds));
    };
    for (let turn = 0; turn < 23; turn++) planAt(turn, String(turn % 2));
    const held = planAt(12_000, 'the end');
    expect(statusOf(held).conditions[0]).toMatchObject({ status: 'Unknown', reason: 'Settling' });
    expect(applied(held)).toHaveLength(1);
    const at = (milliseconds: number) => new Date(NOW.getTime() + milliseconds);
    expect(timeOf(held)).toEqual(at(22_000));
    const stalled = planAt(22_000, 'the end');
    expect(stalled).toMatchObject({ error: { reason: 'NeverSettles' }, steps: held.steps });
    expect(timeOf(stalled)).toEqual(at(72_000));
    const over = planAt(72_000, 'the end');
    expect(over.error).toBeUndefined();
    expect(applied(over)).toEqual(render(KIND, cr(), { references: { theme: theirs('the end') } }));
  });
});

describe('OwnedChildren, a construct that observes its children', () => {
  const ip = (value: string) => ({ loadBalancer: { ingress: [{ ip: value }] } });
  const service = (address: string, meta: Meta = {}): AnyObject => ({
    ...object(SERVICE, 'web', {
      uid: 's',
      resourceVersion: '7',
      ownerReferences: [OWNER],
      generation: 2,
      ...meta,
    }),
    status: ip(address),
  });
  const seen: unknown[] = [];
  const render: Render = (_, __, inputs) => {
    seen.push(inputs?.observed);
    return [{ ...WEB, data: inputs?.observed?.map(({ status }) => status) }];
  };
  const kind = { observes: true };
  const planOf = (one: OwnedChildren, children: readonly AnyObject[], now = NOW, own = cr()): Plan =>
    one.reconcile('shop/web', readerOf({ children, cr: own }), now);

  it('gives it identity, generation and status, in a fixed order, and nothing to a kind that does not ask for it', () => {
    const other = object(DEPLOYMENT, 'web', { uid: 'd' });
    const both: Render = (...given) => [...render(...given), object(DEPLOYMENT, 'web')];
    planOf(controller({ render: both, kind }), [service('192.0.2.1'), other]);
    expect(seen.at(-1)).toEqual([
      object(DEPLOYMENT, 'web'),
      { ...object(SERVICE, 'web', { generation: 2 }), status: ip('192.0.2.1') },
    ]);
    planOf(controller({ render }), [service('192.0.2.1')]);
    expect(seen.at(-1)).toBeUndefined();
  });

  it('gives it the related objects, without what differs with each write, where the kind reads them', () => {
    const pod = object(POD, 'a', { uid: 'p', resourceVersion: '7' });
    const read: unknown[] = [];
    const reading: Render = (_, __, inputs) => {
      read.push(inputs?.related);
      return [WEB];
    };
    const related = [{ ...POD, ...podsOf(WIDGET), namespaced: true, plural: 'pods' }];
    for (const readsRelated of [true, false])
      planned({ render: reading, kind: { readsRelated, related }, related: [pod] });
    expect(read[0]).toEqual([object(POD, 'a')]);
    expect(read.at(-1)).toBeUndefined();
  });

  /** Renders `old` for as long as it is there and `new` isn't ready, and always `new`. */
  const replacing: Render = (_, __, inputs) => {
    const has = (name: string, ready = false): boolean =>
      inputs?.observed?.some((one) => one.metadata.name === name && (!ready || one.status)) === true;
    const made = inputs?.observed?.map(({ metadata }) => metadata.name);
    const current = { ...object(SERVICE, 'new'), made };
    return has('old') && !has('new', true) ? [current, object(SERVICE, 'old')] : [current];
  };
  const madeOf = (plan: Plan) => applied(plan)[0]?.made;

  it('reads nothing that neither this rendering nor the last one names, also after a start', () => {
    const planted = object(SERVICE, 'planted', PLANTED);
    const forged = object(SERVICE, 'forged');
    const one = controller({ render: replacing, kind });
    expect(madeOf(planOf(one, [planted, forged]))).toEqual([]);
    expect(madeOf(planOf(one, [planted, forged, object(SERVICE, 'new')]))).toEqual(['new']);
    const restarted = controller({ render: replacing, kind });
    expect(madeOf(planOf(restarted, [planted, forged, object(SERVICE, 'new')]))).toEqual(['new']);
  });

  it('reads what it renders only because it is there, also after a start, until it is not rendered any more', () => {
    const children = [object(SERVICE, 'new'), object(SERVICE, 'old')];
    const one = controller({ render: replacing, kind });
    for (const plan of [planOf(one, children), planOf(one, children)]) {
      expect(stepsOf(plan)).toEqual(['own Service new', 'own Service old', '|']);
      expect(madeOf(plan)).toEqual(['new', 'old']);
    }
    const ready = [{ ...object(SERVICE, 'new'), status: {} }, object(SERVICE, 'old')];
    expect(stepsOf(planOf(one, ready))).toEqual(['own Service new', '|', 'prune Service old']);
    expect(madeOf(planOf(one, ready))).toEqual(['new']);
  });

  it('gives it labels and annotations of others, the deletion, and whether a child is current', () => {
    const createOnly = ['.spec'];
    const types = { ...kind, children: [{ ...SERVICE, createOnly }, DEPLOYMENT] };
    const sized = (size: number): AnyObject => ({ ...WEB, spec: { size } });
    const recorded = withCreated(sized(1), createOnly);
    const annotations = { ...recorded.metadata.annotations, [APPLIED_HASH_ANNOTATION]: 'h', note: 'mine' };
    const labels = { tier: 'x' };
    const child = object(SERVICE, 'web', { uid: 's', ...GOING, labels, annotations });
    const sizes: Render = (...given) => {
      render(...given);
      return [sized(2), object(DEPLOYMENT, 'web')];
    };
    const shown: unknown[] = [];
    const status = ({ children }: { readonly children: readonly AnyObject[] }) => {
      shown.push(children.map((one) => one.isCurrent));
      return {};
    };
    const plan = planOf(controller({ render: sizes, kind: types, status }), [
      child,
      object(DEPLOYMENT, 'web'),
    ]);
    plan.conclude([]);
    const metadata = { namespace: 'shop', name: 'web', ...GOING, labels, annotations: { note: 'mine' } };
    expect(seen.at(-1)).toEqual([
      object(DEPLOYMENT, 'web'),
      { apiVersion: 'v1', kind: 'Service', isCurrent: false, metadata },
    ]);
    expect(shown).toEqual([[false, undefined]]);
    expect(applied(plan)[0]).toEqual(sized(2));
    expect(ownSteps(plan)[0]).toMatchObject({ createOnly });
  });

  it('has it render once more for an outdated child, which stays so whatever it makes of that', () => {
    const createOnly = ['.spec'];
    const types = { ...kind, children: [{ ...SERVICE, createOnly }] };
    const sized = (size: number): AnyObject => ({ ...WEB, spec: { size } });
    const child = { ...withCreated(sized(1), createOnly), uid: 's' };
    /** Deletes what is outdated by leaving it out. */
    const rolling: Render = (_, __, inputs) => {
      const outdated = inputs?.observed?.some((one) => one.isCurrent === false);
      return outdated ? [] : [sized(2)];
    };
    const one = controller({ render: rolling, kind: types });
    expect(pruned(planOf(one, [child]))).toEqual(['prune Service web']);
    expect(pruned(planOf(one, [child]))).toEqual(['prune Service web']);
    expect(stepsOf(planOf(one, []))).toEqual(['own Service web', '|']);
    const next = withCreated(sized(2), createOnly);
    expect(stepsOf(planOf(one, [next]))).toEqual(['own Service web', '|']);
  });

  it('judges by its record whether a child that others wait for is applied', () => {
    const made = withCreated({ ...WEB, spec: { size: 1 } }, ['.spec']);
    const recordedAs = (hash: string): AnyObject => {
      const annotations = { ...made.metadata.annotations, [APPLIED_HASH_ANNOTATION]: hash };
      return { ...made, metadata: { ...made.metadata, annotations } };
    };
    const rendered = { ...WEB, spec: { size: 2 } };
    expect(readinessIn([recordedAs(contentHash(made))])(rendered)).toMatchObject({ phase: 'ready' });
    expect(readinessIn([recordedAs(contentHash(rendered))])(rendered)).toBeUndefined();
  });

  it('stalls a construct that renders an object only where it is not there', () => {
    const swing: Render = (_, __, inputs) => (inputs?.observed?.length === 0 ? [WEB] : []);
    const plan = planOf(controller({ render: swing, kind }), [service('192.0.2.1')]);
    expect(refusalOf(plan)?.reason).toBe('NeverSettles');
  });

  it('renders again when that differs, and at once where the plan itself has changed it', () => {
    const one = controller({ render, kind });
    const dataOf = (plan: Plan) => applied(plan)[0]?.data;
    expect(dataOf(planOf(one, [service('192.0.2.1')]))).toEqual([ip('192.0.2.1')]);
    expect(dataOf(planOf(one, [service('192.0.2.2')]))).toEqual([ip('192.0.2.2')]);
    const children = [service('192.0.2.2')];
    const plan = planOf(one, children);
    const configured: ChangeSet = [{ ref: REF, action: 'configured' }];
    expect(plan.conclude(configured).next).toBeUndefined();
    children[0] = service('192.0.2.3');
    expect(plan.conclude([{ ref: REF, action: 'unchanged' }]).next).toBeUndefined();
    expect(plan.conclude(configured).next).toBe('now');
  });

  /** What it reads follows from what was applied last. */
  const courseOf = (next: (applied: string) => string, milliseconds: number, turns: number) => {
    const one = controller({ render, kind });
    let address = '0';
    let [applies, stalls, last] = [0, 0, ''];
    for (let turn = 0; turn < turns; turn++) {
      const plan = planOf(one, [service(address)], new Date(NOW.getTime() + turn * milliseconds));
      if (plan.error) stalls++;
      const data = JSON.stringify(applied(plan)[0]?.data);
      if (data !== last) applies++;
      last = data;
      address = next(
        (JSON.parse(data) as [{ loadBalancer: { ingress: [{ ip: string }] } }])[0].loadBalancer.ingress[0].ip,
      );
    }
    return { one, address, applies, stalls };
  };

  it.each([
    ['swings fast', 20, (ip: string) => (ip === '0' ? '1' : '0')],
    ['swings every five seconds', 5_000, (ip: string) => (ip === '0' ? '1' : '0')],
    ['swings every five minutes', 300_000, (ip: string) => (ip === '0' ? '1' : '0')],
    ['counts', 1_000, (ip: string) => String(Number(ip) + 1)],
  ])('stalls one that %s, with its children as they are', (_, milliseconds, next) => {
    const turns = Math.max(720, 30_000 / milliseconds);
    const { one, stalls, applies, address } = courseOf(next, milliseconds, turns);
    expect(applies).toBeLessThan(0.9 * turns);
    expect(stalls).toBeGreaterThan(0);
    const edited = planOf(one, [service(address)], NOW, { ...cr(), spec: { a: 1 } });
    expect(edited.error).toBeUndefined();
  });

  it.each([
    ['changes rarely', 700_000, (turn: number) => String(turn % 2)],
    ['follows a large rollout', 500, String],
    ['goes on and off a few times', 10, (turn: number) => String(turn < 20 ? turn % 2 : 0)],
  ])('lets one be that %s', (_, milliseconds, address) => {
    const one = controller({ render, kind });
    for (let turn = 0; turn < 100; turn++) {
      const now = new Date(NOW.getTime() + turn * milliseconds);
      const plan = planOf(one, [service(address(turn))], now);
      expect(plan.error).toBeUndefined();
      expect(applied(plan)[0]?.data).toEqual([ip(address(turn))]);
    }
  });
});

describe('OwnedChildren, events', () => {
  const known = (type: string, message: string, status = 'True') => [{ type, status, message }];
  const contested = failing('backoff', 'FieldContested');

  it.each<[when: string, conditions: object[], changes: ChangeSet, reason: string | undefined]>([
    ['stalls', [], failing('onChange'), 'Invalid'],
    ['stalls for another reason', known('Stalled', 'other'), failing('onChange'), 'Invalid'],
    ['stalls again', known('Stalled', 'no', 'False'), failing('onChange'), 'Invalid'],
    ['has stalled for the same reason before', known('Stalled', 'no'), failing('onChange'), undefined],
    ['is well', [], [], undefined],
    ['may heal by itself', [], failing('backoff'), undefined],
    ['is fought for', [], contested, 'FieldContested'],
    ['is still fought for', known('Reconciling', 'no'), contested, undefined],
    ['is fought for by another', known('Reconciling', 'another'), contested, 'FieldContested'],
    ['is fought for again', known('Reconciling', 'no', 'False'), contested, 'FieldContested'],
  ])('of a custom resource that %s', (_, conditions, changes, reason) => {
    const { events } = planned({ cr: cr({}, conditions) }).conclude(changes);
    const regarding = { apiVersion: 'demo.io/v1', kind: 'Widget', namespace: 'shop', name: 'web', uid: 'u' };
    const event = { type: 'Warning', reason, action: 'Reconcile', note: 'no' };
    expect(events).toEqual(reason === undefined ? [] : [{ regarding, event }]);
  });

  it('report a stall that only the children show once', () => {
    const readiness = { phase: 'stalled', reason: 'Denied', message: 'no such pods' } as const;
    const eventsAfter = (...conditions: object[]) =>
      eventsOf(planned({ cr: cr({}, conditions), status: () => ({ readiness }) }));
    const event = { type: 'Warning', reason: 'Denied', action: 'Reconcile', note: 'no such pods' };
    expect(eventsAfter()).toEqual([event]);
    expect(eventsAfter({ type: 'Stalled', status: 'True', reason: 'Denied' })).toEqual([]);
    expect(eventsAfter({ type: 'Stalled', status: 'True', reason: 'Other' })).toEqual([event]);
  });

  it.each([
    [
      { managers: ['kubectl-edit'], fields: ['.spec.type', '.spec.ports'] },
      '.spec.type, .spec.ports, changed by kubectl-edit',
    ],
    [{ managers: [], fields: [] }, 'fields, changed by another writer'],
  ])('name the writer of %j', (drift, what) => {
    const note = `Service shop/web: corrected ${what}`;
    const expected = { type: 'Normal', reason: 'DriftCorrected', action: 'Apply', note };
    expect(eventsOf(planned(), [{ ref: REF, action: 'corrected', drift }])).toEqual([expected]);
    expect(eventsOf(planned(), [{ ref: REF, action: 'configured' }])).toEqual([]);
  });
});

describe('OwnedChildren, drift', () => {
  const DRIFT = 'reconstruct.kosmos.io/drift';
  const drift = { managers: ['kubectl-edit'], fields: ['.spec.type'] };
  const drifted: ChangeSet = [{ ref: REF, action: 'drifted', drift }];
  const condition = {
    ...{ type: 'Drifted', status: 'True', reason: 'DriftLeft' },
    message: 'Service shop/web: left .spec.type, changed by kubectl-edit',
  };

  it('is handled as the annotation says, and no object without it', () => {
    const modes = [undefined, 'correct', 'warn', 'ignore'].map((mode) => {
      const plan = planned({ cr: cr(mode === undefined ? {} : { annotations: { [DRIFT]: mode } }) });
      return ownSteps(plan)[0]?.drift;
    });
    expect(modes).toEqual([undefined, 'correct', 'warn', 'ignore']);
    const { error } = planned({ cr: cr({ annotations: { [DRIFT]: 'off' } }) });
    expect(error?.message).toContain('"off" is none of correct, warn, ignore');
  });

  it('that is left is a condition, and an event when it begins', () => {
    const plan = planned();
    expect(statusOf(plan, drifted).conditions).toContainEqual(expect.objectContaining(condition));
    expect(eventsOf(plan, drifted)).toMatchObject([{ type: 'Warning', reason: 'DriftLeft' }]);
    expect(eventsOf(planned({ cr: cr({}, [condition]) }), drifted)).toEqual([]);
  });
});

describe('OwnedChildren, a selector', () => {
  const planFor = (selector: string, labels: Record<string, string>): Plan =>
    new OwnedChildren(KIND, { render: () => [WEB], selector }).reconcile(
      'shop/web',
      readerOf({ cr: cr({ labels }), children: [object(SERVICE, 'old')] }),
      NOW,
    );

  it('is that of the first watch alone', () => {
    const { watches } = new OwnedChildren(KIND, { render: () => [], selector: 'team=shop' });
    expect(watches.map(({ selector }) => selector)).toEqual(['team=shop', undefined, undefined, undefined]);
  });

  it.each([
    ['team=shop', true],
    ['team == shop, tier!=test', true],
    ['example.com/stage in (a,b),team', false],
    ['team notin (a, b),!canary', true],
    ['!team', false],
    ['team=', false],
  ])('%s leaves what it does not select as it is', (selector, isSelected) => {
    const plan = planFor(selector, { team: 'shop' });
    expect(stepsOf(plan)).toEqual(isSelected ? ['own Service web', '|', 'prune Service old'] : []);
    expect(plan.conclude([]).status).toHaveLength(isSelected ? 1 : 0);
  });

  it.each(['team=shop tier', 'a in b', 'a in (b c)', '-a', '', 'a=b=c', 'a,,b'])(
    '%j is refused, with the forms that there are',
    (selector) => {
      expect(() => planFor(selector, {})).toThrow(/selects no labels: write name=value, name!=value/);
    },
  );
});

describe('OwnedChildren, a construct that is not deterministic', () => {
  let count = 0;
  const unsteady: Render = () => [{ ...WEB, data: (count += 1) }];
  /** Of an author. */
  const kind = { construct: class extends Construct {} };

  it('is not applied where two renderings differ', () => {
    const one = controller({ kind, render: unsteady });
    for (const plan of [1, 2].map(() => one.reconcile('shop/web', readerOf({}), NOW))) {
      expect(refusalOf(plan)?.reason).toBe('NotDeterministic');
      expect(plan.error?.message).toMatch(/renders Service shop\/web with \d+ at \.data, and the next time/);
      expect(statusOf(plan).conditions[2]).toMatchObject({ status: 'True', reason: 'NotDeterministic' });
      expect(eventsOf(plan)).toMatchObject([{ type: 'Warning', reason: 'NotDeterministic' }]);
    }
  });

  it('is applied once where it changes with the time of day, then not until the custom resource or the policy changes', () => {
    let time = 1;
    const policy = { current: {} };
    const one = controller({ kind, render: () => [{ ...WEB, data: time }], inForce: policy });
    const planAt = (minutes: number, live = cr()): Plan => {
      time = minutes;
      return one.reconcile('shop/web', readerOf({ cr: live }), new Date(NOW.getTime() + minutes * 60_000));
    };
    const refusedAt = (now: number) => refusalOf(planAt(now))?.reason;
    expect(applied(planAt(1))).toHaveLength(1);
    expect([refusedAt(2), refusedAt(3)]).toEqual(['NotDeterministic', 'NotDeterministic']);

    policy.current = {};
    expect(applied(planAt(4))).toMatchObject([{ data: 4 }]);
    expect(refusedAt(5)).toBe('NotDeterministic');
    expect(applied(planAt(6, { ...cr(), spec: { edited: true } }))).toHaveLength(1);
  });

  it('is rendered once where all children have been made of the same rendering, and else twice', () => {
    const render = vi.fn(() => [WEB]);
    const child = (hash: string) =>
      object(SERVICE, 'web', { annotations: { [APPLIED_HASH_ANNOTATION]: hash } });
    const made = child(contentHash(WEB));
    const rendered = [[made], [child('other')], [made, object(SERVICE, 'web-2')], []].map((children) => {
      render.mockClear();
      planned({ kind, render, children });
      return render.mock.calls.length;
    });
    expect(rendered).toEqual([1, 2, 2, 2]);
  });

  it('is rendered again in the passes that follow within seconds only where its inputs changed', () => {
    const render = vi.fn(() => [WEB]);
    const inForce = { current: {} };
    const one = controller({ kind, render, inForce });
    const rendersAfter = (seconds: number, live = cr()): number => {
      render.mockClear();
      one.reconcile('shop/web', readerOf({ cr: live }), new Date(NOW.getTime() + seconds * 1_000));
      return render.mock.calls.length;
    };
    const edited = { ...cr(), spec: { edited: true } };
    expect([0, 1, 9, 10, 19].map((seconds) => rendersAfter(seconds))).toEqual([2, 0, 0, 1, 0]);
    inForce.current = {};
    expect([rendersAfter(19), rendersAfter(19), rendersAfter(19, edited)]).toEqual([2, 0, 2]);
  });

  it('is rendered again for a label only where its kind reads metadata', () => {
    const renders = (readsMetadata: boolean): number => {
      const render = vi.fn(() => [WEB]);
      const one = controller({ kind: { ...kind, readsMetadata }, render });
      one.reconcile('shop/web', readerOf({}), NOW);
      render.mockClear();
      one.reconcile('shop/web', readerOf({ cr: cr({ labels: { team: 'blue' } }) }), NOW);
      return render.mock.calls.length;
    };
    expect([renders(false), renders(true)]).toEqual([0, 2]);
  });

  it('is created once in a burst of new ones, and refused before its second write', () => {
    const render: Render = (kind, one) => (one.metadata.name === 'late' ? unsteady(kind, one) : [WEB]);
    const one = controller({ kind, render });
    const planFor = (name: string): Plan =>
      one.reconcile(`shop/${name}`, { ...readerOf({}), get: () => cr({ name, uid: name }) as never }, NOW);
    for (let n = 0; n < 100; n++) expect(applied(planFor(`web-${n}`))).toHaveLength(1);
    expect(applied(planFor('late'))).toHaveLength(1);
    expect(refusalOf(planFor('late'))?.reason).toBe('NotDeterministic');
  });
});

describe('OwnedChildren, of a kind that remembers', () => {
  const kind = { remembers: true };
  const remembered = { opened: true };
  const writtenBy = (plan: Plan): unknown =>
    plan
      .conclude([])
      .status.map(({ status, isConditional }) => [(status as { opened?: boolean }).opened, isConditional]);

  it('keep what the status said while it can not be computed', () => {
    const status = () => {
      throw new Error('not today');
    };
    expect(writtenBy(planned({ kind, status, cr: { ...cr(), remembered } as never }))).toEqual([
      [true, true],
    ]);
  });

  it.each([
    ['of a new one, none', undefined, []],
    ['what failed goes on failing', [{ type: 'Ready', status: 'False', reason: 'FieldConflict' }], ['False']],
  ])('remember fields with the conditions from before what follows from them: %s', (_, conditions, ready) => {
    const [step] = planned({ kind, status: () => ({ fields: remembered }), cr: cr({}, conditions) }).steps;
    const { status } = step as { readonly status: object };
    expect(status).toMatchObject(remembered);
    const shown = (status as { conditions: { type: string; status: string }[] }).conditions;
    expect(shown.filter(({ type }) => type === 'Ready').map((one) => one.status)).toEqual(ready);
  });

  it('remember fields beside drift that is left, whose date stays, and not beside conditions of others', () => {
    const drifted = { type: 'Drifted', status: 'True', reason: 'DriftLeft', message: 'Deployment web: left' };
    const before = [drifted, { type: 'Backup', status: 'True', reason: 'Done', message: '' }];
    const [step] = planned({ kind, status: () => ({ fields: remembered }), cr: cr({}, before) }).steps;
    const { conditions } = (step as { readonly status: { readonly conditions: readonly object[] } }).status;
    expect(conditions).toEqual([drifted]);
  });

  it('write no status of a custom resource that can not be kept, since what it said is not known', () => {
    const error = new OperatorError({ reason: 'TooDeep', message: 'too deep' });
    const plan = planned({ kind, status: () => ({}), cr: keepUnreadable(cr() as never, error) as never });
    expect([plan.error?.reason, plan.steps, writtenBy(plan)]).toEqual(['TooDeep', [{ do: 'barrier' }], []]);
  });
});

describe('OwnedChildren, paused', () => {
  const PAUSED = 'reconstruct.kosmos.io/paused';
  const pausedCr = (status: object = { observedGeneration: 3 }, value = 'true') => ({
    ...cr({ annotations: { [PAUSED]: value } }),
    status,
  });
  const conditionsOf = (plan: Plan): Readonly<Record<string, object>> =>
    Object.fromEntries(statusOf(plan).conditions.map((each): [string, object] => [each.type ?? '', each]));
  const containing = (text: string): unknown => expect.stringContaining(text);

  it('plan nothing but the status, which says so, and leaves an edit unobserved', () => {
    const old = { ...object(SERVICE, 'old', { uid: 'o' }), status: {} };
    const handOver = () => [{ object: WEB, fieldManager: 'other' }];
    const plan = planned({ cr: pausedCr(), children: [WEB, old], handOver });
    expect(plan.steps).toEqual([]);
    expect(plan.conclude([]).next).toBeUndefined();
    expect(statusOf(plan)).toMatchObject({ observedGeneration: 3 });
    expect(conditionsOf(plan)).toMatchObject({
      Ready: { status: 'True', reason: 'Paused', message: containing('Paused; '), observedGeneration: 3 },
      Paused: { status: 'True', reason: 'Paused', message: containing('generation 4 waits') },
    });
  });

  it.each([
    ['what is missing', {}, () => [WEB], { status: 'Unknown', reason: 'Paused' }],
    ['what can not be rendered', {}, refusing, { status: 'False', reason: 'InvalidSpec' }],
    ['a generation that was never observed', { observedGeneration: -1 }, () => [], { status: 'True' }],
  ])('report %s', (_, status, render, ready) => {
    const plan = planned({ cr: pausedCr(status), render });
    expect(plan.steps).toEqual([]);
    expect(conditionsOf(plan).Ready).toMatchObject(ready);
    expect(statusOf(plan)).not.toHaveProperty('observedGeneration');
  });

  it('end with the annotation, and refuse another value than true and false', () => {
    for (const annotations of [{}, { [PAUSED]: 'false' }]) {
      const plan = planned({ cr: cr({ annotations }) });
      expect(applied(plan)).toHaveLength(1);
      expect(conditionsOf(plan)).not.toHaveProperty('Paused');
    }
    const plan = planned({ cr: pausedCr({}, 'yes'), children: [object(SERVICE, 'old')] });
    expect(refusalOf(plan)?.reason).toBe('InvalidAnnotation');
    const long = planned({ cr: cr({ annotations: { 'reconstruct.kosmos.io/rotate': 'x'.repeat(257) } }) });
    expect(refusalOf(long)?.reason).toBe('InvalidAnnotation');
    expect(conditionsOf(plan).Stalled).toMatchObject({
      status: 'True',
      message: containing('"yes" is none of true, false'),
    });
    const misspelt = planned({ cr: cr({ annotations: { 'reconstruct.kosmos.io/pause': 'true' } }) });
    expect(refusalOf(misspelt)?.message).toContain(
      'did you mean reconstruct.kosmos.io/paused? Rename it, or',
    );
  });
});

function refusing(): never {
  throw new OperatorError({ reason: 'InvalidSpec', message: 'no' });
}

it.each(['failing', 'stalled', 'progressing'] as const)(
  'of a deletion that waits for what is %s, the way out is named unless that may end by itself',
  (phase) => {
    const { message } = deletingReadiness(cr() as never, {
      phase,
      reason: 'NotFound',
      message: 'no namespace',
    });
    expect(/^Deletion waits: no namespace.*give-up=true/.test(message)).toBe(phase !== 'progressing');
  },
);
