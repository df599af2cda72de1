import { describe, expect, it } from 'vitest';
import type { ChangeSet } from '../../src/contract/change.js';
import type { Plan, Reader } from '../../src/contract/controller.js';
import { OperatorError } from '../../src/contract/error.js';
import type { Render } from '../../src/contract/kind.js';
import { APPLIED_HASH_ANNOTATION } from '../../src/contract/names.js';
import { contentHash } from '../../src/contract/object.js';
import type { AnyObject, CustomResource } from '../../src/contract/object.js';
import { OwnedChildren } from '../../src/contract/owned-children.js';
import { groupKind, resourceType } from '../../src/contract/resource.js';
import type { StatusFunction } from '../../src/contract/status.js';

const NOW = new Date('2026-01-02T03:04:05Z');
const WIDGET = resourceType({ apiVersion: 'demo.io/v1', kind: 'Widget' });
const SERVICE = resourceType({ apiVersion: 'v1', kind: 'Service' });
const DEPLOYMENT = resourceType({ apiVersion: 'apps/v1', kind: 'Deployment' });
const SECRET = resourceType({ apiVersion: 'v1', kind: 'Secret' });
const OWNER = {
  apiVersion: 'demo.io/v1',
  kind: 'Widget',
  name: 'web',
  uid: 'u',
  controller: true,
  blockOwnerDeletion: true,
};

function object(type: { apiVersion: string; kind: string }, name: string, meta: object = {}): AnyObject {
  return { apiVersion: type.apiVersion, kind: type.kind, metadata: { namespace: 'shop', name, ...meta } };
}

function cr(meta: object = {}, conditions?: object[]): CustomResource {
  const made = object(WIDGET, 'web', { uid: 'u', generation: 4, ...meta });
  return { ...made, spec: {}, ...(conditions && { status: { conditions } }) };
}

interface Given {
  readonly cr?: CustomResource;
  readonly children?: readonly AnyObject[];
  readonly render?: Render;
  readonly status?: StatusFunction<never, object>;
  readonly statusFields?: readonly string[];
}

function controller({
  render = () => [object(SERVICE, 'web')],
  status,
  statusFields,
}: Given = {}): OwnedChildren {
  const kind = {
    name: 'widget',
    type: WIDGET,
    construct: undefined as never,
    children: [SERVICE, DEPLOYMENT],
    formerChildren: [SECRET],
    ...(statusFields && { statusFields }),
  };
  return new OwnedChildren(kind, render, status && { status });
}

function readerOf(given: Given): Reader {
  return {
    get: (type, key) =>
      groupKind(type) === 'Widget.demo.io' && key === 'shop/web'
        ? (given.cr as AnyObject | undefined)
        : undefined,
    controlledBy: (type, uid) =>
      (given.children ?? []).filter((child) => uid === 'u' && groupKind(child) === groupKind(type)),
    mappedTo: () => [],
    clockSkewMilliseconds: undefined,
  };
}

function planned(given: Given): Plan {
  return controller(given).reconcile('shop/web', readerOf(given), NOW);
}

const statusOf = (plan: Plan, changes: Parameters<Plan['status'][number]['status']>[0] = []) =>
  plan.status[0]?.status(changes) as {
    conditions: { type: string; status: string; reason: string }[];
    observedGeneration?: number;
  };

const failing = (retry: 'onChange' | 'backoff', message = 'no') => [
  {
    ref: { apiVersion: 'v1', kind: 'Service', name: 'web' },
    action: 'failed' as const,
    error: new OperatorError({ reason: 'Invalid', message, retry }),
  },
];

describe('OwnedChildren, watches', () => {
  it.each([
    ['its owner', OWNER, ['shop/web']],
    ['its owner in another version', { ...OWNER, apiVersion: 'demo.io/v2' }, ['shop/web']],
    ['no owner of another kind', { ...OWNER, kind: 'Gadget' }, []],
    ['no owner of another group', { ...OWNER, apiVersion: 'other.io/v1' }, []],
    ['no owner that does not control it', { ...OWNER, controller: false }, []],
  ])('maps a child to %s', (_, owner, keys) => {
    expect(controller().watches[1]?.mapsTo(object(SERVICE, 'x', { ownerReferences: [owner] }))).toEqual(keys);
  });
});

describe('OwnedChildren, plans', () => {
  it('applies what is rendered, as its controller, and writes the status', () => {
    const plan = planned({ cr: cr() });
    expect(plan.apply).toEqual([
      { object: object(SERVICE, 'web'), fieldManager: 'widget-controller', owner: OWNER },
    ]);
    expect(plan.status).toMatchObject([
      { fieldManager: 'widget-status', target: { metadata: { uid: 'u' } } },
    ]);
    expect(plan.delete).toEqual([]);
    expect(plan.error).toBeUndefined();
  });

  it.each([
    ['gone', undefined],
    ['on its way out', cr({ deletionTimestamp: '2026-01-01T00:00:00Z' })],
  ])('does nothing for what is %s', (_, gone) => {
    expect(planned({ ...(gone && { cr: gone }), children: [object(SERVICE, 'old')] })).toEqual({
      apply: [],
      delete: [],
      status: [],
      events: [],
    });
  });

  it('deletes what is no longer rendered, of present and former types, but not what is going already', () => {
    const children = [
      object(SERVICE, 'web'),
      object(SERVICE, 'old'),
      object(DEPLOYMENT, 'web'),
      object(SECRET, 'former'),
      object(SERVICE, 'going', { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    ];
    const names = planned({ cr: cr(), children }).delete.map(
      ({ object: gone }) => `${gone.kind} ${gone.metadata.name}`,
    );
    expect(names).toEqual(['Service old', 'Deployment web', 'Secret former']);
  });

  it.each([
    ['an OperatorError', new OperatorError({ reason: 'BadPort', message: 'port 0' }), 'BadPort'],
    ['anything else', new TypeError('oops'), 'RenderFailed'],
  ])('stalls when rendering throws %s, and touches no child', (_, thrown, reason) => {
    const plan = planned({
      cr: cr(),
      children: [object(SERVICE, 'old')],
      render: () => {
        throw thrown;
      },
    });
    expect(plan).toMatchObject({ apply: [], delete: [], error: { reason } });
    expect(statusOf(plan).conditions).toMatchObject([
      { type: 'Ready', status: 'False', reason },
      { type: 'Reconciling', status: 'False' },
      { type: 'Stalled', status: 'True' },
    ]);
  });
});

describe('OwnedChildren, status', () => {
  it('carries the generation that it speaks of', () => {
    expect(statusOf(planned({ cr: cr() }))).toMatchObject({
      observedGeneration: 4,
      conditions: [{ type: 'Ready', status: 'True', observedGeneration: 4 }, {}, {}],
    });
  });

  it('takes fields and further conditions from the function of the kind', () => {
    const readiness = { phase: 'ready', reason: 'Fine', message: '' } as const;
    const extra = { type: 'Extra', status: 'True', reason: 'X', message: '' } as const;
    const status = statusOf(
      planned({ cr: cr(), status: () => ({ readiness, fields: { replicas: 2 }, conditions: [extra] }) }),
    );
    expect(status).toMatchObject({
      replicas: 2,
      conditions: [{ reason: 'Fine' }, {}, {}, { type: 'Extra', lastTransitionTime: '2026-01-02T03:04:05Z' }],
    });
  });

  it('tells once that only the children show a stall', () => {
    const readiness = {
      phase: 'stalled',
      reason: 'Denied',
      message: 'The namespace takes no such pods',
    } as const;
    const told = (conditions: object[] = []) =>
      planned({
        cr: { ...cr(), status: { conditions } },
        status: () => ({ readiness }),
      }).events[0]?.event([]);
    expect(told()).toEqual({
      type: 'Warning',
      reason: 'Denied',
      action: 'Reconcile',
      note: readiness.message,
    });
    expect(told([{ type: 'Stalled', status: 'True', reason: 'Denied' }])).toBeUndefined();
    expect(told([{ type: 'Stalled', status: 'True', reason: 'Other' }])).toMatchObject({ reason: 'Denied' });
  });

  it.each([
    ['onChange', 'False', 'True'],
    ['backoff', 'True', 'False'],
  ] as const)('tells of an apply that failed: %s', (retry, reconciling, stalled) => {
    const { conditions } = statusOf(planned({ cr: cr() }), failing(retry));
    expect(conditions.map(({ status }) => status)).toEqual(['False', reconciling, stalled]);
    expect(conditions[0]?.reason).toBe('Invalid');
  });

  it.each([
    [
      'throws',
      (): never => {
        throw new TypeError('no children');
      },
      /^The status of Widget shop\/web can't be computed: no children \(at test\/contract\/owned-children\.test\.ts:\d+:\d+\)$/,
    ],
    [
      'returns nothing of use',
      () => undefined as never,
      /^The status of Widget shop\/web can't be computed: /,
    ],
  ])('says so where the function of the kind %s', (_, status, message) => {
    const plan = planned({ cr: cr(), status });

    expect(statusOf(plan)).toMatchObject({
      observedGeneration: 4,
      conditions: [
        {
          type: 'Ready',
          status: 'False',
          reason: 'StatusFailed',
          message: expect.stringMatching(message) as string,
        },
        { type: 'Reconciling', status: 'True' },
        { type: 'Stalled', status: 'False' },
      ],
    });
    expect(plan.statusError?.([])).toMatchObject({ reason: 'StatusFailed', retry: 'backoff', isBug: true });
    expect(plan.events[0]?.event([])).toMatchObject({ type: 'Warning', reason: 'StatusFailed' });
  });

  it('judges by the children where the function of the kind does not', () => {
    const status = () => ({ fields: { url: 'http://web' } });
    const child = {
      ...object(SERVICE, 'web'),
      metadata: { name: 'web', generation: 2 },
      status: { observedGeneration: 1 },
    };
    const plan = planned({ cr: cr(), status, children: [child] });
    expect(statusOf(plan)).toMatchObject({
      url: 'http://web',
      conditions: [{ status: 'Unknown', reason: 'RollingOut' }, {}, {}],
    });
    expect(statusOf(planned({ cr: cr(), status }))).toMatchObject({
      conditions: [{ status: 'True' }, {}, {}],
    });
  });

  it('says so where the status has a field that the schema does not have', () => {
    const status = () => ({ fields: { url: 'http://web' } });
    const told = (statusFields?: readonly string[]) =>
      statusOf(planned({ cr: cr(), status, ...(statusFields && { statusFields }) })).conditions[0];
    expect(told(['conditions', 'uri'])).toMatchObject({
      reason: 'StatusFailed',
      message: expect.stringContaining(
        'it has a field url, of which the schema knows nothing; add url: {',
      ) as string,
    });
    for (const known of [undefined, ['url']]) expect(told(known)).toMatchObject({ status: 'True' });
  });
});

describe('OwnedChildren, events', () => {
  const stalled = (message: string, status = 'True') => [{ type: 'Stalled', status, message }];

  const healing = (reason: string) => [
    { ...failing('backoff')[0]!, error: new OperatorError({ reason, message: 'no', retry: 'backoff' }) },
  ];
  const reconciling = (message: string, status = 'True') => [{ type: 'Reconciling', status, message }];

  it.each<[when: string, conditions: object[], changes: ChangeSet, reason: string | undefined]>([
    ['stalls', [], failing('onChange'), 'Invalid'],
    ['stalls for another reason', stalled('other'), failing('onChange'), 'Invalid'],
    ['stalls again', stalled('no', 'False'), failing('onChange'), 'Invalid'],
    ['has stalled for the same reason before', stalled('no'), failing('onChange'), undefined],
    ['is well', [], [], undefined],
    ['may heal by itself', [], failing('backoff'), undefined],
    ['is fought for', [], healing('FieldContested'), 'FieldContested'],
    ['is still fought for', reconciling('no'), healing('FieldContested'), undefined],
    ['is fought for by another', reconciling('another'), healing('FieldContested'), 'FieldContested'],
    ['is fought for again', reconciling('no', 'False'), healing('FieldContested'), 'FieldContested'],
  ])('of a custom resource that %s', (_, conditions, changes, reason) => {
    const [step] = planned({ cr: cr({}, conditions) }).events;
    const expected = { type: 'Warning', reason, action: 'Reconcile', note: 'no' };

    expect(step?.event(changes)).toEqual(reason === undefined ? undefined : expected);
    expect(step?.regarding).toMatchObject({ kind: 'Widget', namespace: 'shop', name: 'web', uid: 'u' });
  });

  it('tells whose changes were undone, and which', () => {
    const change = { ref: { apiVersion: 'v1', kind: 'Service', namespace: 'shop', name: 'web' } };
    const drift = { managers: ['kubectl-edit'], fields: ['.spec.type', '.spec.ports'] };
    const told = (...changes: Parameters<typeof statusOf>[1][]) =>
      planned({ cr: cr() }).events.flatMap(({ event }) => event(changes.flatMap((set) => set ?? [])) ?? []);
    expect(told([{ ...change, action: 'corrected', drift }])).toEqual([
      {
        type: 'Normal',
        reason: 'DriftCorrected',
        action: 'Apply',
        note: 'Service shop/web: put back .spec.type, .spec.ports, changed by kubectl-edit',
      },
    ]);
    expect(told([{ ...change, action: 'corrected', drift: { managers: [], fields: [] } }])).toMatchObject([
      { note: 'Service shop/web: put back fields, changed by another writer' },
    ]);
    expect(told([{ ...change, action: 'configured' }], [{ ...change, action: 'unchanged' }])).toEqual([]);
  });
});

describe('OwnedChildren, a construct that is not deterministic', () => {
  let count = 0;
  const unsteady: Render = () => [{ ...object(SERVICE, 'web'), data: (count += 1) }];
  const plans = (given: Given, ...crs: readonly CustomResource[]): Plan[] => {
    const one = controller(given);
    return crs.map((cr) => one.reconcile('shop/web', readerOf({ ...given, cr }), NOW));
  };
  const stalled = (plan: Plan) => statusOf(plan).conditions.find(({ type }) => type === 'Stalled');

  it('is not applied where two renderings differ', () => {
    for (const plan of plans({ render: unsteady }, cr(), cr())) {
      expect(plan).toMatchObject({ apply: [], delete: [], error: { reason: 'NotDeterministic' } });
      expect(plan.error?.message).toMatch(/renders Service shop\/web with \d+ at \.data, and the next time/);
      expect(stalled(plan)).toMatchObject({ status: 'True', reason: 'NotDeterministic' });
      expect(plan.events[0]?.event([])).toMatchObject({ type: 'Warning', reason: 'NotDeterministic' });
    }
  });

  it('is applied once where it changes with the time of day, then not until the custom resource or the policy changes', () => {
    let [time, policy] = [1, {}];
    const render = Object.assign(() => [{ ...object(SERVICE, 'web'), data: time }], {
      policyInForce: () => policy,
    });
    const one = controller({ render });
    const planAt = (now: number, live = cr()): Plan => {
      time = now;
      return one.reconcile('shop/web', readerOf({ render, cr: live }), NOW);
    };
    const refused = { apply: [], error: { reason: 'NotDeterministic' } };
    expect(planAt(1).apply).toHaveLength(1);
    expect(planAt(2)).toMatchObject(refused);
    expect(planAt(3)).toMatchObject(refused);

    policy = {};
    expect(planAt(4)).toMatchObject({ apply: [{ object: { data: 4 } }] });
    expect(planAt(5)).toMatchObject(refused);
    expect(planAt(6, { ...cr(), spec: { edited: true } }).apply).toHaveLength(1);
  });

  it('is rendered once where all children have been made of the same rendering, and else twice', () => {
    let renderings = 0;
    const web = object(SERVICE, 'web');
    const render: Render = () => {
      renderings++;
      return [web];
    };
    const child = (hash: string) =>
      object(SERVICE, 'web', { annotations: { [APPLIED_HASH_ANNOTATION]: hash } });
    const made = child(contentHash(web));
    const rendered = [[made], [child('other')], [made, object(SERVICE, 'web-2')], []].map((children) => {
      renderings = 0;
      planned({ cr: cr(), render, children });
      return renderings;
    });
    expect(rendered).toEqual([1, 2, 2, 2]);
  });

  it('is created once in a burst of new ones, and refused before its second write', () => {
    const render: Render = (_, { metadata }) =>
      metadata.name === 'late' ? unsteady(undefined as never, undefined as never) : [object(SERVICE, 'web')];
    const one = controller({ render });
    const planFor = (name: string): Plan =>
      one.reconcile(`shop/${name}`, { ...readerOf({}), get: () => cr({ name, uid: name }) as never }, NOW);
    for (let n = 0; n < 100; n++) expect(planFor(`web-${n}`).apply).toHaveLength(1);
    expect(planFor('late').apply).toHaveLength(1);
    expect(planFor('late')).toMatchObject({ apply: [], error: { reason: 'NotDeterministic' } });
  });
});
