import type { V1Deployment } from '@kubernetes/client-node';
import type { HandOver } from '../../contract/hand-over.js';
import { childrenFieldManager } from '../../contract/names.js';
import type { AnyObject } from '../../contract/object.js';
import { managersOf } from './field-managers.js';
import type { AppServiceSpec } from './spec.js';
import type { Wire } from './wire.js';

type Strategy = AppServiceSpec['strategy'];

/** Takes the API server's default out of the way of `Recreate`, and lets go. */
export const STRATEGY_FIELD_MANAGER = 'appservice-strategy';

const CHILDREN_FIELD_MANAGER = childrenFieldManager('AppService');

/** What the API server fills in for a rolling update. */
const DEFAULT_ROLLING_UPDATE = { maxSurge: '25%', maxUnavailable: '25%' };

/** Of a Deployment's strategy, how it is and who owns it. */
export interface KeptStrategy {
  readonly type?: string;
  readonly typeManagers: readonly string[];
  readonly rollingUpdateManagers: readonly string[];
}

/**
 * As given; but a rolling update that says nothing else says the default too. What nobody owns stays when the type
 * changes, and beside `Recreate` it is refused: so what is rendered at all is rendered such that it goes as a whole.
 */
export function strategyOf(strategy: NonNullable<Strategy>): NonNullable<Strategy> {
  const isBare = strategy.type === 'RollingUpdate' && !strategy.rollingUpdate;
  return isBare ? { ...strategy, rollingUpdate: DEFAULT_ROLLING_UPDATE } : strategy;
}

export function keepStrategy(object: AnyObject): KeptStrategy {
  const { spec } = object as unknown as Wire<V1Deployment>;
  return {
    ...(spec?.strategy?.type !== undefined && { type: spec.strategy.type }),
    typeManagers: managersOf(object, 'f:spec', 'f:strategy', 'f:type'),
    rollingUpdateManagers: managersOf(object, 'f:spec', 'f:strategy', 'f:rollingUpdate'),
  };
}

/**
 * The steps from a rolling update that the API server filled in to `Recreate`: own the default, so that it goes with
 * the change of the type; change the type; and once our main field manager has it too, let go.
 */
export function strategySteps(
  { type, typeManagers, rollingUpdateManagers }: KeptStrategy,
  wanted: Strategy,
  identity: AnyObject,
): HandOver[] {
  const step = (strategy?: object): HandOver => ({
    object: { ...identity, ...(strategy && { spec: { strategy } }) },
    fieldManager: STRATEGY_FIELD_MANAGER,
  });
  const isHeld = [...typeManagers, ...rollingUpdateManagers].includes(STRATEGY_FIELD_MANAGER);
  const isWanted = wanted?.type === 'Recreate';
  if (isHeld && (!isWanted || typeManagers.includes(CHILDREN_FIELD_MANAGER))) return [step()];
  if (!isWanted || type !== 'RollingUpdate' || typeManagers.length > 0) return [];
  if (rollingUpdateManagers.some((manager) => manager !== STRATEGY_FIELD_MANAGER)) return [];
  return [step({ rollingUpdate: DEFAULT_ROLLING_UPDATE }), step({ type: 'Recreate' })];
}
