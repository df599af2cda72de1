import { describe, expect, test } from 'vitest';
import type { AnyObject, CustomResource } from '../../../src/contract/object.js';
import { handOver } from '../../../src/kinds/app-service/hand-over.js';
import { keepDeployment } from '../../../src/kinds/app-service/status.js';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';

const IDENTITY = { name: 'web', namespace: 'shop', uid: 'deployment-uid' };
const REPLICAS = { 'f:spec': { 'f:replicas': {} } };

/** The controller's entry, as the API server records an apply. */
function applied(manager: string, fieldsV1: object): object {
  return { manager, operation: 'Apply', apiVersion: 'apps/v1', fieldsType: 'FieldsV1', fieldsV1 };
}

const CHILDREN = applied('appservice-controller', {
  'f:spec': { 'f:replicas': {}, 'f:selector': {}, 'f:template': { 'f:spec': {} } },
});
const CHILDREN_WITHOUT = applied('appservice-controller', {
  'f:spec': { 'f:selector': {}, 'f:template': { 'f:spec': {} } },
});
const HELD = applied('appservice-replicas', REPLICAS);
const STATUS = {
  ...{
    manager: 'kube-controller-manager',
    operation: 'Update',
    apiVersion: 'apps/v1',
    subresource: 'status',
  },
  fieldsV1: { 'f:status': { 'f:replicas': {} } },
};
/** An autoscaler and `kubectl scale`. */
const SCALED = {
  ...{ manager: 'kube-controller-manager', operation: 'Update', apiVersion: 'apps/v1', subresource: 'scale' },
  fieldsV1: REPLICAS,
};

/** A Deployment as it is kept, of one that the API server sent. */
function kept(replicas: number, managedFields: readonly object[], metadata: object = {}): AnyObject {
  const sent: AnyObject = {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: { ...IDENTITY, ...metadata, managedFields } as AnyObject['metadata'],
    spec: { replicas, template: { spec: { containers: [{ name: 'web', image: 'nginx', env: [] }] } } },
  };
  const { apiVersion, kind } = sent;
  return { apiVersion, kind, metadata: { ...IDENTITY, ...metadata }, ...keepDeployment(sent) };
}

function stepsFor(deployment: AnyObject | undefined, spec: Partial<AppServiceSpec> = {}) {
  const cr: CustomResource<AppServiceSpec> = {
    ...{ apiVersion: 'kosmos.io/v1', kind: 'AppService', metadata: { name: 'web', namespace: 'shop' } },
    spec: { size: 3, image: 'nginx', autoscaling: { maxReplicas: 10 }, ...spec },
  };
  return handOver({ cr, children: deployment ? [deployment] : [] });
}

function held(replicas: number) {
  return [
    {
      fieldManager: 'appservice-replicas',
      object: { apiVersion: 'apps/v1', kind: 'Deployment', metadata: IDENTITY, spec: { replicas } },
    },
  ];
}

describe('what is kept of a Deployment', () => {
  test('is who owns its replicas, and what it runs', () => {
    expect(kept(4, [CHILDREN, STATUS, SCALED])).toEqual({
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: IDENTITY },
      replicas: { value: 4, managers: ['appservice-controller', 'kube-controller-manager'] },
      strategy: { typeManagers: [], rollingUpdateManagers: [] },
      spec: { template: { spec: { containers: [{ name: 'web', image: 'nginx' }] } } },
    });
  });
});

describe('with autoscaling', () => {
  test('replicas that are ours are held at their live value, not at the size', () => {
    expect(stepsFor(kept(7, [CHILDREN, STATUS]))).toEqual(held(7));
  });

  test('replicas that are nobody’s are those of a new Deployment, which starts at the size', () => {
    expect(stepsFor(kept(1, [CHILDREN_WITHOUT, STATUS]))).toEqual(held(3));
  });

  test.each([
    ['held already, and ours still', [CHILDREN, HELD]],
    ['held', [CHILDREN_WITHOUT, HELD]],
    ["the autoscaler's", [CHILDREN_WITHOUT, SCALED, STATUS]],
    ["ours and the autoscaler's", [CHILDREN, SCALED]],
    ['of somebody else', [CHILDREN_WITHOUT, applied('kubectl', REPLICAS)]],
  ])('replicas that are %s stay as they are', (_, managedFields) => {
    expect(stepsFor(kept(7, managedFields))).toEqual([]);
  });

  test('after the step, nothing is left to do', () => {
    expect(stepsFor(kept(7, [CHILDREN]))).toHaveLength(1);
    expect(stepsFor(kept(7, [CHILDREN, HELD]))).toEqual([]);
    expect(stepsFor(kept(7, [CHILDREN_WITHOUT, HELD]))).toEqual([]);
  });

  test('without a Deployment, or with one that goes or that nothing is known of, there is nothing to hand over', () => {
    const { apiVersion, kind, metadata } = kept(7, [CHILDREN]);

    expect(stepsFor(undefined)).toEqual([]);
    expect(stepsFor(kept(7, [CHILDREN], { deletionTimestamp: '2026-01-01T00:00:00Z' }))).toEqual([]);
    expect(stepsFor(kept(7, [CHILDREN], { name: 'other' }))).toEqual([]);
    expect(stepsFor({ apiVersion, kind, metadata })).toEqual([]);
  });
});

test.each([[[CHILDREN]], [[CHILDREN_WITHOUT]], [[CHILDREN_WITHOUT, HELD]], [[CHILDREN_WITHOUT, SCALED]]])(
  'without autoscaling there is nothing to hand over (%#)',
  (managedFields) => {
    const deployment = kept(7, managedFields);
    const cr = {
      ...{ apiVersion: 'kosmos.io/v1', kind: 'AppService', metadata: { name: 'web', namespace: 'shop' } },
      spec: { size: 3, image: 'nginx' },
    };

    expect(handOver({ cr, children: [deployment] })).toEqual([]);
  },
);
