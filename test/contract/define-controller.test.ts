import { expect, test } from 'vitest';
import { defineController } from '../../src/author/define-controller.js';
import type { ControllerProps, PlannedResource } from '../../src/author/define-controller.js';
import { defineCrd } from '../../src/author/define-crd.js';
import type { ChangeSet } from '../../src/contract/change.js';
import type { Reader } from '../../src/contract/controller.js';
import { OperatorError } from '../../src/contract/error.js';
import { PAUSED_ANNOTATION } from '../../src/contract/names.js';
import { keyOf } from '../../src/contract/object.js';
import type { AnyObject } from '../../src/contract/object.js';
import { groupKind, resourceType } from '../../src/contract/resource.js';
import { render } from '../../src/render/renderer.js';

const NOW = new Date('2026-01-02T03:04:05Z');
const MAP = resourceType({ apiVersion: 'v1', kind: 'ConfigMap' });
const crd = defineCrd({
  ...{ group: 'demo.example.com', kind: 'Note', description: 'A note.' },
  spec: { type: 'object', properties: { text: { type: 'string' } } },
  status: { length: { type: 'integer' } },
});
type Props = ControllerProps<{ readonly text?: string }, { readonly length?: number }>;

const kindOf = (props: Partial<Props> = {}) =>
  defineController({
    ...{ crd, does: 'writes notes' },
    watches: [{ type: MAP, writes: ['create', 'patch'] }],
    plan: () => ({}),
    ...props,
  });

const note = (name: string, meta: object = {}) => ({
  ...{ apiVersion: 'demo.example.com/v1', kind: 'Note', spec: { text: name } },
  metadata: { name, namespace: 'shop', uid: `uid-${name}`, generation: 4, ...meta },
});

const mapOf = (name: string): AnyObject => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'shop' } },
});

/** Plans for these objects, by their keys. */
function planned(props: Partial<Props>, objects: readonly AnyObject[], key = 'shop/a') {
  const [controller] = kindOf(props).controllers({ render });
  const keysOf = (object: AnyObject): readonly string[] =>
    controller!.watches.find(({ type }) => type.kind === object.kind)!.mapsTo(object);
  const reader: Reader = {
    get: (type, name) => objects.find((one) => groupKind(one) === groupKind(type) && keyOf(one) === name),
    all: () => [],
    controlledBy: () => [],
    mappedTo: (type) =>
      objects.filter((one) => groupKind(one) === groupKind(type) && keysOf(one).includes(key)),
    find: () => ({}),
  };
  return controller!.reconcile(key, reader, NOW);
}

const statusesOf = (plan: ReturnType<typeof planned>, changes: ChangeSet = []) =>
  Object.fromEntries(
    plan.conclude(changes).status.map(({ target, status }) => {
      const { conditions, ...fields } = status as {
        conditions: { type: string; reason: string; status: string }[];
      };
      const shown = conditions.map(({ type, status: value, reason }) => `${type} ${value} ${reason}`);
      return [target.metadata.name, { ...fields, shown }];
    }),
  );

const owns = ({
  cr,
}: {
  readonly cr: { readonly metadata: { readonly name: string } };
}): PlannedResource<object> => ({
  steps: [{ do: 'own', object: mapOf(cr.metadata.name) }],
});

test('a custom resource owns what is planned for it, and is ready once that is', () => {
  const plan = planned({ plan: owns }, [note('a'), mapOf('a')]);

  expect(plan.steps).toEqual([
    {
      ...{ do: 'own', object: mapOf('a'), fieldManager: 'note-controller' },
      owner: {
        ...{ apiVersion: 'demo.example.com/v1', kind: 'Note', name: 'a', uid: 'uid-a' },
        ...{ controller: true, blockOwnerDeletion: true },
      },
    },
  ]);
  expect(plan.conclude([]).status).toMatchObject([
    {
      fieldManager: 'note-status',
      status: {
        observedGeneration: 4,
        conditions: [
          { type: 'Ready', status: 'True', reason: 'Available', lastTransitionTime: '2026-01-02T03:04:05Z' },
          { type: 'Reconciling', status: 'False' },
          { type: 'Stalled', status: 'False' },
        ],
      },
    },
  ]);
  const [own, maps] = kindOf().controllers({ render })[0]!.watches;
  expect(own!.writes).toEqual(['status', 'finalizers']);
  const ownerReferences = [{ ...(plan.steps[0] as { owner: object }).owner }];
  expect(
    maps!.mapsTo({ ...mapOf('a'), metadata: { name: 'x', namespace: 'shop', ownerReferences } as never }),
  ).toEqual(['shop/a']);
});

test('nothing is planned for what is gone, or is being deleted', () => {
  for (const objects of [[], [note('a', { deletionTimestamp: '2026-01-02T03:04:00Z' })]]) {
    const plan = planned({ plan: owns }, objects);

    expect(plan.steps).toEqual([]);
    expect(plan.conclude([]).status).toEqual([]);
  }
});

test('an error stands in the conditions of its custom resource, and keeps no other of the same key', () => {
  const keyed = { keyOf: ({ metadata }: AnyObject) => metadata.namespace ?? '' };
  const plan = planned(
    {
      ...keyed,
      plan: ({ cr }) => {
        const { name } = cr.metadata;
        if (name === 'a') throw new OperatorError({ reason: 'NoText', message: 'It has no text' });
        if (name === 'b') throw new TypeError('undefined is not a function');
        return owns({ cr });
      },
    },
    ['a', 'b', 'c', 'd'].map((name) => note(name)),
    'shop',
  );
  const error = new OperatorError({
    reason: 'QuotaExceeded',
    message: 'There are too many',
    retry: 'backoff',
  });
  const changes: ChangeSet = [
    { ref: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'shop', name: 'c' }, action: 'failed', error },
  ];

  expect(plan.error?.reason).toBe('NoText');
  expect(plan.steps).toHaveLength(2);
  const stalled = (reason: string) => [
    `Ready False ${reason}`,
    `Reconciling False ${reason}`,
    `Stalled True ${reason}`,
  ];
  expect(statusesOf(plan, changes)).toMatchObject({
    a: { shown: stalled('NoText') },
    b: { shown: stalled('PlanFailed') },
    c: {
      shown: ['Ready False QuotaExceeded', 'Reconciling True QuotaExceeded', 'Stalled False QuotaExceeded'],
    },
    // It isn't there yet.
    d: { shown: ['Ready Unknown NotApplied', 'Reconciling True NotApplied', 'Stalled False NotApplied'] },
  });
  expect(
    plan.conclude(changes).events.map(({ event, regarding }) => `${regarding.name} ${event.reason}`),
  ).toEqual(['a NoText', 'b PlanFailed']);
});

test('the status is what the plan says of it, once the steps are carried out', () => {
  const at = new Date('2026-01-02T04:00:00Z');
  const readiness = { phase: 'progressing', reason: 'Writing', message: '' } as const;
  const plan = planned(
    {
      plan: () => ({
        status: (changes) => ({ readiness, fields: { length: changes.length }, requeueAt: at }),
      }),
    },
    [note('a')],
  );

  expect(statusesOf(plan)).toMatchObject({
    a: { length: 0, shown: ['Ready Unknown Writing', 'Reconciling True Writing', 'Stalled False Writing'] },
  });
  expect(plan.conclude([]).next).toEqual(at);
  const unknown = planned({ plan: () => ({ status: () => ({ fields: { size: 1 } }) }) as never }, [
    note('a'),
  ]);
  expect(statusesOf(unknown)).toMatchObject({
    a: { shown: expect.arrayContaining(['Ready False StatusFailed']) as object },
  });
  expect(unknown.conclude([]).error?.message).toMatch(
    'it has a field size, of which the schema knows nothing',
  );
});

test('a paused custom resource gets its status alone', () => {
  const plan = planned({ plan: owns }, [
    note('a', { annotations: { [PAUSED_ANNOTATION]: 'true' } }),
    mapOf('a'),
  ]);

  expect(plan.steps).toEqual([]);
  expect(statusesOf(plan)).toEqual({
    a: {
      shown: ['Ready True Paused', 'Reconciling False Paused', 'Stalled False Paused', 'Paused True Paused'],
    },
  });
});

test('what a plan throws that reads Secrets is withheld', () => {
  const secrets = [{ type: resourceType({ apiVersion: 'v1', kind: 'Secret' }) }];
  const fail = () => {
    throw new Error('hunter2');
  };

  expect(planned({ watches: secrets, plan: fail }, [note('a')]).error?.message).toMatch(
    /^Error, whose text is not shown/,
  );
});

test('without a cluster, it says why it renders nothing', () => {
  const { rendering } = kindOf();
  const message = 'Note renders nothing without a cluster, where its operator writes notes';

  expect('together' in rendering && rendering.together([note('a')], { render })).toMatchObject({
    manifests: [],
    findings: [{ level: 'note', message }],
  });
});

test('an option that there is not, and one that is missing, are refused', () => {
  expect(() => kindOf({ watch: [] } as never)).toThrow(
    'defineController: unknown option watch; there are crd, does, watches',
  );
  expect(() => kindOf({ does: undefined } as never)).toThrow(
    'defineController: takes { crd, does, watches, plan }; does is missing',
  );
});

test('a controller without custom resources has one key; what its plan throws is the error of that', () => {
  const owner = { apiVersion: 'v1', kind: 'Node', name: 'a', uid: 'n' };
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'shop' } };
  const watches = [{ type: MAP, writes: ['create'] as const }];
  const made = defineController({
    name: 'notes',
    watches,
    plan: () => [{ do: 'own', object, owner } as const],
  });
  const [controller] = made.controllers({ render });
  expect(controller!.watches[0]!.mapsTo(object)).toEqual(['notes']);
  const reader = {} as Reader;
  expect(controller!.reconcile('notes', reader, NOW)).toMatchObject({
    steps: [{ do: 'own', object, owner, fieldManager: 'notes-controller' }],
  });
  const failing = defineController({
    name: 'notes',
    watches,
    plan: () => {
      throw new Error('no');
    },
  });
  const { error, steps } = failing.controllers({ render })[0]!.reconcile('notes', reader, NOW);
  expect([error?.reason, steps]).toEqual(['PlanFailed', []]);
  expect(() => defineController({ name: 'No', watches, plan: () => [] })).toThrow(
    'name: write lower-case letters',
  );
  expect(() => defineController({ name: 'notes', watches } as never)).toThrow('plan is missing');
});

test('of types that the plan never creates, objects may be left out of memory', () => {
  const watches = [{ type: MAP, writes: ['patch', 'delete'] as const }];
  const kinds = [kindOf(), kindOf({ watches }), defineController({ name: 'maps', watches, plan: () => [] })];
  const readOnly = kinds.map((kind) => kind.controllers({ render })[0]?.watches.at(-1)?.readOnly);

  expect(readOnly).toEqual([false, true, true]);
});

test('what the plan owns has to be of a type that its watch says it creates', () => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'shop' } };
  const watches = [{ type: MAP, writes: ['patch'] as const }];
  const own = {
    do: 'own',
    object,
    owner: { apiVersion: 'v1', kind: 'Pod', name: 'a', uid: 'u', controller: true },
  };
  const kind = defineController({ name: 'maps', watches, plan: () => [own as never] });
  const { error, steps } = kind.controllers({ render })[0]!.reconcile('maps', {} as Reader, NOW);
  expect([error?.message, steps]).toEqual([expect.stringContaining("writes: ['create'"), []]);
});
