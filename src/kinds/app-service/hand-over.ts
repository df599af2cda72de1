import type { V1Deployment } from '@kubernetes/client-node';
import { handOverReplicas, identityOf, managersOf } from '../../contract/hand-over.js';
import type { HandOver, HandOverFunction } from '../../contract/hand-over.js';
import { childrenFieldManager } from '../../contract/names.js';
import type { AnyObject } from '../../contract/object.js';
import type { AppServiceSpec, Wire } from './spec.js';

/** What passes from one field manager to another before the children are applied; nothing, once that is done. */
export const handOver: HandOverFunction<AppServiceSpec> = ({ cr, children }) => {
  const deployment = children.find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name === cr.metadata.name,
  );
  if (!deployment || deployment.metadata.deletionTimestamp) return [];
  const { strategy } = deployment as AnyObject & { readonly strategy?: KeptStrategy };
  return [
    ...(cr.spec.autoscaling ? handOverReplicas({ cr, children: [deployment], start: cr.spec.size }) : []),
    ...(strategy ? strategySteps(strategy, cr.spec.strategy, identityOf(deployment)) : []),
  ];
};

type Strategy = AppServiceSpec['strategy'];

/** Takes the API server's default out of the way of `Recreate`, and lets go. */
const STRATEGY_FIELD_MANAGER = 'appservice-strategy';

const CHILDREN_FIELD_MANAGER = childrenFieldManager('AppService');

type RollingUpdate = NonNullable<NonNullable<Strategy>['rollingUpdate']>;

/** What the API server fills in for a rolling update. */
const DEFAULT_ROLLING_UPDATE = { maxSurge: '25%', maxUnavailable: '25%' };
/** Of these, one has no value in common with what somebody has set, or with the default. */
const OTHER_ROLLING_UPDATES = [1, 2, 3].map((size) => ({ maxSurge: size, maxUnavailable: size }));

/** Of a Deployment's strategy, how it is and who owns it. */
export interface KeptStrategy {
  readonly type?: string;
  /** Only what somebody else has set. */
  readonly rollingUpdate?: RollingUpdate;
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
  const { type, rollingUpdate } = (object as unknown as Wire<V1Deployment>).spec?.strategy ?? {};
  const rollingUpdateManagers = managersOf(object, 'f:spec', 'f:strategy', 'f:rollingUpdate');
  return {
    ...(type !== undefined && { type }),
    ...(rollingUpdate && rollingUpdateManagers.some(isSomebodyElse) && { rollingUpdate }),
    typeManagers: managersOf(object, 'f:spec', 'f:strategy', 'f:type'),
    rollingUpdateManagers,
  };
}

function isSomebodyElse(manager: string): boolean {
  return manager !== CHILDREN_FIELD_MANAGER && manager !== STRATEGY_FIELD_MANAGER;
}

/**
 * The steps from a rolling update to `Recreate`, which is refused beside values of a rolling update that aren't ours
 * alone: own them, so that they go with the change of the type; change the type; and once our main field manager has it
 * too, let go. What somebody else has set is taken by force, and with other values, since of equal ones there would be
 * two owners.
 */
function strategySteps(
  { type, typeManagers, rollingUpdate, rollingUpdateManagers }: KeptStrategy,
  wanted: Strategy,
  identity: AnyObject,
): HandOver[] {
  const owners = [...typeManagers, ...rollingUpdateManagers];
  const force = owners.some((manager) => manager !== STRATEGY_FIELD_MANAGER);
  const step = (strategy?: object): HandOver => ({
    object: { ...identity, ...(strategy && { spec: { strategy } }) },
    fieldManager: STRATEGY_FIELD_MANAGER,
    ...(strategy && force && { force }),
  });
  const isWanted = wanted?.type === 'Recreate';
  const isHeld = owners.includes(STRATEGY_FIELD_MANAGER);
  if (isHeld && (!isWanted || typeManagers.includes(CHILDREN_FIELD_MANAGER))) return [step()];
  if (!isWanted || type !== 'RollingUpdate' || isOursAlone(rollingUpdateManagers)) return [];
  return [step({ rollingUpdate: unlike(rollingUpdate) }), step({ type: 'Recreate' })];
}

/** Then it goes when we stop to apply it. */
function isOursAlone(managers: readonly string[]): boolean {
  return managers.length > 0 && managers.every((manager) => manager === CHILDREN_FIELD_MANAGER);
}

function unlike(taken: RollingUpdate | undefined): RollingUpdate {
  if (!taken) return DEFAULT_ROLLING_UPDATE;
  const free = OTHER_ROLLING_UPDATES.find(
    ({ maxSurge, maxUnavailable }) => maxSurge !== taken.maxSurge && maxUnavailable !== taken.maxUnavailable,
  );
  return free ?? DEFAULT_ROLLING_UPDATE;
}
