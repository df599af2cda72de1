import { expect, test } from 'vitest';
import type { AnyObject, CustomResource } from '../../../src/contract/object.js';
import { handOver } from '../../../src/kinds/app-service/hand-over.js';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';
import { keepDeployment } from '../../../src/kinds/app-service/status.js';
import { render } from './render.js';

const IDENTITY = { name: 'web', namespace: 'shop', uid: 'deployment-uid' };
const OURS = 'appservice-controller';
const AUTOSCALER = 'kube-controller-manager';

/** Managers, with the fields below `spec` that each owns. */
type Owners = Readonly<Record<string, readonly string[]>>;

/** A Deployment as it is kept, of one that the API server sent. */
function kept(owners: Owners, spec: object, metadata: object = {}): AnyObject {
  const managedFields = Object.entries(owners).map(([manager, paths]) => {
    const fields: Record<string, Record<string, object>> = {};
    for (const [top = '', below] of paths.map((path) => path.split('.'))) {
      fields[`f:${top}`] ??= {};
      if (below !== undefined) fields[`f:${top}`]![`f:${below}`] = {};
    }
    return { manager, operation: 'Apply', fieldsV1: { 'f:spec': fields } };
  });
  const containers = [{ name: 'web', image: 'nginx', env: [] }];
  const sent = {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: { ...IDENTITY, ...metadata, managedFields },
    spec: { ...spec, template: { spec: { containers } } },
  } as unknown as AnyObject;
  const { apiVersion, kind } = sent;
  return { apiVersion, kind, metadata: { ...IDENTITY, ...metadata }, ...keepDeployment(sent) };
}

function stepsFor(deployment: AnyObject | undefined, spec: Partial<AppServiceSpec>) {
  const cr: CustomResource<AppServiceSpec> = {
    ...{ apiVersion: 'kosmos.io/v1', kind: 'AppService', metadata: { name: 'web', namespace: 'shop' } },
    spec: { size: 3, image: 'nginx', ...spec },
  };
  return handOver({ cr, children: deployment ? [deployment] : [] });
}

const autoscaling = { maxReplicas: 10 };
const [FIELD, REST] = [['replicas'], ['selector', 'template']];
const HELD = { 'appservice-replicas': FIELD };

test.each<[replicas: string, live: number, owners: Owners, held: number | undefined]>([
  ['that are ours are held at their live value, not at the size', 7, { [OURS]: [...FIELD, ...REST] }, 7],
  ['of no one are those of a new Deployment, which starts at the size', 1, { [OURS]: REST }, 3],
  ['held already, and ours still', 7, { [OURS]: FIELD, ...HELD }, undefined],
  ['held', 7, { [OURS]: REST, ...HELD }, undefined],
  ["the autoscaler's", 7, { [OURS]: REST, [AUTOSCALER]: FIELD }, undefined],
  ["ours and the autoscaler's", 7, { [OURS]: FIELD, [AUTOSCALER]: FIELD }, undefined],
  ['of another writer', 7, { [OURS]: REST, kubectl: FIELD }, undefined],
])('with autoscaling, replicas %s', (_, replicas, owners, held) => {
  const deployment = kept(owners, { replicas });
  const object = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: IDENTITY, spec: { replicas: held } };

  expect(stepsFor(deployment, { autoscaling })).toEqual(
    held === undefined ? [] : [{ fieldManager: 'appservice-replicas', object }],
  );
  expect(stepsFor(deployment, {})).toEqual([]);
});

test('without a Deployment, or with one that goes or that nothing is known of, nothing is handed over', () => {
  const owners = { [OURS]: FIELD };
  const { apiVersion, kind, metadata } = kept(owners, { replicas: 7 });
  const going = kept(owners, { replicas: 7 }, { deletionTimestamp: '2026-01-01T00:00:00Z' });
  const other = kept(owners, { replicas: 7 }, { name: 'other' });

  for (const deployment of [undefined, going, other, { apiVersion, kind, metadata }])
    expect(stepsFor(deployment, { autoscaling })).toEqual([]);
});

const HOLDER = 'appservice-strategy';
const RECREATE = { type: 'Recreate' };
const DEFAULT = { maxSurge: '25%', maxUnavailable: '25%' };
const ONE = { maxSurge: 1, maxUnavailable: 1 };
const [TYPE, ROLLING] = ['strategy.type', 'strategy.rollingUpdate'];

/** The strategies that are planned for a Deployment whose strategy has this type and these owners. */
function strategiesFor(
  type: string,
  owners: Owners,
  strategy?: NonNullable<AppServiceSpec['strategy']>,
  rollingUpdate: object = DEFAULT,
): unknown[] {
  const deployment = kept(owners, { replicas: 1, strategy: { type, rollingUpdate } });
  return stepsFor(deployment, { ...(strategy && { strategy }) }).map(({ object, fieldManager, force }) => {
    expect(fieldManager).toBe(HOLDER);
    const applied = (object.spec as { strategy?: object } | undefined)?.strategy;
    if (!applied) return 'released';
    return force ? { ...applied, force } : applied;
  });
}

const bothSteps = [{ rollingUpdate: DEFAULT }, RECREATE];
const byForce = (rollingUpdate: object): object[] => [
  { rollingUpdate, force: true },
  { ...RECREATE, force: true },
];

test.each<[string, type: string, Owners, wanted: typeof RECREATE | undefined, steps: unknown[]]>([
  ['the default gives way to Recreate', 'RollingUpdate', {}, RECREATE, bothSteps],
  ['half done, it goes on', 'RollingUpdate', { [HOLDER]: [ROLLING] }, RECREATE, bothSteps],
  ['done, ours is awaited', 'Recreate', { [HOLDER]: [TYPE] }, RECREATE, []],
  ['had by us too, it is released', 'Recreate', { [HOLDER]: [TYPE], [OURS]: [TYPE] }, RECREATE, ['released']],
  ['what is ours goes by itself', 'RollingUpdate', { [OURS]: [TYPE, ROLLING] }, RECREATE, []],
  ['values of others are replaced', 'RollingUpdate', { kubectl: [TYPE, ROLLING] }, RECREATE, byForce(ONE)],
  ['a type of others is taken', 'RollingUpdate', { kubectl: [TYPE] }, RECREATE, byForce(DEFAULT)],
  ['shared ones too', 'RollingUpdate', { kubectl: [ROLLING], [OURS]: [ROLLING] }, RECREATE, byForce(ONE)],
  ['half taken', 'RollingUpdate', { kubectl: [TYPE], [HOLDER]: [ROLLING] }, RECREATE, byForce(DEFAULT)],
  ['Recreate of no one stays', 'Recreate', {}, RECREATE, []],
  ['Recreate stays', 'Recreate', { [OURS]: [TYPE] }, RECREATE, []],
  ['nothing is wanted', 'RollingUpdate', {}, undefined, []],
  ['no longer wanted, it is released', 'Recreate', { [HOLDER]: [TYPE] }, undefined, ['released']],
])('strategy: %s', (_, type, owners, strategy, steps) => {
  expect(strategiesFor(type, owners, strategy)).toEqual(steps);
});

test.each([
  [ONE, { maxSurge: 2, maxUnavailable: 2 }],
  [
    { ...ONE, maxUnavailable: 2 },
    { maxSurge: 3, maxUnavailable: 3 },
  ],
  [{ maxSurge: '30%', maxUnavailable: 0 }, ONE],
])('strategy: what is taken of %j has other values', (taken, others) => {
  const owners = { kubectl: [TYPE, ROLLING] };
  expect(strategiesFor('RollingUpdate', owners, RECREATE, taken)).toEqual(byForce(others));
});

test('a rolling update is rendered so that it goes as a whole', () => {
  const strategyFor = (strategy: NonNullable<AppServiceSpec['strategy']>) =>
    render({ size: 1, image: 'nginx', strategy }).deployment.spec?.strategy;
  const own = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } };

  expect(strategyFor({ type: 'RollingUpdate' })).toEqual({ type: 'RollingUpdate', rollingUpdate: DEFAULT });
  expect(strategyFor(own)).toEqual(own);
  expect(strategyFor(RECREATE)).toEqual(RECREATE);
});
