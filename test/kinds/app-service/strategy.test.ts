import { expect, test } from 'vitest';
import type { AnyObject } from '../../../src/contract/object.js';
import { handOver } from '../../../src/kinds/app-service/hand-over.js';
import { keepDeployment } from '../../../src/kinds/app-service/status.js';
import type { AppServiceSpec } from '../../../src/kinds/app-service/spec.js';
import { render } from './render.js';

const OURS = 'appservice-controller';
const HOLDER = 'appservice-strategy';
const RECREATE = { type: 'Recreate' };
const DEFAULT = { maxSurge: '25%', maxUnavailable: '25%' };

/** The strategies that are planned for a Deployment whose strategy has this type and these owners. */
function stepsFor(
  type: string,
  owners: Readonly<Record<string, readonly string[]>>,
  strategy?: NonNullable<AppServiceSpec['strategy']>,
  rollingUpdate: object = DEFAULT,
): unknown[] {
  const managedFields = Object.entries(owners).map(([manager, fields]) => ({
    ...{ manager, operation: 'Apply' },
    fieldsV1: { 'f:spec': { 'f:strategy': Object.fromEntries(fields.map((field) => [`f:${field}`, {}])) } },
  }));
  const sent = {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: { name: 'web', managedFields },
    spec: { replicas: 1, strategy: { type, rollingUpdate }, template: { spec: { containers: [] } } },
  } as AnyObject;
  const { apiVersion, kind } = sent;
  const child = { apiVersion, kind, metadata: { name: 'web' }, ...keepDeployment(sent) };
  const cr = {
    ...{ apiVersion: 'kosmos.io/v1', kind: 'AppService', metadata: { name: 'web' } },
    spec: { size: 1, image: 'nginx', ...(strategy && { strategy }) },
  };
  return handOver({ cr, children: [child] }).map(({ object, fieldManager, force }) => {
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
const ONE = { maxSurge: 1, maxUnavailable: 1 };

test.each([
  ['the default gives way to Recreate', 'RollingUpdate', {}, RECREATE, bothSteps],
  ['half done, it goes on', 'RollingUpdate', { [HOLDER]: ['rollingUpdate'] }, RECREATE, bothSteps],
  ['done, ours is awaited', 'Recreate', { [HOLDER]: ['type'] }, RECREATE, []],
  [
    'what we have as well is released',
    'Recreate',
    { [HOLDER]: ['type'], [OURS]: ['type'] },
    RECREATE,
    ['released'],
  ],
  ['what is ours goes by itself', 'RollingUpdate', { [OURS]: ['type', 'rollingUpdate'] }, RECREATE, []],
  [
    "somebody's rolling update is taken, with other values",
    'RollingUpdate',
    { kubectl: ['type', 'rollingUpdate'] },
    RECREATE,
    byForce(ONE),
  ],
  ["somebody's type is taken", 'RollingUpdate', { kubectl: ['type'] }, RECREATE, byForce(DEFAULT)],
  [
    "what is somebody's and ours is taken",
    'RollingUpdate',
    { kubectl: ['rollingUpdate'], [OURS]: ['rollingUpdate'] },
    RECREATE,
    byForce(ONE),
  ],
  [
    'half taken, it goes on',
    'RollingUpdate',
    { kubectl: ['type'], [HOLDER]: ['rollingUpdate'] },
    RECREATE,
    byForce(DEFAULT),
  ],
  ["nobody's Recreate stays", 'Recreate', {}, RECREATE, []],
  ['Recreate stays', 'Recreate', { [OURS]: ['type'] }, RECREATE, []],
  ['nothing is wanted', 'RollingUpdate', {}, undefined, []],
  ['no longer wanted, it is released', 'Recreate', { [HOLDER]: ['type'] }, undefined, ['released']],
])('%s', (_, type, owners, strategy, expected) => {
  expect(stepsFor(type, owners, strategy)).toEqual(expected);
});

test.each([
  [ONE, { maxSurge: 2, maxUnavailable: 2 }],
  [
    { maxSurge: 1, maxUnavailable: 2 },
    { maxSurge: 3, maxUnavailable: 3 },
  ],
  [{ maxSurge: '30%', maxUnavailable: 0 }, ONE],
])('what is taken of %j has other values', (taken, expected) => {
  expect(stepsFor('RollingUpdate', { kubectl: ['type', 'rollingUpdate'] }, RECREATE, taken)).toEqual(
    byForce(expected),
  );
});

test('a rolling update is rendered so that it goes as a whole', () => {
  const strategyFor = (strategy: NonNullable<AppServiceSpec['strategy']>) =>
    render({ size: 1, image: 'nginx', strategy }).deployment.spec?.strategy;

  expect(strategyFor({ type: 'RollingUpdate' })).toEqual({ type: 'RollingUpdate', rollingUpdate: DEFAULT });
  expect(strategyFor({ type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } })).toEqual({
    ...{ type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } },
  });
  expect(strategyFor(RECREATE)).toEqual(RECREATE);
});
